"""A book with a model: streaming, citations, verification, conversations, and failures of the model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import replace

import pytest

from bythebook import AgentRequest, AgentResponse, Book
from bythebook.answers import AnswerCompleted, SourcesFound, State, StateChanged, TextDelta
from bythebook.conversations import TurnState
from bythebook.errors import BookError
from bythebook.llm.context_budget import count_tokens
from bythebook.serialization import error_to_dict
from bythebook.testing import (
    CompletionRequest,
    Fault,
    Faults,
    Quirk,
    ScriptedReply,
    ScriptedServer,
    ScriptedToolCall,
    ScriptedUsage,
    cooperative_model,
)

HORN = "The horn gives two blasts of three seconds every ninety seconds."
QUESTION = "How often does the fog horn sound?"

Script = Callable[[CompletionRequest], ScriptedReply]
Opened = Callable[..., AbstractAsyncContextManager[Book]]


def says(text: str) -> Script:
    return lambda _request: ScriptedReply(text, usage=ScriptedUsage(300, 20))


def searches_first(text: str, *, query: str = "fog horn pattern") -> Script:
    """A model that calls the search tool and then answers from the passages."""

    def script(request: CompletionRequest) -> ScriptedReply:
        if request.body.get("tools") and request.body["messages"][-1]["role"] != "tool":
            return ScriptedReply(
                tool_calls=(ScriptedToolCall("search_docs", json.dumps({"query": query})),),
                usage=ScriptedUsage(100, 10),
            )
        return ScriptedReply(text, usage=ScriptedUsage(300, 20))

    return script


async def test_a_model_that_searches_gets_citations_with_quotes(opened: Opened) -> None:
    async with ScriptedServer(searches_first(f"{HORN} [1]")) as server:
        async with opened(server, retrieval_mode="tool") as book:
            response = await book.ask(QUESTION)
    assert response.outcome == "answered"
    assert response.answer == f"{HORN[:-1]} [1]."
    assert [citation.quote for citation in response.citations] == [HORN]
    assert (response.model, response.tokens_used, response.metadata.searches) == ("scripted", 430, 1)


async def test_a_model_without_tools_gets_the_passages(opened: Opened) -> None:
    async with ScriptedServer(cooperative_model) as server, opened(server, retrieval_mode="prefetch") as book:
        response = await book.ask(QUESTION)
    assert response.grounded
    (exchange,) = server.exchanges
    prompt = exchange.request.body["messages"][-1]["content"]
    assert "[1] Source:" in prompt
    assert HORN in prompt


async def test_a_model_that_does_not_search_gets_a_search(opened: Opened) -> None:
    async with ScriptedServer(says(f"{HORN} [1]")) as server, opened(server, retrieval_mode="tool") as book:
        response = await book.ask(QUESTION)
    assert response.grounded
    assert len(server.exchanges) == 2
    assert "tools" not in server.exchanges[1].request.body


async def test_a_provider_that_rejects_tools_gets_none_afterwards(opened: Opened) -> None:
    async with ScriptedServer(says(f"{HORN} [1]"), quirks=[Quirk.REJECTS_TOOLS]) as server:
        async with opened(server, retrieval_mode="tool") as book:
            assert (await book.ask(QUESTION)).grounded


async def test_a_provider_that_cannot_report_usage_still_answers(opened: Opened) -> None:
    quirks = [Quirk.REJECTS_STREAM_OPTIONS, Quirk.NO_USAGE]
    async with ScriptedServer(says(f"{HORN} [1]"), quirks=quirks) as server:
        async with opened(server, retrieval_mode="prefetch") as book:
            response = await book.ask(QUESTION)
        prompt = server.exchanges[-1].request.body["messages"]
    assert response.grounded
    assert response.metadata.tokens_estimated
    assert response.tokens_used > sum(count_tokens(message["content"]) for message in prompt)


async def test_an_old_tool_name_and_calls_without_ids_work(opened: Opened) -> None:
    def script(request: CompletionRequest) -> ScriptedReply:
        if request.body["messages"][-1]["role"] != "tool":
            return ScriptedReply(tool_calls=(ScriptedToolCall("retrieve_context", json.dumps({"query": "fog horn"})),))
        return ScriptedReply(f"{HORN} [1]")

    async with ScriptedServer(script, quirks=[Quirk.NO_CALL_IDS, Quirk.WHOLE_ARGUMENTS]) as server:
        async with opened(server, retrieval_mode="tool") as book:
            assert (await book.ask(QUESTION)).metadata.searches == 1


async def test_a_call_of_an_unknown_tool_does_not_end_the_answer(opened: Opened) -> None:
    search, mail = (
        ScriptedToolCall("search_docs", json.dumps({"query": "fog horn"})),
        ScriptedToolCall("send_mail", "{}"),
    )
    async with ScriptedServer([ScriptedReply(tool_calls=(search,)), ScriptedReply(tool_calls=(mail,))]) as server:
        async with opened(server, retrieval_mode="tool") as book:
            response = await book.ask(QUESTION)
    assert response.grounded
    assert HORN.rstrip(".") in response.answer


async def test_a_bad_tool_call_is_explained_so_that_the_model_can_correct_itself(opened: Opened) -> None:
    said: list[str] = []

    def script(request: CompletionRequest) -> ScriptedReply:
        messages = request.body["messages"]
        if messages[-1]["role"] != "tool":
            return ScriptedReply(
                tool_calls=(ScriptedToolCall("search_docs", json.dumps({"query": "horn", "top_k": 99})),)
            )
        said.append(messages[-1]["content"])
        if len(said) == 1:
            return ScriptedReply(
                tool_calls=(ScriptedToolCall("search_docs", json.dumps({"query": "fog horn", "top_k": 3})),)
            )
        return ScriptedReply(f"{HORN} [1]")

    async with ScriptedServer(script) as server, opened(server, retrieval_mode="tool") as book:
        response = await book.ask(QUESTION)
    assert json.loads(said[0])["error"] == "invalid_input"
    assert "from 1 to 10" in json.loads(said[0])["message"]
    assert json.loads(said[1])["total"] == 3
    assert response.grounded


async def test_a_model_that_only_searches_is_replaced_by_the_book(opened: Opened) -> None:
    endless = ScriptedToolCall("search_docs", json.dumps({"query": "fog horn"}))
    async with ScriptedServer(lambda _request: ScriptedReply(tool_calls=(endless,))) as server:
        async with opened(server, retrieval_mode="tool") as book:
            response = await book.ask(QUESTION)
    assert response.grounded
    assert response.model == "extractive"
    assert len(server.exchanges) <= 9


async def test_an_unsupported_sentence_is_removed_and_reported(opened: Opened) -> None:
    invented = "The horn was built in Marseille by Auguste Deslandes in 1887 [1]."
    async with ScriptedServer(says(f"{HORN} [1] {invented}")) as server:
        async with opened(server, retrieval_mode="prefetch") as book:
            response = await book.ask(QUESTION)
    assert response.answer == f"{HORN[:-1]} [1]."
    assert any("Marseille" in removed for removed in response.metadata.removed)


async def test_an_answer_without_any_verified_sentence_is_a_refusal_with_links(opened: Opened) -> None:
    async with ScriptedServer(says("Llamas graze on the high plateaus of Peru [1].")) as server:
        async with opened(server, retrieval_mode="prefetch") as book:
            response = await book.ask(QUESTION)
    assert (response.outcome, response.grounded, response.citations) == ("refused", False, ())
    assert "Llamas" not in response.answer
    assert [link.title for link in response.suggestions][:1] == ["Fog signals > The horn's pattern"]


async def test_an_uncovered_question_needs_no_model_call(opened: Opened) -> None:
    """003, scenario 2: an out-of-scope question."""
    async with ScriptedServer(says("Sunny!")) as server, opened(server) as book:
        response = await book.ask("What is the boiling point of mercury?")
    assert (response.outcome, response.grounded, response.citations) == ("refused", False, ())
    assert "I don't have information about" in response.answer
    assert not server.exchanges


async def test_the_events_come_in_order_and_end_with_the_answer(opened: Opened) -> None:
    async with ScriptedServer(searches_first(f"{HORN} [1]")) as server:
        async with opened(server, retrieval_mode="tool") as book, aclosing(book.stream(QUESTION)) as stream:
            events = [event async for event in stream]
    states = [event.state for event in events if isinstance(event, StateChanged)]
    assert states == [State.RECEIVED, State.VALIDATING, State.RETRIEVING, State.GENERATING, State.COMPLETED]
    assert isinstance(events[-1], AnswerCompleted)
    assert any(isinstance(event, SourcesFound) and event.results for event in events)
    assert "".join(event.text for event in events if isinstance(event, TextDelta)).startswith("The horn gives")


# SPEC 5, row by row: the failure of the provider, and the error that the reader gets.
@pytest.mark.parametrize(
    ("fault", "code", "status", "recoverable", "told"),
    [
        pytest.param(
            ScriptedReply(fault=Fault.SERVER_ERROR), "api_error", 502, True, "There was a problem", id="api_error"
        ),
        pytest.param(
            ScriptedReply(fault=Fault.RATE_LIMIT, retry_after="60"),
            "rate_limit",
            429,
            True,
            "wait 60 seconds",
            id="rate_limit",
        ),
        pytest.param(ScriptedReply(fault=Fault.HANG), "timeout", 504, True, "took too long", id="timeout"),
        pytest.param(ScriptedReply(status=401), "provider_auth", 502, False, "check your API keys", id="provider_auth"),
        pytest.param(ScriptedReply(status=413), "context_overflow", 413, False, "Type 'clear'", id="context_overflow"),
    ],
)
async def test_each_provider_failure_has_its_message(
    opened: Opened, fault: ScriptedReply, code: str, status: int, recoverable: bool, told: str
) -> None:
    async with ScriptedServer(lambda _request: fault) as server:
        limits = {"first_token_seconds": 1.0, "answer_seconds": 1.5}
        async with opened(server, retrieval_mode="prefetch", **limits) as book:
            with pytest.raises(BookError) as raised:
                await book.ask(QUESTION)
    error = error_to_dict(raised.value)
    assert (error["error"], error["status_code"], error["recoverable"]) == (code, status, recoverable)
    assert told in error["user_message"]
    assert len(server.exchanges) <= 3


async def test_a_broken_stream_is_restarted(opened: Opened) -> None:
    replies = iter([ScriptedReply(f"{HORN} [1]", fault=Fault.RESET, fault_after=4), ScriptedReply(f"{HORN} [1]")])
    async with ScriptedServer(lambda _request: next(replies)) as server:
        async with opened(server, retrieval_mode="prefetch") as book, aclosing(book.stream(QUESTION)) as stream:
            events = [event async for event in stream]
    assert [event.state for event in events if isinstance(event, StateChanged)].count(State.GENERATING) == 2
    last = events[-1]
    assert isinstance(last, AnswerCompleted)
    assert last.response.answer == f"{HORN[:-1]} [1]."


async def test_a_follow_up_is_resolved_and_the_conversation_is_stored(opened: Opened) -> None:
    """003, scenario 3: 'it' in the second question refers to the subject of the first one."""
    async with opened(None) as book:
        session = (await book.conversation()).id
        await book.ask(AgentRequest("How long does a mantle last?", session_id=session))
        second = await book.ask(AgentRequest("How do I change it?", session_id=session))
        turns = await (await book.conversations()).turns(session, user_id="")
    assert second.turn_number == 2
    assert "mantle" in turns[1].standalone_question
    assert "Change it by day, when the burner is cold." in second.answer
    assert [turn.state for turn in turns] == [TurnState.COMPLETED, TurnState.COMPLETED]


async def test_a_new_topic_does_not_use_the_history(opened: Opened) -> None:
    async with opened(None) as book:
        session = (await book.conversation()).id
        await book.ask(AgentRequest("How long does a mantle last?", session_id=session))
        second = await book.ask(AgentRequest("How often does the fog horn sound?", session_id=session))
    assert HORN in second.answer


async def test_a_reset_clears_the_conversation_and_keeps_the_session(opened: Opened) -> None:
    """003, scenario 5."""
    async with opened(None) as book:
        session = (await book.conversation()).id
        for _ in range(5):
            await book.ask(AgentRequest(QUESTION, session_id=session))
        await (await book.conversations()).reset(session, user_id="")
        assert [message.role for message in (await book.conversation(session)).messages] == ["system"]
        again = await book.ask(AgentRequest(QUESTION, session_id=session))
    assert again.session_id == session
    assert again.grounded


async def test_a_failed_turn_is_stored_as_failed_and_the_next_one_works(opened: Opened) -> None:
    replies = iter([ScriptedReply(status=401), ScriptedReply(f"{HORN} [1]")])
    async with ScriptedServer(lambda _request: next(replies)) as server:
        async with opened(server, retrieval_mode="prefetch") as book:
            session = (await book.conversation()).id
            with pytest.raises(BookError):
                await book.ask(AgentRequest(QUESTION, session_id=session))
            await book.ask(AgentRequest(QUESTION, session_id=session))
            turns = await (await book.conversations()).turns(session, user_id="")
    assert [(turn.number, turn.state, turn.error) for turn in turns] == [
        (1, TurnState.FAILED, "provider_auth"),
        (2, TurnState.COMPLETED, ""),
    ]


async def test_a_disconnect_cancels_the_model_call(opened: Opened) -> None:
    slow = ScriptedReply(f"{HORN} [1]", delay_token=1.0)
    async with ScriptedServer(lambda _request: slow) as server, opened(server, retrieval_mode="prefetch") as book:
        session = (await book.conversation()).id
        stream = book.stream(QUESTION, session_id=session)
        async for event in stream:
            if isinstance(event, TextDelta):
                break
        await stream.aclose()
        turns = await (await book.conversations()).turns(session, user_id="")
        async with asyncio.timeout(60):
            while server.exchanges[0].left_at is None:  # noqa: ASYNC110 - the server is not ours to signal
                await asyncio.sleep(0.01)
    assert (turns[0].state, turns[0].error) == (TurnState.FAILED, "cancelled")


async def test_selected_text_can_be_the_only_source(opened: Opened) -> None:
    marked = "The brass bell was cast in 1902. It weighs forty kilograms."
    request = AgentRequest("How heavy is the bell?", selected_text=marked, selection_mode="only")
    async with opened(None) as book:
        response = await book.ask(request)
        boosted = await book.ask(replace(request, query="What if the horn fails?", selection_mode="boost"))
    assert "It weighs forty kilograms." in response.answer
    assert {source.chunk_id for source in response.sources} == {"selection"}
    assert len(boosted.sources) > 1


async def test_answers_never_mix_under_faults(opened: Opened) -> None:
    """HARDENING R1 at library level: 12 readers, a fifth of the model calls fail."""

    def script(request: CompletionRequest) -> ScriptedReply:
        return cooperative_model(request)

    kinds = (Fault.SERVER_ERROR, Fault.RESET, Fault.NO_FINISH_REASON, Fault.CUT_CHUNK, Fault.BAD_JSON, Fault.HALF_CLOSE)
    async with ScriptedServer(script, faults=Faults(0.2, seed=3, kinds=kinds)) as server:
        async with opened(server, retrieval_mode="prefetch") as book:
            sessions = [(await book.conversation()).id for _ in range(12)]

            async def reader(session: str) -> list[AgentResponse | BookError]:
                outcomes: list[AgentResponse | BookError] = []
                for question in (QUESTION, "How long does a mantle last?"):
                    try:
                        outcomes.append(await book.ask(AgentRequest(question, session_id=session)))
                    except BookError as error:
                        outcomes.append(error)
                return outcomes

            results = await asyncio.gather(*(reader(session) for session in sessions))
            kept = [await (await book.conversations()).turns(session, user_id="") for session in sessions]
    for session, outcomes, turns in zip(sessions, results, kept, strict=True):
        assert len(turns) == 2
        for outcome, turn in zip(outcomes, turns, strict=True):
            if isinstance(outcome, AgentResponse):
                assert outcome.session_id == session
                assert turn.state is TurnState.COMPLETED
            else:
                assert turn.state is TurnState.FAILED
    answered = sum(isinstance(outcome, AgentResponse) for outcomes in results for outcome in outcomes)
    assert answered >= 0.97 * 24
