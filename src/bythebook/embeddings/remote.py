"""Vectors made elsewhere, by a service that is paid for every text and counts our calls."""

from __future__ import annotations

import asyncio
import base64
import binascii
from contextlib import aclosing, suppress
from copy import copy
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from bythebook.embeddings import arriving
from bythebook.embeddings.rate_limiter import Pace
from bythebook.embeddings.tokens import count
from bythebook.errors import BookError, DeadlineExceeded, RateLimited
from bythebook.upstream import Deadline, Policy, Upstream

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Coroutine, Sequence

    from bythebook.embeddings import Identity, Texts, Vector
    from bythebook.embeddings.config import Limits
    from bythebook.upstream import Failure

    Batch = tuple[str, ...]
    Placed = tuple[int, Vector]

PATIENT = Policy(patience=10)
"""For an ingest, which nobody waits for: waits for a service's limits add up to minutes, failures do not."""
_PATIENCE_SECONDS = 900.0
NOTHING = "-"
"""Stands for a text without a letter: services refuse those."""


class Use(StrEnum):
    """What a vector is for, in Cohere's words. Questions and passages are put where they meet."""

    DOCUMENT = "search_document"
    QUERY = "search_query"


class Service(Protocol):
    """One provider's way to be asked for vectors. It does not retry, wait or check."""

    @property
    def name(self) -> str: ...

    @property
    def error(self) -> type[BookError]:
        """What its failures are called."""
        ...

    async def embed(self, texts: Sequence[str], use: Use) -> Sequence[object]:
        """What it sent for each text, in order: numbers, or base64 of 32-bit floats."""
        ...

    def judge(self, upstream: str, error: Exception, /) -> Failure | None: ...

    async def close(self) -> None: ...


class HostedEmbedder:
    """Asks a service for vectors: many texts in a request, several requests at once, all at the pace it bears."""

    def __init__(self, service: Service, identity: Identity, limits: Limits) -> None:
        self._service = service
        self._identity = identity
        self._limits = limits
        self._pace = Pace(service.name, per_minute=limits.per_minute)
        self._for_documents = Upstream(service.name, judge=self._judge, policy=PATIENT)
        self._for_questions = Upstream(service.name, judge=self._judge)
        self._asked: list[tuple[str, asyncio.Future[Vector]]] = []
        self._asking: set[asyncio.Task[None]] = set()

    @property
    def identity(self) -> Identity:
        return self._identity

    def count(self, text: str) -> int:
        return count(_sendable(text))

    async def documents(self, texts: Texts) -> AsyncGenerator[Vector]:
        early: dict[int, Vector] = {}
        due = 0
        async with aclosing(self.as_they_come(texts)) as coming:
            async for place, vector in coming:
                early[place] = vector
                while due in early:
                    yield early.pop(due)
                    due += 1

    async def as_they_come(self, texts: Texts) -> AsyncGenerator[Placed]:
        """The place of each text with its vector, as the service answers.

        After a failure nothing more is sent; what is under way, and will be paid, still comes before the error.
        """
        under_way = _UnderWay(at_once=self._limits.at_once)
        async with aclosing(_batches(texts, self._limits.batch)) as batches:
            try:
                under_way.expect(batches)
                while under_way:
                    for batch in await under_way.advance():
                        under_way.send(batch, self._documents(batch))
                        under_way.expect(batches)
                    for placed in under_way.arrived():
                        yield placed
            finally:
                await under_way.end()
        if under_way.failure:
            raise under_way.failure

    async def query(self, text: str) -> Vector:
        """The vector of a question. Those that are asked at the same moment go in one request."""
        answer: asyncio.Future[Vector] = asyncio.get_running_loop().create_future()
        self._asked.append((text, answer))
        if len(self._asked) == 1:
            task = asyncio.create_task(self._ask())
            self._asking.add(task)
            task.add_done_callback(self._asking.discard)
        return await answer

    def patient(self) -> HostedEmbedder:
        """The same service for an ingest: nobody waits for its questions, so they too wait for the service's limits."""
        other = copy(self)
        other._limits = replace(self._limits, question_seconds=_PATIENCE_SECONDS)
        other._for_questions = self._for_documents
        other._asked = []
        return other

    async def close(self) -> None:
        for task in self._asking:
            task.cancel()
        await asyncio.gather(*self._asking, return_exceptions=True)

    async def _ask(self) -> None:
        await asyncio.sleep(0)  # Whoever asks at the same moment gets to.
        asked, self._asked = self._asked, []
        for first in range(0, len(asked), self._limits.batch):
            some = asked[first : first + self._limits.batch]
            deadline = _after(self._limits.question_seconds)
            try:
                texts = tuple(text for text, _ in some)
                vectors = await self._call(self._for_questions, texts, Use.QUERY, deadline)
            except Exception as exc:
                _settle(some, exc)
            else:
                for (_, answer), vector in zip(some, vectors, strict=True):
                    if not answer.done():
                        answer.set_result(vector)

    async def _documents(self, batch: Batch) -> list[Vector]:
        return await self._call(self._for_documents, batch, Use.DOCUMENT, _after(_PATIENCE_SECONDS))

    async def _call(self, upstream: Upstream, texts: Batch, use: Use, deadline: Deadline) -> list[Vector]:
        sent = [_sendable(text) if text.strip() else NOTHING for text in texts]

        async def work() -> list[Vector]:
            await self._pace.turn(within=deadline.left())
            answer = await self._within_seconds(sent, use)
            self._pace.accepted()
            return self._checked(answer, len(sent))

        return await upstream.call(work, deadline=deadline, stage="embedding")

    async def _within_seconds(self, texts: Sequence[str], use: Use) -> Sequence[object]:
        seconds = self._limits.seconds
        try:
            async with asyncio.timeout(seconds) as limit:
                return await self._service.embed(texts, use)
        except TimeoutError as exc:
            if not limit.expired():
                raise
            raise DeadlineExceeded(f"{self._service.name} did not send vectors within {seconds:g} s") from exc

    def _judge(self, upstream: str, error: Exception, /) -> Failure | None:
        failure = self._service.judge(upstream, error)
        if failure and isinstance(failure.error, RateLimited):
            failure.error.retry_after = self._pace.refused(failure.error.retry_after)
        return failure

    def _checked(self, sent: Sequence[object], wanted: int) -> list[Vector]:
        """The vectors, each of length one. Raises what the service's failures are called if they cannot be right."""
        name, dimension = self._service.name, self._identity.dimension
        if len(sent) != wanted:
            raise self._service.error(f"{name} sent {len(sent)} vectors for {wanted} texts")
        try:
            rows = [_numbers(row) for row in sent]
        except (TypeError, ValueError) as exc:
            raise self._service.error(f"{name} sent something that is not a vector") from exc
        for row in rows:
            if row.ndim != 1 or row.size != (dimension or rows[0].size):
                wanted = dimension or rows[0].size
                raise self._service.error(
                    f"{name} sent a vector of {row.size} dimensions in place of {wanted}. If the model "
                    f"{self._identity.model!r} has changed, make the index anew with 'bythebook ingest --rebuild'"
                )
        lengths = [float(np.sqrt((row * row).sum())) for row in rows]
        if not all(0.0 < length < np.inf for length in lengths):
            raise self._service.error(f"{name} sent a vector that points nowhere")
        return [(row / length).astype(np.float32) for row, length in zip(rows, lengths, strict=True)]


