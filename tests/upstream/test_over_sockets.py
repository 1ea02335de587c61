"""HARDENING R4, R5, R6 and a small R1: the real client with a real server and every fault."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, aclosing, asynccontextmanager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import httpx
import openai
import pytest
from openai import AsyncOpenAI

from bythebook.errors import BookError, CohereAPIError, ProviderError, RateLimited, Unavailable
from bythebook.testing import DEFAULT_FAULTS, CompletionRequest, Fault, Faults, ScriptedReply, ScriptedServer
from bythebook.upstream.circuit_breaker import BreakerState
from bythebook.upstream.classify import classify_http_error
from bythebook.upstream.client import RetryPolicy, Upstream
from bythebook.upstream.deadline import Deadline
from bythebook.upstream.openai import classify_openai_error

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from openai.types.chat import ChatCompletion, ChatCompletionChunk

KEY = "sk-canary-7f3a9b"
SAID = "The robot walks on two legs."
GRACE = 0.5
QUICK = RetryPolicy(first_wait=0.01)
# Made once, because it is most of what a client costs.
TLS = ssl.create_default_context()


ENDLESS = (Fault.HANG, Fault.DRIP)


def deadline_for(fault: Fault, *, endless: float = 0.5) -> Deadline:
    """Short for faults that only the deadline ends, long for faults that end without it."""
    seconds = endless if fault in ENDLESS else 60.0
    return Deadline.after(seconds, first_token=seconds * 0.8)


Within = Callable[[float], AbstractContextManager[None]]


@pytest.fixture
def within(request: pytest.FixtureRequest) -> Within:
    """Asserts that the block takes at most this many seconds, or a minute where the machine may be busy."""
    full = bool(request.config.getoption("--full-size"))

    @contextmanager
    def bounded(seconds: float) -> Iterator[None]:
        begun = time.perf_counter()
        yield
        assert time.perf_counter() - begun < (seconds if full else 60.0)

    return bounded


async def finished_stream(
    upstream: str, chunks: AsyncIterator[ChatCompletionChunk]
) -> AsyncIterator[ChatCompletionChunk]:
    """The chunks of a streamed answer. The client accepts a stream that was cut off as one that has ended."""
    finished = False
    async for chunk in chunks:
        finished = finished or any(choice.finish_reason for choice in chunk.choices)
        yield chunk
    if not finished:
        raise ProviderError(f"{upstream} broke off in the middle of an answer")


def finished_answer(upstream: str, answer: ChatCompletion) -> ChatCompletion:
    """An answer with a finish reason. The client parses an error that was sent with status 200 as an empty answer."""
    if not answer.choices or not answer.choices[0].finish_reason:
        raise ProviderError(f"{upstream} sent an answer that is not finished")
    return answer


class Model:
    """A minimal adapter: the official client behind an upstream."""

    def __init__(self, client: AsyncOpenAI, policy: RetryPolicy) -> None:
        self._client = client
        self.upstream = Upstream("model", classify=classify_openai_error, policy=policy)
        self.seen = ""

    async def ask(self, deadline: Deadline, question: str = "How?") -> str:
        async def work() -> str:
            create = self._client.chat.completions.create
            answer = await create(model="m", messages=[{"role": "user", "content": question}])
            return finished_answer("model", answer).choices[0].message.content or ""

        return await self.upstream.call(work, deadline=deadline, stage="generate")

    async def stream(self, deadline: Deadline, question: str = "How?", *, patient: bool = False) -> str:
        async def start() -> AsyncIterator[ChatCompletionChunk]:
            create = self._client.chat.completions.create
            chunks = await create(model="m", messages=[{"role": "user", "content": question}], stream=True)
            async with chunks:
                async for chunk in finished_stream("model", chunks):
                    yield chunk

        def size(chunk: ChatCompletionChunk) -> int:
            return 0 if patient else 1000 * len(_text(chunk))

        self.seen = seen = ""
        stream = self.upstream.stream(start, deadline=deadline, stage="generate", size=size)
        async with aclosing(stream) as chunks:
            async for chunk in chunks:
                self.seen = seen = seen + _text(chunk)
        return seen


def _text(chunk: ChatCompletionChunk) -> str:
    return "".join(choice.delta.content or "" for choice in chunk.choices)


@asynccontextmanager
async def model_of(server: ScriptedServer, *, policy: RetryPolicy = QUICK) -> AsyncIterator[Model]:
    async with server, client_at(server.base_url) as client:
        yield Model(client, policy)


def client_at(address: str) -> AsyncOpenAI:
    return AsyncOpenAI(
        base_url=address, api_key=KEY, max_retries=0, http_client=openai.DefaultAsyncHttpxClient(verify=TLS)
    )


# What each fault is for the caller when it never goes away.
LASTING = {
    Fault.RATE_LIMIT: "rate_limit",
    Fault.HANG: "timeout",
    Fault.DRIP: "timeout",
}


@pytest.mark.parametrize("way", ["stream", "ask"])
@pytest.mark.parametrize("fault", list(Fault))
async def test_r4_a_permanent_fault_ends_in_time_after_at_most_three_attempts(
    fault: Fault, way: str, within: Within
) -> None:
    server = ScriptedServer(ScriptedReply(SAID, fault=fault, drip=0.02))
    async with model_of(server) as model:
        with within(0.5 + GRACE), pytest.raises(BookError) as raised:
            await getattr(model, way)(deadline_for(fault))
    assert raised.value.code == LASTING.get(fault, "api_error")
    assert raised.value.stage.startswith("generate")
    assert KEY not in str(raised.value)
    assert server.counters["requests"] <= 3
    if fault not in ENDLESS:
        assert server.counters["requests"] == 3


@pytest.mark.parametrize("way", ["stream", "ask"])
@pytest.mark.parametrize("fault", [fault for fault in Fault if fault is not Fault.DRIP])
async def test_r4_a_transient_fault_is_retried(fault: Fault, way: str) -> None:
    server = ScriptedServer([ScriptedReply(SAID, fault=fault), ScriptedReply(SAID)])
    async with model_of(server, policy=RetryPolicy(first_wait=0.01, share=0.02)) as model:
        assert await getattr(model, way)(Deadline.after(60.0, first_token=60.0)) == SAID
    assert server.counters["requests"] == 2


MID_STREAM = [fault for fault in Fault if fault not in (Fault.RATE_LIMIT, Fault.SERVER_ERROR, Fault.NO_CHOICES)]


@pytest.mark.parametrize("fault", MID_STREAM)
async def test_r1_a_stream_that_breaks_after_its_first_text_is_an_error(fault: Fault, within: Within) -> None:
    server = ScriptedServer([ScriptedReply(SAID, fault=fault, fault_after=3, drip=0.02), ScriptedReply(SAID)])
    async with model_of(server) as model:
        with within(5.0 + GRACE), pytest.raises(BookError) as raised:
            await model.stream(deadline_for(fault, endless=5.0))
    assert raised.value.stage == "generate: mid-stream"
    assert model.seen.startswith("The robot walks")
    assert server.counters["requests"] == 1


async def test_r4_waits_for_retry_after_or_fails_at_once_if_it_is_too_long(
    within: Within,
) -> None:
    fits = ScriptedReply(fault=Fault.RATE_LIMIT, retry_after="0.2")
    too_long = ScriptedReply(fault=Fault.RATE_LIMIT, retry_after="60")
    server = ScriptedServer([fits, ScriptedReply(SAID), too_long])
    async with model_of(server) as model:
        begun = time.perf_counter()
        assert await model.ask(Deadline.after(30.0, first_token=30.0)) == SAID
        waited = time.perf_counter() - begun
        with within(0.2), pytest.raises(RateLimited) as raised:
            await model.ask(Deadline.after(30.0, first_token=30.0))
    assert waited >= 0.2
    assert raised.value.retry_after == 60.0
    assert server.counters["requests"] == 3


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        pytest.param(ScriptedReply(status=400), "api_error", id="400"),
        pytest.param(ScriptedReply(status=403), "provider_auth", id="403"),
        pytest.param(ScriptedReply(status=404), "api_error", id="404"),
        pytest.param(ScriptedReply(status=409), "api_error", id="409"),
        pytest.param(ScriptedReply(status=422), "api_error", id="422"),
        pytest.param(
            ScriptedReply(status=400, error_code="context_length_exceeded"),
            "context_overflow",
            id="too long: error code",
        ),
        pytest.param(
            ScriptedReply(status=400, error_message="This model's maximum context length is 8192 tokens."),
            "context_overflow",
            id="too long: message",
        ),
        pytest.param(
            ScriptedReply(status=429, error_code="insufficient_quota"), "api_error", id="no credit is no rate limit"
        ),
    ],
)
async def test_spec_5_a_rejection_is_not_retried_and_does_not_count(reply: ScriptedReply, code: str) -> None:
    server = ScriptedServer(reply)
    async with model_of(server) as model:
        for _ in range(6):
            with pytest.raises(BookError) as raised:
                await model.ask(Deadline.after(5.0))
            assert raised.value.code == code
        assert model.upstream.breaker.state == BreakerState.CLOSED
    assert server.counters["requests"] == 6


async def test_spec_5_the_error_does_not_contain_the_rejected_key() -> None:
    """The server quotes the key in its error, as providers do."""
    async with model_of(ScriptedServer(ScriptedReply(), key="another")) as model:
        with pytest.raises(BookError) as raised:
            await model.ask(Deadline.after(5.0))
    assert KEY in str(raised.value.__cause__)
    assert KEY not in f"{raised.value} {raised.value.reader_message}"
    assert (raised.value.code, raised.value.status_code, raised.value.recoverable) == ("provider_auth", 502, False)


async def test_r5_an_open_breaker_rejects_within_ten_milliseconds(within: Within) -> None:
    server = ScriptedServer(ScriptedReply(fault=Fault.SERVER_ERROR))
    async with model_of(server) as model:
        for _ in range(5):
            with pytest.raises(BookError):
                await model.ask(Deadline.after(5.0))
        with within(0.010), pytest.raises(Unavailable) as raised:
            await model.ask(Deadline.after(5.0))
    assert raised.value.retry_after is not None
    assert 0.0 < raised.value.retry_after <= 10.0
    assert server.counters["requests"] == 15


async def test_an_unreachable_server_is_an_error() -> None:
    async with ScriptedServer(ScriptedReply()) as server:
        address = server.base_url
    async with client_at(address) as client:
        with pytest.raises(BookError, match="connection to model broke") as raised:
            await Model(client, QUICK).ask(Deadline.after(5.0))
    assert raised.value.code == "api_error"


@pytest.mark.parametrize(
    "reply",
    [ScriptedReply(fault=Fault.HANG), ScriptedReply(SAID, fault=Fault.HANG, fault_after=2)],
    ids=["first token", "mid-stream"],
)
async def test_r3_the_call_outside_ends_within_a_second_of_the_reader_leaving(
    reply: ScriptedReply, within: Within
) -> None:
    server = ScriptedServer(reply)
    async with model_of(server) as model:
        reading = asyncio.ensure_future(model.stream(Deadline.after(30.0)))
        await server.wait_for_requests(1)
        with within(1.0):
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading
            await server.exchanges[0].ended.wait()
    assert server.exchanges[0].left_at is not None


PROMPT = tuple(fault for fault in DEFAULT_FAULTS if fault not in ENDLESS)


async def test_r1_fifty_readers_with_a_fifth_of_all_calls_failing(request: pytest.FixtureRequest) -> None:
    """Nothing is yielded before the answer is complete, so every fault can be retried.

    Only faults that end without the deadline are used; the others would measure the speed of the machine. The faults
    are assigned in order of arrival, so the number of failures is random. It is asserted at full size only.
    """

    def echo(request: CompletionRequest) -> ScriptedReply:
        return ScriptedReply(f"You asked: {request.messages[-1]['content']}")

    server = ScriptedServer(echo, faults=Faults(0.2, seed=7, kinds=PROMPT))
    ends: list[str] = []

    async def reader(model: Model, name: int) -> None:
        for turn in range(3):
            question = f"reader {name}, turn {turn}"
            try:
                answer = await model.stream(Deadline.after(60.0, first_token=60.0), question, patient=True)
            except BookError as error:
                ends.append(error.code)
            else:
                assert answer == f"You asked: {question}"
                ends.append("answer")

    async with model_of(server) as model, asyncio.TaskGroup() as group:
        for name in range(50):
            group.create_task(reader(model, name))
    assert len(ends) == 150
    assert server.counters["ok"] == ends.count("answer")
    assert sum(count for outcome, count in server.counters.items() if outcome not in ("requests", "ok")) >= 20
    if request.config.getoption("--full-size"):
        assert ends.count("answer") >= 146


HTTP = {
    Fault.RATE_LIMIT: "rate_limit",
    Fault.SERVER_ERROR: "retrieval_error",
    Fault.HANG: "timeout",
    Fault.RESET: "retrieval_error",
    Fault.HALF_CLOSE: "retrieval_error",
    Fault.DRIP: "timeout",
}


@pytest.mark.parametrize("fault", list(HTTP))
async def test_r4_the_same_faults_through_httpx(fault: Fault) -> None:
    server = ScriptedServer(ScriptedReply(SAID, fault=fault, drip=0.02))
    upstream = Upstream("cohere", classify=partial(classify_http_error, error=CohereAPIError), policy=QUICK)
    body = {"messages": [{"role": "user", "content": "How?"}]}

    async with server, httpx.AsyncClient(verify=TLS) as client:

        async def work() -> Any:
            response = await client.post(f"{server.base_url}/chat/completions", json=body)
            return response.raise_for_status().json()

        with pytest.raises(BookError) as raised:
            await upstream.call(work, deadline=deadline_for(fault), stage="embed")
    assert (raised.value.code, raised.value.stage) == (HTTP[fault], "embed")
    assert server.counters["requests"] <= 3


async def test_an_invalid_url_is_not_a_failure_of_the_service() -> None:
    upstream = Upstream("cohere", classify=classify_http_error)
    async with httpx.AsyncClient(verify=TLS) as client:
        with pytest.raises(httpx.UnsupportedProtocol):
            await upstream.call(lambda: client.get("ftp://nowhere"), deadline=Deadline.after(5.0), stage="embed")
