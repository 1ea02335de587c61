"""Behaviour that the design documents describe, through the Python API. The names say which document."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bythebook import AgentRequest, AgentResponse, Citation, RetrievalResult, TextDelta
from bythebook.answers import AnswerCompleted, Outcome, ResponseMetadata, State, StateChanged
from bythebook.errors import ContextOverflow, InputError
from bythebook.serialization import to_json
from bythebook.testing import CompletionRequest, ScriptedReply, ScriptedServer, ScriptedToolCall, ScriptedUsage
from tests.conftest import Opened

HORN = "The horn gives two blasts of three seconds every ninety seconds."
QUESTION = "How often does the fog horn sound?"


def search_first(request: CompletionRequest) -> ScriptedReply:
    """A model that searches before it answers."""
    if request.body.get("tools") and request.body["messages"][-1]["role"] != "tool":
        call = ScriptedToolCall("search_docs", json.dumps({"query": "fog horn"}))
        return ScriptedReply(tool_calls=(call,), usage=ScriptedUsage(100, 10))
    return ScriptedReply(f"{HORN} [1]", usage=ScriptedUsage(300, 20))


async def test_001_a_conversation_at_its_limit_overflows_until_it_is_cleared(opened: Opened) -> None:
    async with opened(None, max_conversation_turns=2) as book:
        session = (await book.ask(QUESTION)).session_id
        await book.ask(QUESTION, session_id=session)
        for _ in range(2):
            with pytest.raises(ContextOverflow) as caught:
                await book.ask(QUESTION, session_id=session)
            assert caught.value.reader_message == "Your conversation is too long. Type 'clear' to start fresh."
        assert session is not None
        await (await book.conversations()).reset(session, user_id="")
        assert (await book.ask(QUESTION, session_id=session)).grounded


async def test_003_a_first_answer_can_be_followed_up(opened: Opened) -> None:
    async with opened(None) as book:
        first = await book.ask("How long does a mantle last?")
        assert (first.turn_number, (await book.conversation(first.session_id)).model) == (1, "extractive")
        second = await book.ask("How do I change it?", session_id=first.session_id)
        assert (second.session_id, second.turn_number, second.outcome) == (first.session_id, 2, "answered")
        assert "mantle" in second.answer


@pytest.mark.parametrize(
    ("request_", "settings"),
    [
        pytest.param(AgentRequest(QUESTION, store=False), {}, id="store is false"),
        pytest.param(AgentRequest(QUESTION), {"store_sessions": False}, id="the setting is off"),
    ],
)
async def test_004_a_question_can_leave_nothing_behind(
    opened: Opened, request_: AgentRequest, settings: dict[str, Any]
) -> None:
    async with opened(None, **settings) as book:
        assert (await book.ask(request_)).session_id is None
        assert await (await book.conversations()).latest(user_id="", limit=10) == []


@pytest.mark.parametrize(
    ("question", "outcome"),
    [
        pytest.param(QUESTION, "answered", id="an answer"),
        pytest.param("How is cheese made in Sardinia?", "refused", id="a refusal"),
        pytest.param("What is it?", "clarify", id="a question back"),
        pytest.param("hello", "clarify", id="small talk"),
    ],
)
async def test_000_every_outcome_is_streamed(opened: Opened, question: str, outcome: str) -> None:
    async with opened(None) as book:
        events = [event async for event in book.stream(question)]
    *before, state, answer = events
    assert isinstance(answer, AnswerCompleted)
    assert answer.response.outcome == outcome
    assert "".join(event.text for event in before if isinstance(event, TextDelta)) == answer.response.answer
    assert state == StateChanged(State.COMPLETED)


@pytest.mark.parametrize("dialect", ["tools", "functions"])
async def test_000_002_003_tool_calls_are_messages_of_the_session(opened: Opened, dialect: Any) -> None:
    async with ScriptedServer(search_first) as server, opened(server, retrieval_mode="tool") as book:
        response = await book.ask(QUESTION)
        conversation = await book.conversation(response.session_id)
        following = await book.ask("How long is each blast?", session_id=response.session_id)
    assert [message.role for message in conversation.messages] == ["system", "user", "assistant", "tool", "assistant"]
    assert (conversation.retrieval_count, conversation.total_tokens_used) == (1, 430)
    call, answer = conversation.to_openai_messages(dialect)[2:4]
    if dialect == "tools":
        (called,) = call["tool_calls"]
        assert (called["function"]["name"], answer["role"]) == ("search_docs", "tool")
        assert answer["tool_call_id"] == called["id"]
    else:
        assert (call["function_call"]["name"], answer["role"], answer["name"]) == (
            "search_docs",
            "function",
            "search_docs",
        )
    assert {"results", "total", "query", "error", "message", "execution_time"} == set(json.loads(answer["content"]))
    assert following.grounded


async def test_000_a_search_that_finds_nothing_was_performed(opened: Opened) -> None:
    async with opened(None) as book:
        nothing = await book.ask(AgentRequest(QUESTION), filters={"module": "no such module"})
        assert (nothing.retrieval_performed, nothing.retrieval_count, nothing.outcome) == (True, 0, "refused")
        assert not (await book.ask("hello")).retrieval_performed


async def test_000_retrieved_sources_are_named_without_their_texts(opened: Opened) -> None:
    async with opened(None) as book:
        response = await book.ask(AgentRequest(QUESTION, include_sources=False))
    assert response.sources == ()
    assert response.retrieved_sources[0].endswith("/signals/fog.md")


async def test_003_a_response_can_be_made_from_its_json(opened: Opened) -> None:
    async with opened(None) as book:
        for question in (QUESTION, "How is cheese made in Sardinia?", "hello"):
            response = await book.ask(question)
            assert AgentResponse.from_json(json.loads(json.dumps(to_json(response)))) == response


def test_003_a_refusal_says_that_there_is_no_information() -> None:
    with pytest.raises(InputError, match="I don't have information about"):
        AgentResponse("No.", Outcome.REFUSED, (), (), "extractive", ResponseMetadata(1.0, "g000001"))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"query": 5}, "query must be text"),
        ({"query": "q", "top_k": "5"}, "top_k must be a whole number"),
        ({"query": "q", "top_k": True}, "top_k must be a whole number"),
        ({"query": "q", "include_sources": "yes"}, "include_sources must be true or false"),
        ({"query": "q", "session_id": 7}, "session_id must be text"),
        ({"query": "q", "filters": {"module": "m"}}, "filters must be Filters"),
    ],
)
def test_004_the_types_of_a_request_are_checked(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        AgentRequest(**values)


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "data:text/html,x", "urn:isbn:1", "/docs/intro", "", "http:///x"]
)
def test_001_003_004_only_safe_urls_reach_a_reader(url: str) -> None:
    with pytest.raises(InputError, match="http, https, file"):
        RetrievalResult("c", "d", "text", 0.5, 1, url, "title", 0, 1)
    with pytest.raises(InputError, match="http, https, file"):
        Citation(1, "title", url, 0.5, "c", "quote", 0, 5, verified=True)


@pytest.mark.parametrize("url", ["https://a.example/x", "HTTP://a.example", "file:///x.md", "urn:qdrant:books:4"])
def test_001_003_004_urls_of_books_are_accepted(url: str) -> None:
    assert RetrievalResult("c", "d", "text", 0.5, 1, url, "title", 0, 1).url == url


async def test_integrator_a_history_and_a_system_prompt_are_arguments_of_a_question(opened: Opened) -> None:
    history = [
        {"role": "user", "content": "How long does a mantle last?"},
        {"role": "assistant", "content": "A month."},
    ]
    async with ScriptedServer(ScriptedReply(f"{HORN} [1]")) as server:
        async with opened(server, retrieval_mode="prefetch", followups="rule") as book:
            response = await book.ask(QUESTION, history=history, system_prompt="Answer like a pirate.")
        messages = server.exchanges[-1].request.body["messages"]
    assert response.session_id is None
    assert "Answer like a pirate." in messages[0]["content"]
    assert [message["content"] for message in messages[1:3]] == [message["content"] for message in history]
