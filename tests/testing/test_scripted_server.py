"""The scripted server, tested with the official `openai` client over a real socket."""

from __future__ import annotations

import asyncio
import json
import ssl
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import openai
import pytest
from openai import AsyncOpenAI

from bythebook.testing import (
    DEFAULT_FAULTS,
    CompletionRequest,
    Fault,
    Faults,
    Quirk,
    ScriptedReply,
    ScriptedServer,
    ScriptedToolCall,
    ScriptedUsage,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from openai.types.chat import ChatCompletion, ChatCompletionChunk

# Created once, because it is most of the cost of a client.
TLS = ssl.create_default_context()
ASKED: Any = [{"role": "user", "content": "How does it walk?"}]
SAID = "The robot walks on two legs.\nSlowly, but it does. "
SEARCH = ScriptedToolCall("search_docs", json.dumps({"query": "how a robot walks, in so many words"}))
TOOLS: Any = [{"type": "function", "function": {"name": "search_docs", "parameters": {"type": "object"}}}]


@asynccontextmanager
async def client_of(server: ScriptedServer, *, key: str = "any", patience: float = 5.0) -> AsyncIterator[AsyncOpenAI]:
    plain = openai.DefaultAsyncHttpxClient(verify=TLS)
    async with (
        server,
        AsyncOpenAI(
            base_url=server.base_url, api_key=key, max_retries=0, timeout=patience, http_client=plain
        ) as client,
    ):
        yield client


async def ask(client: AsyncOpenAI, **more: Any) -> ChatCompletion:
    answer: ChatCompletion = await client.chat.completions.create(model="m", messages=ASKED, **more)
    return answer


async def stream(client: AsyncOpenAI, **more: Any) -> list[ChatCompletionChunk]:
    chunks = await client.chat.completions.create(model="m", messages=ASKED, stream=True, **more)
    return [chunk async for chunk in chunks]


def text_of(chunks: Sequence[ChatCompletionChunk]) -> str:
    return "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)


def reasons_of(chunks: Sequence[ChatCompletionChunk]) -> list[str]:
    return [choice.finish_reason for chunk in chunks for choice in chunk.choices if choice.finish_reason]


async def test_a_complete_reply() -> None:
    server = ScriptedServer(ScriptedReply(SAID, usage=ScriptedUsage(7, 9)))
    async with client_of(server) as client:
        answer = await ask(client)
    choice = answer.choices[0]
    assert (choice.message.content, choice.finish_reason, choice.message.role) == (SAID, "stop", "assistant")
    assert answer.usage
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens) == (7, 9, 16)


async def test_a_reply_can_be_split_by_characters() -> None:
    async with client_of(ScriptedServer(ScriptedReply(SAID, letters=3))) as client:
        chunks = await stream(client)
    said = [choice.delta.content for chunk in chunks for choice in chunk.choices if choice.delta.content]
    assert said == [SAID[start : start + 3] for start in range(0, len(SAID), 3)]


async def test_a_stream_starts_with_the_role_and_has_one_word_per_chunk() -> None:
    async with client_of(ScriptedServer(ScriptedReply(SAID))) as client:
        chunks = await stream(client)
    assert (chunks[0].choices[0].delta.role, chunks[0].choices[0].delta.content) == ("assistant", "")
    assert text_of(chunks) == SAID
    assert len(chunks) > len(SAID.split())
    assert reasons_of(chunks) == ["stop"]
    assert all(chunk.usage is None for chunk in chunks)


async def test_usage_is_in_an_extra_last_chunk_on_request() -> None:
    async with client_of(ScriptedServer(ScriptedReply("Yes.", usage=ScriptedUsage(3, 1)))) as client:
        *chunks, last = await stream(client, stream_options={"include_usage": True})
    assert all(chunk.usage is None for chunk in chunks)
    assert last.choices == []
    assert last.usage
    assert last.usage.total_tokens == 4


@pytest.mark.parametrize("reason", ["length", "content_filter"])
async def test_a_reply_can_have_another_finish_reason(reason: str) -> None:
    async with client_of(ScriptedServer(ScriptedReply("The", finish_reason=reason))) as client:
        assert (await ask(client)).choices[0].finish_reason == reason
        assert reasons_of(await stream(client)) == [reason]


async def test_replies_of_a_list_are_sent_in_order_and_the_last_repeats() -> None:
    async with client_of(ScriptedServer([ScriptedReply("one"), ScriptedReply("two")])) as client:
        assert [(await ask(client)).choices[0].message.content for _ in range(3)] == ["one", "two", "two"]


async def test_a_function_can_be_the_script() -> None:
    async with client_of(
        ScriptedServer(lambda request: ScriptedReply(f"{request.number}: {request.messages[-1]['content']}"))
    ) as client:
        assert (await ask(client)).choices[0].message.content == "1: How does it walk?"