class _UnderWay:
    """Requests that were sent, and the batch that is being gathered for the next one."""

    def __init__(self, *, at_once: int) -> None:
        self._at_once = at_once
        self._sent: dict[asyncio.Task[list[Vector]], int] = {}
        self._next: asyncio.Task[Batch | None] | None = None
        self._places = 0
        self._arrived: list[Placed] = []
        self.failure: Exception | None = None

    def __bool__(self) -> bool:
        return bool(self._sent or (self._next and not self.failure))

    def expect(self, batches: AsyncGenerator[Batch]) -> None:
        self._next = asyncio.create_task(_following(batches))

    def send(self, batch: Batch, work: Coroutine[Any, Any, list[Vector]]) -> None:
        self._sent[asyncio.create_task(work)] = self._places
        self._places += len(batch)

    async def advance(self) -> list[Batch]:
        """Wait until something happens. Returns the next batch if it is there and may be sent."""
        gathering = self._next if self._next and not self.failure and len(self._sent) < self._at_once else None
        done, _ = await asyncio.wait({*self._sent, *filter(None, [gathering])}, return_when=asyncio.FIRST_COMPLETED)
        for task in [task for task in self._sent if task in done]:
            self._take(task, self._sent.pop(task))
        if gathering is None or gathering not in done:
            return []
        self._next = None
        if error := gathering.exception():
            self._fail(error)
        batch = None if error else gathering.result()
        return [] if batch is None or self.failure else [batch]

    def arrived(self) -> list[Placed]:
        arrived, self._arrived = self._arrived, []
        return arrived

    async def end(self) -> None:
        """Stop what is still under way."""
        left = [*self._sent, *filter(None, [self._next])]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    def _take(self, task: asyncio.Task[list[Vector]], first: int) -> None:
        if error := task.exception():
            self._fail(error)
        else:
            self._arrived.extend(enumerate(task.result(), start=first))

    def _fail(self, error: BaseException) -> None:
        if not isinstance(error, Exception):
            raise error
        self.failure = self.failure or error


def _after(seconds: float) -> Deadline:
    return Deadline.after(seconds, first_token=seconds)


async def _following(batches: AsyncGenerator[Batch]) -> Batch | None:
    return await anext(batches, None)


async def _batches(texts: Texts, size: int) -> AsyncGenerator[Batch]:
    batch: list[str] = []
    async with aclosing(arriving(texts)) as coming:
        async for text in coming:
            batch.append(text)
            if len(batch) == size:
                yield tuple(batch)
                batch = []
    if batch:
        yield tuple(batch)


def _settle(asked: Sequence[tuple[str, asyncio.Future[Vector]]], error: Exception) -> None:
    for _, answer in asked:
        with suppress(asyncio.InvalidStateError):
            answer.set_exception(error)


def _sendable(text: str) -> str:
    # A lone surrogate is no character, and cannot be sent.
    return text.encode("utf-8", "replace").decode("utf-8")


def _numbers(sent: object) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    if isinstance(sent, str):
        try:
            sent = np.frombuffer(base64.b64decode(sent, validate=True), dtype="<f4")
        except binascii.Error as exc:
            raise ValueError("not base64") from exc
    return np.asarray(sent, dtype=np.float64)
