"""The desk: takes in as many questions at once as it has places, and none once it is closing."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Self

from bythebook.errors import Unavailable
from bythebook.observe import figure
from bythebook.web.streams import Stream

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator
    from types import TracebackType

    from bythebook.answers.events import Event

RETRY_SECONDS = 2.0
"""When somebody who found no place should come again: an answer without a model takes less."""


class Desk:
    """Knows who is being answered. Use it as `async with`: what is still going on at the end is given up."""

    def __init__(self, *, places: int) -> None:
        self.places = places
        self.taken = 0
        self._left = asyncio.Event()
        self.closing = False
        self._streams: set[Stream] = set()
        self._tasks = asyncio.TaskGroup()

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close(grace=0)
        await self._tasks.__aexit__(kind, error, trace)

    @contextmanager
    def place(self) -> Iterator[None]:
        """A place for one request. Nobody waits for one: where there is none, that is said at once."""
        if self.closing:
            figure("shed", reason="closing")
            raise Unavailable("the server is shutting down.", retry_after=RETRY_SECONDS)
        if self.taken >= self.places:
            figure("shed", reason="full")
            raise Unavailable(f"all {self.places} places are taken.", retry_after=RETRY_SECONDS)
        self.taken += 1
        figure("readers", 1)
        try:
            yield
        finally:
            self.taken -= 1
            figure("readers", -1)
            self._left.set()

    def answer(
        self, events: AsyncGenerator[Event], *, user_id: str, asked: str, request_id: str | None, sources: bool
    ) -> Stream:
        """Begin to answer. The stream goes on for as long as somebody follows it."""
        stream = Stream(user_id=user_id, asked=asked, request_id=request_id)
        stream.begin(events, tasks=self._tasks, sources=sources)
        self._streams.add(stream)
        return stream

    async def close(self, *, grace: float) -> None:
        """Take no more questions; let those being answered finish, and end what has not after `grace` seconds."""
        self.closing = True
        with suppress(TimeoutError):
            async with asyncio.timeout(grace):
                while self.taken:
                    self._left.clear()
                    await self._left.wait()
        for stream in self._streams:
            stream.stop(Unavailable("the server is shutting down.", retry_after=RETRY_SECONDS))
