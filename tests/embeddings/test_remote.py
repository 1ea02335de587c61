"""The hosted embedder: batches, concurrency, rate limits and failures."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from bythebook.embeddings import EmbedderId
from bythebook.embeddings.config import EmbedderLimits
from bythebook.embeddings.remote import HostedEmbedder, InputType
from bythebook.errors import DeadlineExceeded, RateLimited, RetrievalError
from bythebook.upstream.classify import ClassifiedError, classify_book_error
from bythebook.upstream.deadline import now
from tests.support.clock import autojump_clock
from tests.support.word_embedder import DIMENSION, vector_of

if TYPE_CHECKING:
    from bythebook.embeddings import Texts, Vector


class BusyError(Exception):
    """Raised by the service for a 429 response."""


@dataclass
class Double:
    """An embedding service in this process."""

    name: str = "Double"
    error: type[RetrievalError] = RetrievalError
    answer: Callable[[int, Sequence[str]], None] = lambda _number, _texts: None
    """Called for each request. The service raises what it raises."""
    takes: Callable[[int], float] = lambda _number: 1.0
    asked: list[tuple[str, ...]] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0

    async def embed(self, texts: Sequence[str], use: InputType) -> Sequence[object]:
        self.asked.append(tuple(texts))
        number = len(self.asked)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await asyncio.sleep(self.takes(number))
            self.answer(number, texts)
        finally:
            self.at_once -= 1
        return [vector_of(text if use is InputType.DOCUMENT else f"? {text}").tolist() for text in texts]

    def classify(self, upstream: str, error: Exception, /) -> ClassifiedError | None:
        if isinstance(error, BusyError):
            return ClassifiedError(RateLimited(f"{upstream} is busy"), again=True, counts=False)
        return classify_book_error(upstream, error)

    async def close(self) -> None: ...


def embedder(service: Double, **limits: float) -> HostedEmbedder:
    return HostedEmbedder(service, EmbedderId("double", DIMENSION), EmbedderLimits(**limits))  # type: ignore[arg-type]


def texts(count: int) -> list[str]:
    return [f"text {number}" for number in range(count)]


async def come(made: HostedEmbedder, wanted: Texts) -> list[int]:
    return [place async for place, _ in made.embed_in_any_order(wanted)]


async def note(made: HostedEmbedder, wanted: Texts, came: list[int]) -> None:
    """Collect results until the stream ends or fails."""
    async for place, _ in made.embed_in_any_order(wanted):
        came.append(place)


def same(vector: Vector, other: Vector) -> bool:
    return float(vector @ other) > 0.999999


@autojump_clock
async def test_sends_batches_concurrently_and_yields_vectors_in_order() -> None:
    service = Double(takes=lambda number: 10.0 - number)
    wanted = texts(50)
    found = [vector async for vector in embedder(service, batch=8, concurrency=3).embed_documents(wanted)]
    assert [len(batch) for batch in service.asked] == [8] * 6 + [2]
    assert service.most_at_once == 3
    assert all(same(vector, vector_of(text)) for vector, text in zip(found, wanted, strict=True))


@autojump_clock
async def test_unordered_results_arrive_while_texts_are_still_produced() -> None:
    async def slowly() -> AsyncIterator[str]:
        for number in range(6):
            await asyncio.sleep(10.0)
            yield f"text {number}"

    moments = [(place, now()) async for place, _ in embedder(Double(), batch=2).embed_in_any_order(slowly())]
    assert moments == [(0, 21.0), (1, 21.0), (2, 41.0), (3, 41.0), (4, 61.0), (5, 61.0)]


@autojump_clock
async def test_a_failure_stops_new_requests_but_yields_results_in_flight() -> None:
    def third_fails(number: int, _texts: Sequence[str]) -> None:
        if number == 3:
            raise InvalidRequestError("never")

    service = Double(answer=third_fails, takes=lambda number: 1.0 if number == 3 else 5.0)
    made = embedder(service, batch=1, concurrency=4)
    came: list[int] = []
    with pytest.raises(InvalidRequestError):
        await note(made, texts(20), came)
    assert sorted(came) == [0, 1, 3]
    assert len(service.asked) == 4


class InvalidRequestError(RetrievalError):
    recoverable = False


@autojump_clock
async def test_an_error_of_the_text_iterator_is_raised() -> None:
    async def broken() -> AsyncIterator[str]:
        yield "a"
        yield "b"
        raise ValueError("no more")

    came: list[int] = []
    with pytest.raises(ValueError, match="no more"):
        await note(embedder(Double(), batch=2), broken(), came)
    assert came == [0, 1]


@autojump_clock
async def test_an_ingest_with_the_rate_limit_of_a_trial_key_completes() -> None:
    """Five calls in every minute of the clock, without a retry-after header."""
    accepted: dict[int, int] = {}
    refused = 0

    def by_the_minute(_number: int, _texts: Sequence[str]) -> None:
        nonlocal refused
        minute = int(now() // 60)
        if accepted.get(minute, 0) == 5:
            refused += 1
            raise BusyError
        accepted[minute] = accepted.get(minute, 0) + 1

    service = Double(answer=by_the_minute, takes=lambda _: 0.1)
    made = embedder(service, batch=96, concurrency=4)
    assert sorted(await come(made, texts(96 * 40))) == list(range(96 * 40))
    assert sum(accepted.values()) == 40
    assert now() < 15 * 60
    assert refused < 40


@autojump_clock
async def test_an_ingest_stops_waiting_for_a_rate_limit_after_its_deadline() -> None:
    def never(_number: int, _texts: Sequence[str]) -> None:
        raise BusyError

    service = Double(answer=never)
    with pytest.raises(RateLimited) as caught:
        await come(embedder(service), texts(1))
    assert len(service.asked) == 13
    assert caught.value.retry_after
    assert 300 < now() < 600


@autojump_clock
async def test_a_failed_request_is_sent_three_times() -> None:
    def never(_number: int, _texts: Sequence[str]) -> None:
        raise RetrievalError("ill")

    service = Double(answer=never)
    with pytest.raises(RetrievalError, match="ill"):
        await come(embedder(service), texts(1))
    assert len(service.asked) == 3


@autojump_clock
async def test_a_hanging_request_times_out_and_is_retried() -> None:
    service = Double(takes=lambda number: 10_000.0 if number == 1 else 1.0)
    assert await come(embedder(service, seconds=30.0), texts(2)) == [0, 1]
    assert 31.0 <= now() < 40.0


@autojump_clock
async def test_a_query_fails_at_its_deadline_if_the_service_hangs() -> None:
    service = Double(takes=lambda _: 10_000.0)
    with pytest.raises(DeadlineExceeded):
        await embedder(service, question_seconds=5.0).embed_query("What?")
    assert now() <= 5.0


@autojump_clock
async def test_a_rate_limited_query_fails_with_a_retry_time() -> None:
    service = Double(answer=lambda *_: (_ for _ in ()).throw(BusyError), takes=lambda _: 0.1)
    made = embedder(service, question_seconds=5.0)
    for _ in range(3):
        with pytest.raises(RateLimited):
            await made.embed_query("What?")
    asked = len(service.asked)
    with pytest.raises(RateLimited) as caught:
        await made.embed_query("What?")
    assert caught.value.retry_after
    assert len(service.asked) <= asked + 1


@autojump_clock
async def test_concurrent_queries_share_one_request() -> None:
    service = Double()
    made = embedder(service, batch=96)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(made.embed_query(f"What is {number}?")) for number in range(100)]
    assert [len(batch) for batch in service.asked] == [96, 4]
    assert all(same(task.result(), vector_of(f"? What is {n}?")) for n, task in enumerate(tasks))
    await made.embed_query("One more?")
    assert service.asked[-1] == ("One more?",)


@autojump_clock
async def test_a_cancelled_query_does_not_cancel_others_in_its_request() -> None:
    made = embedder(Double())
    leaving, staying = [asyncio.create_task(made.embed_query(text)) for text in ("leaving", "staying")]
    await asyncio.sleep(0.5)
    leaving.cancel()
    assert same(await staying, vector_of("? staying"))
    with pytest.raises(asyncio.CancelledError):
        await leaving


@autojump_clock
async def test_closing_cancels_requests_in_flight() -> None:
    service = Double(takes=lambda _: 10_000.0)
    made = embedder(service, batch=1)
    async with aclosing(made.embed_in_any_order(texts(20))) as coming:
        waiting = asyncio.ensure_future(anext(coming))
        await asyncio.sleep(1.0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    asking = asyncio.create_task(made.embed_query("What?"))
    await asyncio.sleep(1.0)
    await made.close()
    asking.cancel()
    assert service.at_once == 0


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        pytest.param([], "sent 0 vectors for 1 texts", id="none"),
        pytest.param([[1.0]], "a vector of 1 dimensions instead of 32", id="another dimension"),
        pytest.param([[0.0] * DIMENSION], "length zero or infinity", id="zero"),
        pytest.param([[float("nan")] * DIMENSION], "length zero or infinity", id="not a number"),
        pytest.param([[float("inf")] * DIMENSION], "length zero or infinity", id="endless"),
        pytest.param([["x"] * DIMENSION], "not a vector", id="words"),
        pytest.param(["%%%"], "not a vector", id="not base64"),
        pytest.param([None], "not a vector|dimensions|nowhere", id="nothing"),
    ],
)
def test_rejects_malformed_vectors(rows: list[object], reason: str) -> None:
    @autojump_clock
    async def check() -> None:
        class Lying(Double):
            async def embed(self, _texts: Sequence[str], _use: InputType) -> Sequence[object]:
                return rows

        with pytest.raises(RetrievalError, match=reason):
            await embedder(Lying()).embed_query("What?")

    check()
