"""Answer streams: the events of a running question, for any number of clients that follow or resume it over HTTP."""

import asyncio
import json
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from bythebook.access.idempotency import IdempotencyLock
from bythebook.access.site_tokens import REFUNDABLE_ERRORS
from bythebook.answers import AnswerCompleted, Event, SourcesFound, State, StateChanged, TextDelta
from bythebook.errors import BookError
from bythebook.serialization import to_json
from bythebook.server.errors import describe_error

HEARTBEAT = b": still here\n\n"


@dataclass(frozen=True, slots=True)
class StreamKey:
    """The identity of a request for an answer: the user and the question."""

    user_id: str
    fingerprint: str
    """A hash of the whole question. A stream is resumed, and an answer reused, only for the same question."""
    request_id: str | None = None
    idempotency_key: str = ""


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event as it is sent over HTTP."""

    name: str
    data: str
    """One line of JSON."""

    @property
    def is_last(self) -> bool:
        return self.name in ("answer", "error")


class AnswerStream:
    """The events of one question so far, and the clients that follow it."""

    def __init__(self, key: StreamKey) -> None:
        self.id = uuid.uuid4().hex
        self.key = key
        self.events: list[StreamEvent] = []
        self.abandoned = False
        """Whether the question was cancelled because the last follower left."""
        self._followers: set[asyncio.Queue[StreamEvent]] = set()
        self._task: asyncio.Task[None] | None = None
        self._stopped_by: BookError | None = None

    @property
    def has_ended(self) -> bool:
        return bool(self.events) and self.events[-1].is_last

    @property
    def followers(self) -> int:
        return len(self._followers)

    def start(self, work: Coroutine[Any, Any, None], *, tasks: asyncio.TaskGroup) -> asyncio.Task[None]:
        """Run the work that publishes the events. It is cancelled when the last follower leaves."""
        self._task = tasks.create_task(work)
        return self._task

    def publish(self, event: StreamEvent) -> None:
        """Send an event to every follower, and keep it for clients that follow later."""
        self.events.append(event)
        for queue in self._followers:
            queue.put_nowait(event)

    @contextmanager
    def publish_failure(self) -> Iterator[None]:
        """Publish an error of the block as the last event. Only a cancellation that `stop` did not cause is raised."""
        try:
            yield
        except asyncio.CancelledError:
            if self._stopped_by is None:
                raise
            self._publish_error(self._stopped_by)
        except Exception as error:
            self._publish_error(error)

    def _publish_error(self, error: Exception) -> None:
        self.publish(to_stream_event(StateChanged(State.FAILED)))
        self.publish(StreamEvent("error", to_json_line(describe_error(error, request_id=self.key.request_id))))

    @contextmanager
    def follow(self, after: int = 0) -> Iterator[asyncio.Queue[StreamEvent]]:
        """A queue of the events after the first `after` ones. The last follower to leave cancels the question."""
        queue: asyncio.Queue[StreamEvent] = asyncio.Queue()
        for event in self.events[after:]:
            queue.put_nowait(event)
        self._followers.add(queue)
        try:
            yield queue
        finally:
            self._followers.discard(queue)
            if not self._followers and self._task and not self.has_ended:
                self.abandoned = True
                self._task.cancel()

    def stop(self, error: BookError) -> None:
        """Cancel the question, with this error as the last event."""
        if self._task and not self.has_ended:
            self._stopped_by = error
            self._task.cancel()


async def run_question(
    stream: AnswerStream,
    events: AsyncGenerator[Event],
    *,
    refund: Callable[[], Awaitable[None]],
    include_sources: bool = True,
    lock: IdempotencyLock | None = None,
) -> None:
    """Publish the events of a question to its stream. A question that was not answered is refunded.

    With the lock of an Idempotency-Key, the answer of another request with the same key is published instead.
    """
    with stream.publish_failure():
        try:
            async with aclosing(events):
                if lock is not None and (answer := await lock.acquire()) is not None:
                    stream.publish(StreamEvent("answer", answer))
                    return
                async for event in events:
                    if isinstance(event, SourcesFound) and not include_sources:
                        continue
                    published = to_stream_event(event)
                    if lock is not None and isinstance(event, AnswerCompleted):
                        await lock.save_answer(published.data, session_id=event.response.session_id)
                    stream.publish(published)
        except BaseException as error:
            if lock is not None:
                await lock.release()
            if isinstance(error, REFUNDABLE_ERRORS):
                await refund()
            raise


def completed_stream(key: StreamKey, answer: str) -> AnswerStream:
    """The stream of a question whose answer is already known."""
    stream = AnswerStream(key)
    stream.events.append(StreamEvent("answer", answer))
    return stream


def to_stream_event(event: Event) -> StreamEvent:
    match event:
        case StateChanged(state):
            return StreamEvent("state", to_json_line({"state": state}))
        case SourcesFound(results):
            return StreamEvent("sources", to_json_line({"sources": to_json(results)}))
        case TextDelta(text):
            return StreamEvent("delta", to_json_line({"text": text}))
        case AnswerCompleted(response):
            return StreamEvent("answer", to_json_line(to_json(response)))


def to_json_line(value: Any) -> str:
    """The value as JSON on one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class ClientDisconnectedError(Exception):
    """The client closed its connection before the end of the response."""


