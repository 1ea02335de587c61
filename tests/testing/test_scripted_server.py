"""The scripted server as a client sees it: the official `openai` client over a real socket."""

from __future__ import annotations

import asyncio
import json
import ssl
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import openai
import pytest
from openai import AsyncOpenAI

from bythebook.testing import EVERYDAY_FAULTS, Fault, Faults, Quirk, Reply, Request, ScriptedServer, ToolCall, Usage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from openai.types.chat import ChatCompletion, ChatCompletionChunk

# Made once, because it is most of what a client costs.
TLS = ssl.create_default_context()
ASKED: Any = [{"role": "user", "content": "How does it walk?"}]
SAID = "The robot walks on two legs.\nSlowly, but it does. "
SEARCH = ToolCall("search_docs", json.dumps({"query": "how a robot walks, in so many words"}))
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


async def test_a_whole_reply() -> None:
    server = ScriptedServer(Reply(SAID, usage=Usage(7, 9)))
    async with client_of(server) as client:
        answer = await ask(client)
    choice = answer.choices[0]
    assert (choice.message.content, choice.finish_reason, choice.message.role) == (SAID, "stop", "assistant")
    assert answer.usage
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens) == (7, 9, 16)


async def test_a_reply_can_be_cut_up_anywhere() -> None:
    async with client_of(ScriptedServer(Reply(SAID, letters=3))) as client:
        chunks = await stream(client)
    said = [choice.delta.content for chunk in chunks for choice in chunk.choices if choice.delta.content]
    assert said == [SAID[start : start + 3] for start in range(0, len(SAID), 3)]


async def test_a_streamed_reply_comes_word_by_word_after_a_chunk_with_only_the_role() -> None:
    async with client_of(ScriptedServer(Reply(SAID))) as client:
        chunks = await stream(client)
    assert (chunks[0].choices[0].delta.role, chunks[0].choices[0].delta.content) == ("assistant", "")
    assert text_of(chunks) == SAID
    assert len(chunks) > len(SAID.split())
    assert reasons_of(chunks) == ["stop"]
    assert all(chunk.usage is None for chunk in chunks)


async def test_usage_comes_in_a_last_chunk_of_its_own_when_asked_for() -> None:
    async with client_of(ScriptedServer(Reply("Yes.", usage=Usage(3, 1)))) as client:
        *chunks, last = await stream(client, stream_options={"include_usage": True})
    assert all(chunk.usage is None for chunk in chunks)
    assert last.choices == []
    assert last.usage
    assert last.usage.total_tokens == 4


@pytest.mark.parametrize("reason", ["length", "content_filter"])
async def test_a_reply_may_be_finished_for_another_reason(reason: str) -> None:
    async with client_of(ScriptedServer(Reply("The", finish_reason=reason))) as client:
        assert (await ask(client)).choices[0].finish_reason == reason
        assert reasons_of(await stream(client)) == [reason]


async def test_one_reply_after_the_other_and_the_last_again() -> None:
    async with client_of(ScriptedServer([Reply("one"), Reply("two")])) as client:
        assert [(await ask(client)).choices[0].message.content for _ in range(3)] == ["one", "two", "two"]