@pytest.mark.parametrize(
    ("quirks", "pieces", "ids"),
    [
        pytest.param([], 8, {"call_1_0", "call_1_1"}, id="OpenAI: arguments in pieces"),
        pytest.param([Quirk.WHOLE_ARGUMENTS], 2, {"call_1_0", "call_1_1"}, id="a call in one chunk"),
        pytest.param([Quirk.NO_CALL_IDS], 8, set(), id="calls without ids"),
    ],
)
async def test_streamed_tool_calls(quirks: Sequence[Quirk], pieces: int, ids: set[str]) -> None:
    calls = (SEARCH, ScriptedToolCall("search_docs", "{}"))
    async with client_of(ScriptedServer(ScriptedReply(tool_calls=calls), quirks=quirks)) as client:
        chunks = await stream(client, tools=TOOLS)
    parts = [call for chunk in chunks for choice in chunk.choices for call in choice.delta.tool_calls or []]
    arguments = ["".join(p.function.arguments or "" for p in parts if p.index == n and p.function) for n in (0, 1)]
    assert arguments == [call.arguments for call in calls]
    assert [part.function.name for part in parts if part.function and part.function.name] == ["search_docs"] * 2
    assert {part.id for part in parts if part.id} == ids
    assert len(parts) >= pieces
    assert reasons_of(chunks) == ["tool_calls"]


@pytest.mark.parametrize(
    ("quirk", "more"),
    [
        pytest.param(Quirk.REJECTS_STREAM_OPTIONS, {"stream_options": {"include_usage": True}}, id="stream_options"),
        pytest.param(Quirk.REJECTS_TOOLS, {"tools": TOOLS}, id="tools"),
    ],
)
async def test_quirks_reject_unsupported_fields(quirk: Quirk, more: dict[str, Any]) -> None:
    async with client_of(ScriptedServer(ScriptedReply("Yes."), quirks=[quirk])) as client:
        with pytest.raises(openai.BadRequestError, match=next(iter(more))):
            await stream(client, **more)
        assert text_of(await stream(client)) == "Yes."


async def test_small_quirks() -> None:
    quirks = [Quirk.NO_USAGE, Quirk.EMPTY_FIRST_CHUNK, Quirk.ROLE_IN_EVERY_CHUNK]
    async with client_of(ScriptedServer(ScriptedReply(SAID), quirks=quirks)) as client:
        chunks = await stream(client, stream_options={"include_usage": True})
        assert (await ask(client)).usage is None
    assert chunks[0].choices == []
    assert {choice.delta.role for chunk in chunks for choice in chunk.choices} == {"assistant"}
    assert all(chunk.usage is None for chunk in chunks)
    assert text_of(chunks) == SAID


STREAMED = {
    Fault.RATE_LIMIT: openai.RateLimitError,
    Fault.SERVER_ERROR: openai.InternalServerError,
    Fault.HANG: openai.APITimeoutError,
    Fault.RESET: openai.APIConnectionError,
    Fault.HALF_CLOSE: openai.APIConnectionError,
    Fault.NO_FINISH_REASON: None,
    Fault.CUT_CHUNK: None,
    Fault.BAD_JSON: json.JSONDecodeError,
    Fault.ERROR_IN_STREAM: openai.APIError,
    Fault.DRIP: TimeoutError,
    Fault.NO_CHOICES: None,
}
WHOLE = STREAMED | {Fault.CUT_CHUNK: json.JSONDecodeError, Fault.ERROR_IN_STREAM: None}


@pytest.mark.parametrize("fault", list(Fault))
async def test_r1_faults_in_a_stream_as_the_client_sees_them(fault: Fault) -> None:
    """For the client, a stream that is cut before its finish reason looks complete."""
    server = ScriptedServer(ScriptedReply(SAID, fault=fault, fault_after=3, drip=0.01))
    seen: list[ChatCompletionChunk] = []
    failed: type[Exception] | None = None
    async with client_of(server, patience=0.1) as client:
        try:
            async with asyncio.timeout(0.3):
                async for chunk in await client.chat.completions.create(model="m", messages=ASKED, stream=True):
                    seen.append(chunk)  # noqa: PERF401 - what was seen before the fault counts
        except Exception as exc:
            failed = type(exc)
    assert failed == STREAMED[fault]
    assert reasons_of(seen) == []
    if fault not in (Fault.RATE_LIMIT, Fault.SERVER_ERROR, Fault.NO_CHOICES):
        assert text_of(seen).startswith("The robot walks")
    if fault is not Fault.DRIP:
        assert SAID not in text_of(seen)


@pytest.mark.parametrize("after", [0, 1])
@pytest.mark.parametrize("fault", list(Fault))
async def test_r1_faults_in_a_complete_reply_as_the_client_sees_them(fault: Fault, after: int) -> None:
    failed: type[Exception] | None = None
    async with client_of(
        ScriptedServer(ScriptedReply(SAID, fault=fault, fault_after=after, drip=0.01)), patience=0.1
    ) as client:
        try:
            async with asyncio.timeout(0.3):
                answer = await ask(client)
            assert not answer.choices or answer.choices[0].finish_reason is None
        except Exception as exc:
            failed = type(exc)
    assert failed == WHOLE[fault]


