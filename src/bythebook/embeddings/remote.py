"""Hosted embedders: opening the configured one, batches, concurrent requests and an adaptive rate limit.

Tokens are counted with OpenAI's vocabulary. For other models that is an approximation: their vocabularies are
proprietary or too large to ship.
"""

import asyncio
import base64
import binascii
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from copy import copy
from dataclasses import replace
from enum import StrEnum
from typing import Any, Protocol

import numpy as np

from bythebook.embeddings import EmbedderId, Texts, Vector, iterate_texts
from bythebook.embeddings.config import EmbedderConfig, EmbedderLimits
from bythebook.embeddings.tokens import token_counter
from bythebook.errors import BookError, ConfigurationError, DeadlineExceeded, RateLimited
from bythebook.upstream.classify import ClassifiedError
from bythebook.upstream.client import RetryPolicy, Upstream
from bythebook.upstream.deadline import Deadline, now

MINUTE = 60.0
_TOLERATED_REFUSALS = 1
"""This many consecutive refusals are not taken for a limit yet."""


class AdaptiveRateLimiter:
    """Delays calls to stay under a provider's rate limit.

    A configured limit per minute is enforced. When the provider refuses a call, all calls pause for the time it asks
    for. Without such a time they pause with exponential backoff; if the provider then refuses again, the calls that
    it accepted in the last minute become the limit. That limit is raised by a quarter after each minute without a
    refusal.
    """

    def __init__(self, name: str, *, per_minute: int = 0) -> None:
        self._name = name
        self._configured = per_minute
        self._learned = 0
        self._accepted: deque[float] = deque()
        """The times of the calls of the last minute that were not refused."""
        self._paused_until = 0.0
        self._refusals = 0
        self._changed_at = 0.0

    async def acquire(self, *, within: float) -> None:
        """Wait until a call is allowed. Raises RateLimited at once if that takes longer than `within` seconds."""
        due = now() + within
        while (wait := self._wait_seconds()) > 0:
            if now() + wait > due:
                raise RateLimited(f"the rate limit of {self._name} is reached", retry_after=wait)
            await asyncio.sleep(wait)
        self._accepted.append(now())

    def record_success(self) -> None:
        self._refusals = 0
        if self._learned and now() - self._changed_at >= MINUTE:
            self._learned += max(1, self._learned // 4)
            self._changed_at = now()

    def record_refusal(self, retry_after: float | None) -> float:
        """Record a 429 response, with the seconds it asks for, if any. Returns the seconds that all calls pause."""
        if self._accepted:
            self._accepted.pop()
        # Calls in flight together are refused together: that counts as one refusal.
        if now() >= self._paused_until:
            self._refusals += 1
            if self._refusals > _TOLERATED_REFUSALS and retry_after is None:
                self._learn_limit()
            pause = min(2.0 ** (self._refusals - 1), MINUTE) if retry_after is None else retry_after
            self._paused_until = now() + pause
        elif retry_after is not None:
            self._paused_until = max(self._paused_until, now() + retry_after)
        return self._paused_until - now()

    def _learn_limit(self) -> None:
        self._drop_old_calls()
        if self._accepted:
            self._learned = len(self._accepted)
            self._changed_at = now()

    def _wait_seconds(self) -> float:
        """The seconds until the next call is allowed; 0 if it is allowed now."""
        self._drop_old_calls()
        limits = [limit for limit in (self._configured, self._learned) if limit]
        room = self._accepted[-min(limits)] + MINUTE if limits and len(self._accepted) >= min(limits) else 0.0
        return max(0.0, max(room, self._paused_until) - now())

    def _drop_old_calls(self) -> None:
        while self._accepted and self._accepted[0] <= now() - MINUTE:
            self._accepted.popleft()


Batch = tuple[str, ...]
IndexedVector = tuple[int, Vector]


def count_tokens(text: str) -> int:
    """The tokens of `text` in OpenAI's embedding models. Other models split text slightly finer or coarser."""
    return token_counter("cl100k_base")(text)


def truncate(text: str, window: int) -> str:
    """The beginning of `text` that fits into a context window of this many tokens."""
    while (tokens := count_tokens(text)) > window:
        text = text[: int(len(text) * window / tokens)]
    return text


INGEST_POLICY = RetryPolicy(patience=10)
"""For an ingest: it may wait minutes for a rate limit to reset, but retries failures only briefly."""
_INGEST_SECONDS = 900.0
EMPTY_TEXT = "-"
"""Sent in place of a blank text, which services reject."""


class InputType(StrEnum):
    """What a vector is used for, in Cohere's terms. Some models embed queries and documents differently."""

    DOCUMENT = "search_document"
    QUERY = "search_query"


class EmbeddingService(Protocol):
    """One provider's embedding API. It does not retry, wait or validate: `HostedEmbedder` does."""

    @property
    def name(self) -> str: ...

    @property
    def error(self) -> type[BookError]:
        """The error class of the service's failures."""
        ...

    async def embed(self, texts: Sequence[str], input_type: InputType) -> Sequence[object]:
        """The vector of each text, in order: a list of numbers, or base64 of 32-bit floats."""
        ...

    def classify(self, upstream: str, error: Exception, /) -> ClassifiedError | None: ...

    async def close(self) -> None: ...


class HostedEmbedder:
    """An embedder over a remote service: batches texts, sends several requests at once and obeys the rate limit."""

    def __init__(self, service: EmbeddingService, identity: EmbedderId, limits: EmbedderLimits) -> None:
        self._service = service
        self._identity = identity
        self._limits = limits
        self._rate_limiter = AdaptiveRateLimiter(service.name, per_minute=limits.per_minute)
        self._for_documents = Upstream(service.name, classify=self._classify, policy=INGEST_POLICY)
        self._for_queries = Upstream(service.name, classify=self._classify)
        self._queries: list[tuple[str, asyncio.Future[Vector]]] = []
        self._query_tasks: set[asyncio.Task[None]] = set()

    @property
    def identity(self) -> EmbedderId:
        return self._identity

    def count_tokens(self, text: str) -> int:
        return count_tokens(_replace_surrogates(text))

    async def embed_documents(self, texts: Texts) -> AsyncGenerator[Vector]:
        early: dict[int, Vector] = {}
        due = 0
        async with aclosing(self.embed_in_any_order(texts)) as results:
            async for index, vector in results:
                early[index] = vector
                while due in early:
                    yield early.pop(due)
                    due += 1

    async def embed_in_any_order(self, texts: Texts) -> AsyncGenerator[IndexedVector]:
        """Yield the index of each text with its vector, in the order of the responses.

        After a failure no more requests are sent. Results of requests in flight, which are paid for, are yielded
        before the error is raised.
        """
        requests: dict[asyncio.Task[list[Vector]], int] = {}
        sent, failure = 0, None
        async with aclosing(_batches(texts, self._limits.batch)) as batches:
            collecting: asyncio.Task[Batch | None] | None = asyncio.create_task(_next_batch(batches))
            try:
                while requests or (collecting and not failure):
                    has_slot = not failure and len(requests) < self._limits.concurrency
                    waiting: list[asyncio.Task[Any]] = [*requests, *([collecting] if collecting and has_slot else [])]
                    done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                    results: list[IndexedVector] = []
                    for request in [request for request in requests if request in done]:
                        first = requests.pop(request)
                        failure = failure or request.exception()
                        results += [] if request.exception() else enumerate(request.result(), start=first)
                    if collecting and collecting in done:
                        failure = failure or collecting.exception()
                        batch = None if failure else collecting.result()
                        collecting = asyncio.create_task(_next_batch(batches)) if batch else None
                        if batch:
                            requests[asyncio.create_task(self._embed_batch(batch))] = sent
                            sent += len(batch)
                    for result in results:
                        yield result
            finally:
                running = [*requests, *([collecting] if collecting else [])]
                for task in running:
                    task.cancel()
                await asyncio.gather(*running, return_exceptions=True)
        if failure:
            raise failure

    async def embed_query(self, text: str) -> Vector:
        """The vector of a question. Questions of the same event loop iteration share one request."""
        result: asyncio.Future[Vector] = asyncio.get_running_loop().create_future()
        self._queries.append((text, result))
        if len(self._queries) == 1:
            task = asyncio.create_task(self._embed_queries())
            self._query_tasks.add(task)
            task.add_done_callback(self._query_tasks.discard)
        return await result

    def for_ingest(self) -> "HostedEmbedder":
        """The same service with the retry policy and timeout of an ingest also for queries."""
        other = copy(self)
        other._limits = replace(self._limits, question_seconds=_INGEST_SECONDS)
        other._for_queries = self._for_documents
        other._queries = []
        return other

    async def close(self) -> None:
        for task in self._query_tasks:
            task.cancel()
        await asyncio.gather(*self._query_tasks, return_exceptions=True)

    async def _embed_queries(self) -> None:
        await asyncio.sleep(0)  # Let other tasks of this iteration add their queries.
        queries, self._queries = self._queries, []
        for first in range(0, len(queries), self._limits.batch):
            batch = queries[first : first + self._limits.batch]
            deadline = _after(self._limits.question_seconds)
            try:
                texts = tuple(text for text, _ in batch)
                vectors = await self._call(self._for_queries, texts, InputType.QUERY, deadline)
            except Exception as exc:
                for _, result in batch:
                    with suppress(asyncio.InvalidStateError):
                        result.set_exception(exc)
            else:
                for (_, result), vector in zip(batch, vectors, strict=True):
                    if not result.done():
                        result.set_result(vector)

    async def _embed_batch(self, batch: Batch) -> list[Vector]:
        return await self._call(self._for_documents, batch, InputType.DOCUMENT, _after(_INGEST_SECONDS))

    async def _call(self, upstream: Upstream, texts: Batch, input_type: InputType, deadline: Deadline) -> list[Vector]:
        sent = [_replace_surrogates(text) if text.strip() else EMPTY_TEXT for text in texts]

        async def request() -> list[Vector]:
            await self._rate_limiter.acquire(within=deadline.left())
            rows = await self._embed_with_timeout(sent, input_type)
            self._rate_limiter.record_success()
            return self._validate(rows, len(sent))

        return await upstream.call(request, deadline=deadline, stage="embedding")

    async def _embed_with_timeout(self, texts: Sequence[str], input_type: InputType) -> Sequence[object]:
        seconds = self._limits.seconds
        try:
            async with asyncio.timeout(seconds) as limit:
                return await self._service.embed(texts, input_type)
        except TimeoutError as exc:
            if not limit.expired():
                raise
            raise DeadlineExceeded(f"{self._service.name} did not send vectors within {seconds:g} s") from exc

    def _classify(self, upstream: str, error: Exception, /) -> ClassifiedError | None:
        failure = self._service.classify(upstream, error)
        if failure and isinstance(failure.error, RateLimited):
            failure.error.retry_after = self._rate_limiter.record_refusal(failure.error.retry_after)
        return failure

    def _validate(self, response: Sequence[object], texts: int) -> list[Vector]:
        """The vectors, normalised to unit length. Raises the service's error class if the response is malformed."""
        name, dimension = self._service.name, self._identity.dimension
        if len(response) != texts:
            raise self._service.error(f"{name} sent {len(response)} vectors for {texts} texts")
        try:
            rows = [_parse_vector(row) for row in response]
        except (TypeError, ValueError) as exc:
            raise self._service.error(f"{name} sent something that is not a vector") from exc
        for row in rows:
            expected = dimension or rows[0].size
            if row.ndim != 1 or row.size != expected:
                raise self._service.error(
                    f"{name} sent a vector of {row.size} dimensions instead of {expected}. If the model "
                    f"{self._identity.model!r} has changed, rebuild the index with 'bythebook ingest --rebuild'"
                )
        lengths = [float(np.sqrt((row * row).sum())) for row in rows]
        if not all(0.0 < length < np.inf for length in lengths):
            raise self._service.error(f"{name} sent a vector of length zero or infinity")
        return [(row / length).astype(np.float32) for row, length in zip(rows, lengths, strict=True)]


def _after(seconds: float) -> Deadline:
    return Deadline.after(seconds, first_token=seconds)


async def _next_batch(batches: AsyncGenerator[Batch]) -> Batch | None:
    return await anext(batches, None)


async def _batches(texts: Texts, size: int) -> AsyncGenerator[Batch]:
    batch: list[str] = []
    async with aclosing(iterate_texts(texts)) as iterator:
        async for text in iterator:
            batch.append(text)
            if len(batch) == size:
                yield tuple(batch)
                batch = []
    if batch:
        yield tuple(batch)


def _replace_surrogates(text: str) -> str:
    # A lone surrogate cannot be encoded as UTF-8, and so cannot be sent.
    return text.encode("utf-8", "replace").decode("utf-8")


def _parse_vector(value: object) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    if isinstance(value, str):
        try:
            value = np.frombuffer(base64.b64decode(value, validate=True), dtype="<f4")
        except binascii.Error as exc:
            raise ValueError("not base64") from exc
    return np.asarray(value, dtype=np.float64)


async def open_remote_embedder(
    config: EmbedderConfig, embedder_id: EmbedderId | None, stack: AsyncExitStack
) -> HostedEmbedder | None:
    """The configured hosted embedder, open until `stack` closes; None if the local one is configured."""
    if config.is_local:
        return None
    return await stack.enter_async_context(hosted_embedder(config, embedder_id=embedder_id))


@asynccontextmanager
async def hosted_embedder(config: EmbedderConfig, *, embedder_id: EmbedderId | None) -> AsyncIterator[HostedEmbedder]:
    """The configured hosted embedder.

    Its dimension comes from `embedder_id` (that of the existing index), from the table of known models, or from one
    request.
    """
    provider = config.provider
    if provider is None:
        raise ConfigurationError(f"{config.name!r} is not a hosted embedder.")
    if not config.api_key:
        raise ConfigurationError(f"{config.name!r} needs a key: set {provider.key_variable}.")
    # Importing the client takes a second. In a thread, everything else loads at the same time.
    service = await asyncio.to_thread(provider.build, config)
    try:
        dimension = config.known_model.dimension
        if embedder_id and embedder_id.model == config.name:
            dimension = embedder_id.dimension
        dimension = dimension or await _measure_dimension(service, config)
        embedder = HostedEmbedder(service, EmbedderId(config.name, dimension), config.limits)
        try:
            yield embedder
        finally:
            await embedder.close()
    finally:
        await service.close()


async def _measure_dimension(service: EmbeddingService, config: EmbedderConfig) -> int:
    embedder = HostedEmbedder(service, EmbedderId(config.name, 0), config.limits)
    try:
        return len(await embedder.embed_query("How many dimensions?"))
    finally:
        await embedder.close()