async def test_a_function_decides() -> None:
    async with client_of(
        ScriptedServer(lambda request: Reply(f"{request.number}: {request.messages[-1]['content']}"))
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
    calls = (SEARCH, ToolCall("search_docs", "{}"))
    async with client_of(ScriptedServer(Reply(tool_calls=calls), quirks=quirks)) as client:
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
async def test_old_servers_refuse_what_they_do_not_know(quirk: Quirk, more: dict[str, Any]) -> None:
    async with client_of(ScriptedServer(Reply("Yes."), quirks=[quirk])) as client:
        with pytest.raises(openai.BadRequestError, match=next(iter(more))):
            await stream(client, **more)
        assert text_of(await stream(client)) == "Yes."


async def test_small_quirks() -> None:
    quirks = [Quirk.NO_USAGE, Quirk.EMPTY_FIRST_CHUNK, Quirk.ROLE_IN_EVERY_CHUNK]
    async with client_of(ScriptedServer(Reply(SAID), quirks=quirks)) as client:
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
    """A stream that is cut before its finish reason ends for the client as if it were complete."""
    server = ScriptedServer(Reply(SAID, fault=fault, fault_after=3, drip=0.01))
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
async def test_r1_faults_in_a_whole_reply_as_the_client_sees_them(fault: Fault, after: int) -> None:
    failed: type[Exception] | None = None
    async with client_of(
        ScriptedServer(Reply(SAID, fault=fault, fault_after=after, drip=0.01)), patience=0.1
    ) as client:
        try:
            async with asyncio.timeout(0.3):
                answer = await ask(client)
            assert not answer.choices or answer.choices[0].finish_reason is None
        except Exception as exc:
            failed = type(exc)
    assert failed == WHOLE[fault]


async def test_a_rate_limit_may_say_for_how_long() -> None:
    replies = [Reply(fault=Fault.RATE_LIMIT, retry_after="7"), Reply(fault=Fault.RATE_LIMIT)]
    async with client_of(ScriptedServer(replies)) as client:
        for expected in ("7", None):
            with pytest.raises(openai.RateLimitError) as raised:
                await ask(client)
            assert raised.value.response.headers.get("retry-after") == expected


async def test_a_refusal_of_any_kind() -> None:
    reply = Reply(status=400, error_code="context_length_exceeded", error_message="Too long.")
    async with client_of(ScriptedServer(reply)) as client:
        with pytest.raises(openai.BadRequestError, match=r"Too long\.") as raised:
            await ask(client)
    assert raised.value.code == "context_length_exceeded"


async def test_only_the_right_key_is_let_in() -> None:
    server = ScriptedServer(Reply("Yes."), key="right")
    async with client_of(server, key="wrong") as client:
        with pytest.raises(openai.AuthenticationError):
            await ask(client)
        assert (await ask(client.with_options(api_key="right"))).choices[0].message.content == "Yes."
    assert server.counters == {"requests": 1, "ok": 1}


async def test_models_and_unknown_addresses() -> None:
    async with client_of(ScriptedServer(Reply())) as client:
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
async def test_nonsense_is_a_400(sent: bytes) -> None:
    async with ScriptedServer(Reply()) as server:
        host, port = server.base_url.removeprefix("http://").removesuffix("/v1").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(sent)
        assert (await reader.readline()).startswith(b"HTTP/1.1 400 ")
        writer.close()
        await writer.wait_closed()


async def test_r3_a_client_that_leaves_is_noticed_at_once() -> None:
    loop = asyncio.get_running_loop()
    server = ScriptedServer([Reply(fault=Fault.HANG), Reply(SAID, delay_token=30.0)])
    async with client_of(server, patience=30.0) as client:
        for number in (1, 2):
            asking = asyncio.ensure_future(stream(client))
            await server.arrived(number)
            asking.cancel()
            left = loop.time()
            with pytest.raises(asyncio.CancelledError):
                await asking
            await server.exchanges[-1].ended.wait()
            noticed = server.exchanges[-1].left_at
            assert noticed
            assert noticed - left < 1.0
    assert server.counters == {"requests": 2, "hang": 1, "left": 1}


async def test_what_was_asked_is_kept() -> None:
    server = ScriptedServer(Reply("Yes."))
    async with client_of(server, key="secret") as client:
        await ask(client, temperature=0.3)
    exchange = server.exchanges[0]
    assert exchange.request.body == {"model": "m", "messages": ASKED, "temperature": 0.3}
    assert exchange.request.headers["authorization"] == "Bearer secret"
    assert (exchange.outcome, exchange.left_at, exchange.ended.is_set()) == ("ok", None, True)


def test_faults_repeat_by_seed_and_come_at_their_rate() -> None:
    def drawn(seed: int) -> list[tuple[Fault | None, int]]:
        spoiled = [Faults(0.2, seed=seed).spoil(Reply(SAID), number) for number in range(1, 2001)]
        return [(reply.fault, reply.fault_after) for reply in spoiled]

    first = drawn(7)
    assert first == drawn(7)
    assert first != drawn(8)
    assert {fault for fault, _ in first} == {None, *EVERYDAY_FAULTS}
    assert 0.17 < sum(fault is not None for fault, _ in first) / 2000 < 0.23


def test_a_scripted_fault_is_not_spoiled_further() -> None:
    reply = Reply(fault=Fault.DRIP)
    assert Faults(1.0).spoil(reply, 1) == reply


@pytest.mark.parametrize("delay", [-1.0, float("inf"), float("nan")])
def test_a_delay_is_a_number_of_seconds(delay: float) -> None:
    with pytest.raises(ValueError, match="number of seconds"):
        Reply(delay_first=delay)


async def test_a_mistake_in_a_script_fails_the_test_that_wrote_it() -> None:
    def script(_request: Request) -> Reply:
        raise LookupError("a mistake")

    with pytest.RaisesGroup(LookupError):
        async with client_of(ScriptedServer(script)) as client:
            await ask(client)
