"""Follow-up questions end to end: who rewrites them, and what is searched."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack

import pytest

from bythebook import AgentRequest, AgentResponse, Book
from bythebook.conversations.followups import Exchange
from bythebook.conversations.followups.llm_rewrite import REWRITE_PROMPT
from bythebook.conversations.followups.rules import make_standalone
from bythebook.errors import ConfigurationError
from bythebook.llm.client import ChatEndpoint
from bythebook.llm.config import AgentConfig
from bythebook.llm.generator import AnswerGenerator
from bythebook.testing import CompletionRequest, Fault, ScriptedReply, ScriptedServer, ScriptedUsage, cooperative_model
from bythebook.upstream.deadline import Deadline

Opened = Callable[..., AbstractAsyncContextManager[Book]]

FIRST = "How long does a mantle last?"
FOLLOW_UP = "How do I change it?"
WHOLE = "How do I change a mantle?"
MORE = "Tell me more about the second source"


class Model:
    """Answers from the passages. Returns `whole` as the rewrite of a follow-up question."""

    def __init__(self, whole: ScriptedReply) -> None:
        self._whole = whole
        self.restated: list[CompletionRequest] = []

    def __call__(self, request: CompletionRequest) -> ScriptedReply:
        if request.messages[0]["content"] != REWRITE_PROMPT:
            return cooperative_model(request)
        self.restated.append(request)
        return self._whole


async def conversed(book: Book, *questions: str) -> tuple[list[AgentResponse], list[str]]:
    """The answers to the questions of one conversation, and the searches."""
    session = (await book.conversation()).id
    answers = [await book.ask(AgentRequest(question, session_id=session)) for question in questions]
    turns = await (await book.conversations()).turns(session, user_id="")
    return answers, [turn.standalone_question for turn in turns]


async def test_a_follow_up_is_rewritten_by_the_model(opened: Opened) -> None:
    model = Model(ScriptedReply(WHOLE, usage=ScriptedUsage(90, 10)))
    async with ScriptedServer(model) as server, opened(server, retrieval_mode="prefetch") as book:
        answers, asked = await conversed(book, FIRST, FOLLOW_UP)
    assert asked == [FIRST, WHOLE]
    assert answers[1].grounded
    assert answers[1].tokens_used > 100
    (request,) = model.restated
    assert "tools" not in request.body
    assert (request.body["temperature"], request.body["max_tokens"]) == (0.0, 200)
    assert request.messages[-1]["content"].endswith(f"Last question: {FOLLOW_UP}")


@pytest.mark.parametrize(
    "whole",
    [
        pytest.param(ScriptedReply("A mantle is changed by day, when the burner is cold."), id="it answers"),
        pytest.param(ScriptedReply("Llamas graze in Peru?"), id="it says something else"),
        pytest.param(ScriptedReply(fault=Fault.SERVER_ERROR), id="it fails"),
        pytest.param(ScriptedReply(WHOLE, fault=Fault.NO_FINISH_REASON), id="it is cut"),
    ],
)
async def test_the_rule_replaces_a_failing_model(opened: Opened, whole: ScriptedReply) -> None:
    model = Model(whole)
    async with ScriptedServer(model) as server, opened(server, retrieval_mode="prefetch") as book:
        answers, asked = await conversed(book, FIRST, FOLLOW_UP)
    assert len(model.restated) == 1
    assert answers[1].grounded
    assert asked[1] != WHOLE
    assert "mantle" in asked[1]


async def test_the_rule_replaces_a_slow_model() -> None:
    history = [Exchange(FIRST, "About thirty nights.")]
    async with ScriptedServer(ScriptedReply(fault=Fault.HANG)) as server:
        config = AgentConfig(base_url=server.base_url, model="scripted")
        assert config.provider is not None
        endpoint = ChatEndpoint(config.provider, temperature=0.0, max_tokens=100)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(endpoint.close)
            understood, *_ = await AnswerGenerator(config, endpoint).rewrite_question(
                FOLLOW_UP, history, deadline=Deadline.after(0.2)
            )
    assert understood == make_standalone(FOLLOW_UP, history)


async def test_a_standalone_question_needs_no_model_call(opened: Opened) -> None:
    model = Model(ScriptedReply(WHOLE))
    async with ScriptedServer(model) as server, opened(server, retrieval_mode="prefetch") as book:
        _, asked = await conversed(book, FIRST, "How often does the fog horn sound?")
    assert asked[1] == "How often does the fog horn sound?"
    assert not model.restated


async def test_a_new_subject_does_not_use_the_history(opened: Opened) -> None:
    shift = "And what about the fog horn?"
    async with ScriptedServer(Model(ScriptedReply(shift))) as server, opened(server, retrieval_mode="prefetch") as book:
        _, asked = await conversed(book, FIRST, shift)
    assert asked[1] == shift


async def test_the_rule_is_selectable(opened: Opened) -> None:
    model = Model(ScriptedReply(WHOLE))
    async with ScriptedServer(model) as server:
        async with opened(server, retrieval_mode="prefetch", followups="rule") as book:
            _, asked = await conversed(book, FIRST, FOLLOW_UP)
    assert not model.restated
    assert "mantle" in asked[1]


def test_the_model_is_selectable_only_if_there_is_one() -> None:
    with pytest.raises(ConfigurationError, match="no model is set"):
        AgentConfig(followups="model")


async def test_a_reference_to_the_second_source_searches_that_source(opened: Opened) -> None:
    """003: "Tell me more about the second source"."""
    question = "When does the fog horn sound and how is the log kept?"
    async with ScriptedServer(cooperative_model) as server, opened(server, retrieval_mode="prefetch") as book:
        (first, second), _ = await conversed(book, question, MORE)
    pointed = first.citations[1]
    assert second.sources[0].chunk_id == pointed.chunk_id
    assert [source.position for source in second.sources] == list(range(1, len(second.sources) + 1))
    assert second.grounded
    assert pointed.chunk_id in {citation.chunk_id for citation in second.citations}


async def test_a_reference_to_an_unknown_source_gets_a_question_back(opened: Opened) -> None:
    async with opened(None) as book:
        (_, second), _ = await conversed(book, FIRST, "Tell me more about the ninth source")
    assert second.outcome == "clarify"
