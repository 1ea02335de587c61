"""The cooperative model, on its own and with the Agents SDK."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from agents import Agent, OpenAIChatCompletionsModel, RunConfig, Runner, function_tool
from openai import AsyncOpenAI

from bythebook.testing import (
    CompletionRequest,
    Quirk,
    ScriptedReply,
    ScriptedServer,
    ScriptedToolCall,
    cooperative_model,
)
from bythebook.testing.scripted_models import NOT_COVERED

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

CONTEXT = """Context from book:

[1] Source: Walking (https://book/walking)
Robots walk on two legs. Some have four.

[2] Source: Batteries (https://book/batteries)
A battery lasts two hours. Charging takes one."""

FOUND = json.dumps(
    {"results": [{"number": 4, "text": "Robots walk on two legs. Some have four.", "url": "u", "title": "t"}]}
)


def asked(*messages: dict[str, Any], tools: Sequence[str] = ()) -> CompletionRequest:
    offered = [{"type": "function", "function": {"name": name}} for name in tools]
    return CompletionRequest({"model": "m", "messages": list(messages), "tools": offered}, headers={}, number=1)


def said(role: str, content: Any) -> dict[str, Any]:
    return {"role": role, "content": content}


@pytest.mark.parametrize(
    ("request_", "reply"),
    [
        pytest.param(
            asked(said("system", CONTEXT), said("user", "How long does a battery last?")),
            ScriptedReply("A battery lasts two hours. [2]"),
            id="from the passages in the system message",
        ),
        pytest.param(
            asked(said("user", f"{CONTEXT}\n\nQuestion: How do robots walk on legs?")),
            ScriptedReply("Robots walk on two legs. [1]"),
            id="from the passages above the question, never the question itself",
        ),
        pytest.param(
            asked(said("user", [{"type": "text", "text": f"{CONTEXT}\n\nQuestion: How do robots walk?"}])),
            ScriptedReply("Robots walk on two legs. [1]"),
            id="a message in parts",
        ),
        pytest.param(
            asked(said("system", CONTEXT), said("user", "Quantum chromodynamics?")),
            ScriptedReply(NOT_COVERED),
            id="nothing that bears on it",
        ),
        pytest.param(asked(said("user", "Robots?")), ScriptedReply(NOT_COVERED), id="no passages at all"),
        pytest.param(
            asked(said("user", "How do robots walk?"), tools=["search_docs"]),
            ScriptedReply(tool_calls=(ScriptedToolCall("search_docs", '{"query": "How do robots walk?"}'),)),
            id="a tool on offer is called first",
        ),
        pytest.param(
            asked(said("user", "How do robots walk?"), said("tool", FOUND), tools=["search_docs"]),
            ScriptedReply("Robots walk on two legs. [4]"),
            id="what the tool found is answered from",
        ),
        pytest.param(
            asked(said("user", "How do robots walk?"), said("tool", "it broke"), tools=["search_docs"]),
            ScriptedReply(NOT_COVERED),
            id="a tool that found nothing readable",
        ),
    ],
)
def test_cooperative_model_answers(request_: CompletionRequest, reply: ScriptedReply) -> None:
    assert cooperative_model(request_) == reply


@asynccontextmanager
async def agent_of(server: ScriptedServer, *tools: Any) -> AsyncIterator[Agent]:
    async with server, AsyncOpenAI(base_url=server.base_url, api_key="any", max_retries=0) as client:
        model = OpenAIChatCompletionsModel("scripted", client)
        yield Agent("librarian", instructions="Answer from the book.", model=model, tools=list(tools))


@function_tool(failure_error_function=None)
def search_docs(query: str) -> str:
    """Search the book."""
    assert query == "How do robots walk?"
    return FOUND


QUIET = RunConfig(tracing_disabled=True)


async def test_the_agents_sdk_gets_a_plain_answer() -> None:
    server = ScriptedServer(ScriptedReply("Yes."))
    async with agent_of(server) as agent:
        result = await Runner.run(agent, "Do robots walk?", run_config=QUIET)
    assert result.final_output == "Yes."
    assert result.context_wrapper.usage.total_tokens > 0


async def test_the_agents_sdk_streams() -> None:
    server = ScriptedServer(ScriptedReply("Robots walk on two legs."))
    async with agent_of(server) as agent:
        result = Runner.run_streamed(agent, "Do robots walk?", run_config=QUIET)
        deltas = [
            event.data.delta
            async for event in result.stream_events()
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta"
        ]
    assert deltas == ["Robots", " walk", " on", " two", " legs."]
    assert result.final_output == "Robots walk on two legs."


@pytest.mark.parametrize(
    "quirks",
    [
        pytest.param([], id="OpenAI"),
        pytest.param([Quirk.WHOLE_ARGUMENTS], id="a call in one chunk"),
        pytest.param([Quirk.NO_USAGE], id="no usage"),
        pytest.param([Quirk.EMPTY_FIRST_CHUNK, Quirk.ROLE_IN_EVERY_CHUNK], id="odd chunks"),
    ],
)
@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
async def test_the_agents_sdk_calls_a_tool_and_answers_from_it(quirks: Sequence[Quirk], streamed: bool) -> None:
    server = ScriptedServer(cooperative_model, quirks=quirks)
    async with agent_of(server, search_docs) as agent:
        if streamed:
            result = Runner.run_streamed(agent, "How do robots walk?", run_config=QUIET)
            async for _ in result.stream_events():
                pass
            output = result.final_output
        else:
            output = (await Runner.run(agent, "How do robots walk?", run_config=QUIET)).final_output
    assert output == "Robots walk on two legs. [4]"
    assert [message["role"] for message in server.exchanges[-1].request.messages] == [
        "system",
        "user",
        "assistant",
        "tool",
    ]
    assert server.counters == {"requests": 2, "ok": 2}


async def test_the_agents_sdk_cannot_take_calls_without_ids() -> None:
    """An adapter must add call ids for such a provider before the SDK gets its messages."""
    server = ScriptedServer(cooperative_model, quirks=[Quirk.NO_CALL_IDS])
    async with agent_of(server, search_docs) as agent:
        with pytest.raises(ValueError, match="call_id"):
            await Runner.run(agent, "How do robots walk?", run_config=QUIET)
    assert server.counters == {"requests": 1, "ok": 1}