@asynccontextmanager
async def cancel_on_disconnect(receive: Receive) -> AsyncIterator[None]:
    """Cancel the block and raise ClientDisconnectedError as soon as the client closes the connection."""
    task = asyncio.current_task()
    disconnected = False

    async def listen() -> None:
        nonlocal disconnected
        while (await receive())["type"] != "http.disconnect":
            pass
        disconnected = True
        if task:
            task.cancel()

    listening = asyncio.create_task(listen())
    try:
        yield
    except asyncio.CancelledError as cancelled:
        if disconnected and task and task.uncancel() == 0:
            raise ClientDisconnectedError from cancelled
        raise
    finally:
        listening.cancel()


def event_data(event: StreamEvent) -> str:
    """The event's data, unchanged."""
    return event.data


class EventStreamResponse(Response):
    """Server-sent events of a stream after its first `after` events. Comments keep a silent connection open."""

    media_type = "text/event-stream"

    def __init__(
        self,
        stream: AnswerStream,
        *,
        after: int = 0,
        heartbeat: float,
        encode: Callable[[StreamEvent], str] = event_data,
    ) -> None:
        super().__init__(headers={"cache-control": "no-store", "x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._stream = stream
        self._sent = after
        self._heartbeat = heartbeat
        self._encode = encode
        for event in stream.events[:after]:
            # The client has these events, but the encoding of the next ones may depend on them.
            encode(event)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - the ASGI signature
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        last = False
        try:
            async with cancel_on_disconnect(receive):
                with self._stream.follow(self._sent) as queue:
                    while not last:
                        events: list[StreamEvent] = []
                        try:
                            async with asyncio.timeout(self._heartbeat):
                                events.append(await queue.get())
                        except TimeoutError:
                            block = HEARTBEAT
                        else:
                            while not queue.empty():
                                events.append(queue.get_nowait())
                            last = events[-1].is_last
                            block = b"".join(map(self._format, events))
                        await send({"type": "http.response.body", "body": block, "more_body": True})
        except ClientDisconnectedError:
            return
        await send({"type": "http.response.body", "body": b""})

    def _format(self, event: StreamEvent) -> bytes:
        self._sent += 1
        return f"id: {self._stream.id}.{self._sent}\nevent: {event.name}\ndata: {self._encode(event)}\n\n".encode()


async def wait_for_last_event(stream: AnswerStream, receive: Receive) -> StreamEvent:
    """The last event of the stream."""
    async with cancel_on_disconnect(receive):
        with stream.follow() as queue:
            while not (event := await queue.get()).is_last:
                pass
            return event
