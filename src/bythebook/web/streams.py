"""Streams: what happens while a question is answered, for any number of readers who follow it."""

from __future__ import annotations

import asyncio
import json
import uuid
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bythebook.answers.events import Answered, Entered, Said, Searched, State
from bythebook.web.failures import described
from bythebook.wire import as_json

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from bythebook.answers.events import Event
    from bythebook.errors import BookError


@dataclass(frozen=True, slots=True)
class Asked:
    """A request for an answer: whose it is, and what it asks."""

    user_id: str
    fingerprint: str
    """Of the whole question: what is kept for one question is never given for another."""
    request_id: str | None = None
    key: str = ""
    """The Idempotency-Key it came with, if any."""


@dataclass(frozen=True, slots=True)
class Happening:
    """One event as it goes over the wire."""

    name: str
    data: str
    """One line of JSON."""

    @property
    def is_last(self) -> bool:
        return self.name in ("answer", "error")


async def happenings(events: AsyncGenerator[Event], *, sources: bool) -> AsyncGenerator[Happening]:
    """The events of a question as they go over the wire, with or without the passages that were found."""
    async with aclosing(events):
        async for event in events:
            if sources or not isinstance(event, Searched):
                yield _happening(event)


class Stream:
    """One question that is answered here: what has happened so far, and who follows it."""

    def __init__(self, asked: Asked) -> None:
        self.id = uuid.uuid4().hex
        self.asked = asked
        self.happened: list[Happening] = []
        self.abandoned = False
        """Whether it was given up because nobody followed any more."""
        self._followers: set[asyncio.Queue[Happening]] = set()
        self._task: asyncio.Task[None] | None = None
        self._stopped_by: BookError | None = None

    @property
    def ended(self) -> bool:
        return bool(self.happened) and self.happened[-1].is_last

    @property
    def followers(self) -> int:
        return len(self._followers)

    def begin(self, work: AsyncGenerator[Happening], *, tasks: asyncio.TaskGroup) -> asyncio.Task[None]:
        self._task = tasks.create_task(self._run(work))
        return self._task

    async def _run(self, work: AsyncGenerator[Happening]) -> None:
        try:
            async with aclosing(work):
                async for happening in work:
                    self._tell(happening)
        except asyncio.CancelledError:
            if self._stopped_by is None:
                raise
            self._fail(self._stopped_by)
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        said = described(error, request_id=self.asked.request_id)
        self._tell(_happening(Entered(State.FAILED)))
        self._tell(Happening("error", _line(said)))

    def _tell(self, happening: Happening) -> None:
        self.happened.append(happening)
        for follower in self._followers:
            follower.put_nowait(happening)

    @contextmanager
    def follow(self, after: int = 0) -> Iterator[asyncio.Queue[Happening]]:
        """Hear what happened after so many events, and what happens next. The last to leave ends the work."""
        heard: asyncio.Queue[Happening] = asyncio.Queue()
        for happening in self.happened[after:]:
            heard.put_nowait(happening)
        self._followers.add(heard)
        try:
            yield heard
        finally:
            self._followers.discard(heard)
            if not self._followers and self._task and not self.ended:
                self.abandoned = True
                self._task.cancel()

    def stop(self, error: BookError) -> None:
        """End the work with this error as the last event."""
        if self._task and not self.ended:
            self._stopped_by = error
            self._task.cancel()


def answered_before(asked: Asked, answer: str) -> Stream:
    """The stream of a question whose answer is known already."""
    stream = Stream(asked)
    stream.happened.append(Happening("answer", answer))
    return stream


def _happening(event: Event) -> Happening:
    match event:
        case Entered(state):
            return Happening("state", _line({"state": state}))
        case Searched(results):
            return Happening("sources", _line({"sources": as_json(results)}))
        case Said(text):
            return Happening("delta", _line({"text": text}))
        case Answered(response):
            return Happening("answer", _line(as_json(response)))


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
