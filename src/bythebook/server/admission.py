"""Admission control: caps concurrent requests, rejects new ones during shutdown, and keeps the running streams."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from random import random
from types import TracebackType
from typing import Any, Self

from bythebook.errors import Unavailable
from bythebook.server.streams import AnswerStream, StreamKey
from bythebook.telemetry import metric

RETRY_AFTER_SECONDS = 2.0
"""The smallest `Retry-After` of a rejected request. An answer without a model takes less time."""

RETRY_JITTER_SECONDS = 3.0
"""The largest random delay added to it, so that clients rejected together do not retry together."""

REPLAY_SECONDS = 60.0
"""How long a finished stream can be resumed by a client that lost the connection."""

MAX_FINISHED_STREAMS = 256


class AdmissionController:
    """The active requests and the answer streams of this process. Leaving its `async with` block stops all streams."""

    def __init__(self, *, capacity: int) -> None:
        self.capacity = capacity
        self.active = 0
        self._reserved = 0
        self.closing = False
        self._released = asyncio.Event()
        self._running: dict[str, AnswerStream] = {}
        self._finished: dict[str, AnswerStream] = {}
        self._tasks = asyncio.TaskGroup()

    @property
    def running(self) -> tuple[AnswerStream, ...]:
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
    def reserve(self) -> Iterator[None]:
        """Reserve a slot during authentication, so that a burst is rejected before it reaches the database.

        The reservation ends with the block: a client that sends its body slowly does not hold a slot.
        """
        self._check_capacity(self.active + self._reserved)
        self._reserved += 1
        try:
            yield
        finally:
            self._reserved -= 1

    def _check_capacity(self, used: int) -> None:
        """Raise Unavailable if all slots are in use. Requests are not queued."""
        if self.closing:
            metric("rejected_requests", reason="closing")
            raise Unavailable("the server is shutting down.", retry_after=RETRY_AFTER_SECONDS)
        if used >= self.capacity:
            metric("rejected_requests", reason="full")
            delay = RETRY_AFTER_SECONDS + RETRY_JITTER_SECONDS * random()  # noqa: S311 - not security-relevant
            raise Unavailable(f"the server is at capacity: {self.capacity} requests are active.", retry_after=delay)

    @contextmanager
    def acquire(self) -> Iterator[None]:
        """Hold a slot for one request."""
        self._check_capacity(self.active)
        self.active += 1
        metric("active_requests", 1)
        try:
            yield
        finally:
            self.active -= 1
            metric("active_requests", -1)
            self._released.set()

    def start(self, key: StreamKey, work: Callable[[AnswerStream], Coroutine[Any, Any, None]]) -> AnswerStream:
        """Start a stream. It runs while it has a follower, and can be resumed for a minute after its end."""
        stream = AnswerStream(key)
        self._running[stream.id] = stream
        stream.start(work(stream), tasks=self._tasks).add_done_callback(lambda _task: self._on_done(stream))
        return stream

    def _on_done(self, stream: AnswerStream) -> None:
        del self._running[stream.id]
        if not stream.abandoned:
            self._finished[stream.id] = stream
            asyncio.get_running_loop().call_later(REPLAY_SECONDS, self._finished.pop, stream.id, None)
        while len(self._finished) > MAX_FINISHED_STREAMS:
            del self._finished[next(iter(self._finished))]

    def resume(self, key: StreamKey, last_event_id: str) -> tuple[AnswerStream, int] | None:
        """The stream to resume and the number of events already received; None if it was abandoned or has expired.

        Only the same user with the same question gets it.
        """
        stream_id, _, number = last_event_id.partition(".")
        stream = self._running.get(stream_id) or self._finished.get(stream_id)
        if stream is None or stream.abandoned or not number.isdecimal() or len(number) > 9:
            return None
        same = (stream.key.user_id, stream.key.fingerprint) == (key.user_id, key.fingerprint)
        # The last event is always sent, even if the client has received it.
        return (stream, min(int(number), len(stream.events) - stream.has_ended)) if same else None

    def find_running(self, key: StreamKey) -> AnswerStream | None:
        """The running stream of an earlier request with the same Idempotency-Key and question."""
        for stream in self._running.values():
            same_user = stream.key.user_id == key.user_id
            if key.idempotency_key and stream.key.idempotency_key == key.idempotency_key and same_user:
                return stream if stream.key.fingerprint == key.fingerprint and not stream.abandoned else None
        return None

    async def close(self, *, grace: float) -> None:
        """Reject new requests, wait up to `grace` seconds for the active ones, then stop the remaining streams."""
        self.closing = True
        with suppress(TimeoutError):
            async with asyncio.timeout(grace):
                while self.active:
                    self._released.clear()
                    await self._released.wait()
        for stream in self._running.values():
            stream.stop(Unavailable("the server is shutting down.", retry_after=RETRY_AFTER_SECONDS))