async def test_a_rate_limit_can_have_a_retry_after() -> None:
    replies = [ScriptedReply(fault=Fault.RATE_LIMIT, retry_after="7"), ScriptedReply(fault=Fault.RATE_LIMIT)]
    async with client_of(ScriptedServer(replies)) as client:
        for expected in ("7", None):
            with pytest.raises(openai.RateLimitError) as raised:
                await ask(client)
            assert raised.value.response.headers.get("retry-after") == expected


async def test_any_error_status_can_be_scripted() -> None:
    reply = ScriptedReply(status=400, error_code="context_length_exceeded", error_message="Too long.")
    async with client_of(ScriptedServer(reply)) as client:
        with pytest.raises(openai.BadRequestError, match=r"Too long\.") as raised:
            await ask(client)
    assert raised.value.code == "context_length_exceeded"


async def test_only_the_right_key_is_accepted() -> None:
    server = ScriptedServer(ScriptedReply("Yes."), key="right")
    async with client_of(server, key="wrong") as client:
        with pytest.raises(openai.AuthenticationError):
            await ask(client)
        assert (await ask(client.with_options(api_key="right"))).choices[0].message.content == "Yes."
    assert server.counters == {"requests": 1, "ok": 1}


async def test_models_and_unknown_routes() -> None:
    async with client_of(ScriptedServer(ScriptedReply())) as client:
        assert [model.id async for model in client.models.list()] == ["scripted"]
        with pytest.raises(openai.NotFoundError):
            await client.embeddings.create(model="m", input="text")


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"what is this\r\n\r\n", id="not HTTP"),
        pytest.param(b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: 3\r\n\r\nnot", id="not JSON"),
        pytest.param(b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}", id="no messages"),
        pytest.param(b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: -1\r\n\r\n", id="a length below nothing"),
        pytest.param(b"GET / HTTP/1.1\r\nx: " + b"x" * 70_000 + b"\r\n\r\n", id="a head without end"),
    ],
)
async def test_malformed_requests_get_400(sent: bytes) -> None:
    async with ScriptedServer(ScriptedReply()) as server:
        host, port = server.base_url.removeprefix("http://").removesuffix("/v1").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(sent)
        assert (await reader.readline()).startswith(b"HTTP/1.1 400 ")
        writer.close()
        await writer.wait_closed()


async def test_r3_a_disconnect_is_detected_immediately() -> None:
    loop = asyncio.get_running_loop()
    server = ScriptedServer([ScriptedReply(fault=Fault.HANG), ScriptedReply(SAID, delay_token=30.0)])
    async with client_of(server, patience=30.0) as client:
        for number in (1, 2):
            asking = asyncio.ensure_future(stream(client))
            await server.wait_for_requests(number)
            asking.cancel()
            left = loop.time()
            with pytest.raises(asyncio.CancelledError):
                await asking
            await server.exchanges[-1].ended.wait()
            noticed = server.exchanges[-1].left_at
            assert noticed
            assert noticed - left < 1.0
    assert server.counters == {"requests": 2, "hang": 1, "left": 1}


async def test_requests_are_recorded() -> None:
    server = ScriptedServer(ScriptedReply("Yes."))
    async with client_of(server, key="secret") as client:
        await ask(client, temperature=0.3)
    exchange = server.exchanges[0]
    assert exchange.request.body == {"model": "m", "messages": ASKED, "temperature": 0.3}
    assert exchange.request.headers["authorization"] == "Bearer secret"
    assert (exchange.outcome, exchange.left_at, exchange.ended.is_set()) == ("ok", None, True)


def test_faults_are_reproducible_and_have_their_rate() -> None:
    def drawn(seed: int) -> list[tuple[Fault | None, int]]:
        spoiled = [Faults(0.2, seed=seed).inject(ScriptedReply(SAID), number) for number in range(1, 2001)]
        return [(reply.fault, reply.fault_after) for reply in spoiled]

    first = drawn(7)
    assert first == drawn(7)
    assert first != drawn(8)
    assert {fault for fault, _ in first} == {None, *DEFAULT_FAULTS}
    assert 0.17 < sum(fault is not None for fault, _ in first) / 2000 < 0.23


def test_a_scripted_fault_is_not_replaced() -> None:
    reply = ScriptedReply(fault=Fault.DRIP)
    assert Faults(1.0).inject(reply, 1) == reply


@pytest.mark.parametrize("delay", [-1.0, float("inf"), float("nan")])
def test_a_delay_must_be_a_number_of_seconds(delay: float) -> None:
    with pytest.raises(ValueError, match="number of seconds"):
        ScriptedReply(delay_first=delay)


async def test_an_exception_in_a_script_fails_the_test() -> None:
    def script(_request: CompletionRequest) -> ScriptedReply:
        raise LookupError("a mistake")

    with pytest.RaisesGroup(LookupError):
        async with client_of(ScriptedServer(script)) as client:
            await ask(client)
