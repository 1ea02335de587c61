"""The desk: takes in as many questions at once as it has places, and none once it is closing."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager, suppress
from random import random
from typing import TYPE_CHECKING, Self

from bythebook.errors import Unavailable
from bythebook.server.streams import Stream
from bythebook.telemetry import figure

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator
    from types import TracebackType

    from bythebook.server.streams import Asked, Happening

RETRY_SECONDS = 2.0
"""When somebody who found no place should come again at the earliest: an answer without a model takes less."""

SPREAD_SECONDS = 3.0
"""How much later others should come, so that those who were turned away together do not come back together."""

KEEP_SECONDS = 60.0
"""How long a stream that has ended can be taken up again by a reader who lost the connection."""

MOST_KEPT = 256


class Desk:
    """Knows who is being answered. Use it as `async with`: what is still going on at the end is given up."""

    def __init__(self, *, places: int) -> None:
        self.places = places
        self.taken = 0
        self._coming_in = 0
        self.closing = False
        self._left = asyncio.Event()
        self._running: dict[str, Stream] = {}
        self._kept: dict[str, Stream] = {}
        self._tasks = asyncio.TaskGroup()

    @property
    def running(self) -> tuple[Stream, ...]:
        return tuple(self._running.values())

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close(grace=0)
        await self._tasks.__aexit__(kind, error, trace)

    @contextmanager
    def coming_in(self) -> Iterator[None]:
        """Let in who may still find a place, and let nobody in for the same one meanwhile.

        Of a crowd that comes in one moment, those for whom there is no place are told so before anything is spent on
        them. A place is not kept for longer than this: who is slow to send keeps nobody else from it.
        """
        self._refuse_beyond(self.taken + self._coming_in)
        self._coming_in += 1
        try:
            yield
        finally:
            self._coming_in -= 1

    def _refuse_beyond(self, taken: int) -> None:
        """Nobody waits for a place: where there is none, that is said at once."""
        if self.closing:
            figure("shed", reason="closing")
            raise Unavailable("the server is shutting down.", retry_after=RETRY_SECONDS)
        if taken >= self.places:
            figure("shed", reason="full")
            again = RETRY_SECONDS + SPREAD_SECONDS * random()  # noqa: S311 - nobody gains by guessing it
            raise Unavailable(f"all {self.places} places are taken.", retry_after=again)

    @contextmanager
    def place(self) -> Iterator[None]:
        """A place for one request."""
        self._refuse_beyond(self.taken)
        self.taken += 1
        figure("readers", 1)
        try:
            yield
        finally:
            self.taken -= 1
            figure("readers", -1)
            self._left.set()

    def begin(self, asked: Asked, work: AsyncGenerator[Happening]) -> Stream:
        """Begin to answer. The stream goes on for as long as somebody follows it, and is kept for a minute after."""
        stream = Stream(asked)
        self._running[stream.id] = stream
        stream.begin(work, tasks=self._tasks).add_done_callback(lambda _task: self._ended(stream))
        return stream

    def _ended(self, stream: Stream) -> None:
        del self._running[stream.id]
        if not stream.abandoned:
            self._kept[stream.id] = stream
            asyncio.get_running_loop().call_later(KEEP_SECONDS, self._kept.pop, stream.id, None)
        while len(self._kept) > MOST_KEPT:
            del self._kept[next(iter(self._kept))]

    def resume(self, asked: Asked, last_event_id: str) -> tuple[Stream, int] | None:
        """The stream a reader lost, and how many of its events were heard; None when it was given up or is forgotten.

        Only who asked it finds it, and only with the same question.
        """
        stream_id, _, number = last_event_id.partition(".")
        stream = self._running.get(stream_id) or self._kept.get(stream_id)
        if stream is None or stream.abandoned or not number.isdecimal() or len(number) > 9:
            return None
        same = (stream.asked.user_id, stream.asked.fingerprint) == (asked.user_id, asked.fingerprint)
        # The last event is told in any case, also to who has heard it.
        return (stream, min(int(number), len(stream.happened) - stream.ended)) if same else None

    def repeated(self, asked: Asked) -> Stream | None:
        """The running stream of the same request, which came before under the same key."""
        for stream in self._running.values():
            if asked.key and stream.asked.key == asked.key and stream.asked.user_id == asked.user_id:
                return stream if stream.asked.fingerprint == asked.fingerprint and not stream.abandoned else None
        return None

    async def close(self, *, grace: float) -> None:
        """Take no more questions; let those being answered finish, and end what has not after `grace` seconds."""
        self.closing = True
        with suppress(TimeoutError):
            async with asyncio.timeout(grace):
                while self.taken:
                    self._left.clear()
                    await self._left.wait()
        for stream in self._running.values():
            stream.stop(Unavailable("the server is shutting down.", retry_after=RETRY_SECONDS))
