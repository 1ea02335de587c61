"""Streams: what happens while a question is answered, for any number of readers who follow it.

Events: a stream told to a reader over HTTP, as server-sent events or as its last event alone.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from bythebook.answers.events import Answered, Entered, Said, Searched, State
from bythebook.serialization import as_json
from bythebook.server.errors import described

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator

    from starlette.types import Receive, Scope, Send

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
        self._tell(Happening("error", line(said)))

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
            return Happening("state", line({"state": state}))
        case Searched(results):
            return Happening("sources", line({"sources": as_json(results)}))
        case Said(text):
            return Happening("delta", line({"text": text}))
        case Answered(response):
            return Happening("answer", line(as_json(response)))


def line(value: Any) -> str:
    """The value as JSON on one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


HEARTBEAT = b": still here\n\n"

STALLED_SECONDS = 30.0
"""How long a reader may take nothing of what is sent before it counts as gone."""


class ReaderLeftError(Exception):
    """Nobody waits for the answer any more."""


@asynccontextmanager
async def while_listening(receive: Receive) -> AsyncIterator[None]:
    """Do this while the reader is there. Raises ReaderLeftError at once when the connection is closed."""
    here = asyncio.current_task()
    left = False

    async def listen() -> None:
        nonlocal left
        while (await receive())["type"] != "http.disconnect":
            pass
        left = True
        if here:
            here.cancel()

    listening = asyncio.create_task(listen())
    try:
        yield
    except asyncio.CancelledError as cancelled:
        if left and here and here.uncancel() == 0:
            raise ReaderLeftError from cancelled
        raise
    finally:
        listening.cancel()


def plainly(happening: Happening) -> str:
    """The event's data as it is."""
    return happening.data


class EventStream(Response):
    """Server-sent events from a stream, the first `after` of them left out; comments keep a silent line open."""

    media_type = "text/event-stream"

    def __init__(
        self, stream: Stream, *, after: int = 0, heartbeat: float, tell: Callable[[Happening], str] = plainly
    ) -> None:
        super().__init__(headers={"cache-control": "no-store", "x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._stream = stream
        self._after = after
        self._heartbeat = heartbeat
        self._tell = tell
        for happening in stream.happened[:after]:
            # Told already, but what follows may build on it.
            tell(happening)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - as ASGI has it
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        try:
            async with while_listening(receive):
                async for chunk in self._chunks():
                    async with asyncio.timeout(STALLED_SECONDS):
                        await send({"type": "http.response.body", "body": chunk, "more_body": True})
        except (ReaderLeftError, TimeoutError):
            return
        await send({"type": "http.response.body", "body": b""})

    async def _chunks(self) -> AsyncIterator[bytes]:
        number, last = self._after, False
        with self._stream.follow(self._after) as heard:
            while not last:
                try:
                    async with asyncio.timeout(self._heartbeat):
                        news = [await heard.get()]
                except TimeoutError:
                    yield HEARTBEAT
                    continue
                while not heard.empty():
                    news.append(heard.get_nowait())
                last = news[-1].is_last
                yield b"".join(self._event(happening, number + place) for place, happening in enumerate(news, start=1))
                number += len(news)

    def _event(self, happening: Happening, number: int) -> bytes:
        return f"id: {self._stream.id}.{number}\nevent: {happening.name}\ndata: {self._tell(happening)}\n\n".encode()


async def last_event(stream: Stream, receive: Receive) -> Happening:
    """How the stream ended."""
    async with while_listening(receive):
        with stream.follow() as heard:
            while not (happening := await heard.get()).is_last:
                pass
            return happening
