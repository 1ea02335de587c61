"""Follow-ups from end to end: who makes them stand alone, and what is then looked for."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack

import pytest

from bythebook import AgentRequest, AgentResponse, Book
from bythebook.conversations.followups import Exchange
from bythebook.conversations.followups.llm_rewrite import REWRITE_PROMPT
from bythebook.conversations.followups.rules import standalone
from bythebook.errors import ConfigurationError
from bythebook.llm.client import Endpoint
from bythebook.llm.config import AgentConfig
from bythebook.llm.generator import Speaker
from bythebook.testing import Fault, Reply, Request, ScriptedServer, Usage, cooperative_model
from bythebook.upstream import Deadline

Opened = Callable[..., AbstractAsyncContextManager[Book]]

FIRST = "How long does a mantle last?"
FOLLOW_UP = "How do I change it?"
WHOLE = "How do I change a mantle?"
MORE = "Tell me more about the second source"


class Model:
    """Answers from the passages, and says `whole` when it is to make a question stand alone."""

    def __init__(self, whole: Reply) -> None:
        self._whole = whole
        self.restated: list[Request] = []

    def __call__(self, request: Request) -> Reply:
        if request.messages[0]["content"] != REWRITE_PROMPT:
            return cooperative_model(request)
        self.restated.append(request)
        return self._whole


async def conversed(book: Book, *questions: str) -> tuple[list[AgentResponse], list[str]]:
    """The answers to these questions of one conversation, and what was looked for."""
    session = (await book.conversation()).id
    answers = [await book.ask(AgentRequest(question, session_id=session)) for question in questions]
    turns = await (await book.conversations()).turns(session, user_id="")
    return answers, [turn.standalone_question for turn in turns]


async def test_a_follow_up_is_looked_for_in_the_models_words(opened: Opened) -> None:
    model = Model(Reply(WHOLE, usage=Usage(90, 10)))
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
        pytest.param(Reply("A mantle is changed by day, when the burner is cold."), id="it answers"),
        pytest.param(Reply("Llamas graze in Peru?"), id="it says something else"),
        pytest.param(Reply(fault=Fault.SERVER_ERROR), id="it fails"),
        pytest.param(Reply(WHOLE, fault=Fault.NO_FINISH_REASON), id="it is cut"),
    ],
)
async def test_the_rule_stands_in_for_a_model_that_cannot(opened: Opened, whole: Reply) -> None:
    model = Model(whole)
    async with ScriptedServer(model) as server, opened(server, retrieval_mode="prefetch") as book:
        answers, asked = await conversed(book, FIRST, FOLLOW_UP)
    assert len(model.restated) == 1
    assert answers[1].grounded
    assert asked[1] != WHOLE
    assert "mantle" in asked[1]


async def test_the_rule_stands_in_for_a_model_that_takes_too_long() -> None:
    history = [Exchange(FIRST, "About thirty nights.")]
    async with ScriptedServer(Reply(fault=Fault.HANG)) as server:
        config = AgentConfig(base_url=server.base_url, model="scripted")
        assert config.provider is not None
        endpoint = Endpoint(config.provider, temperature=0.0, max_tokens=100)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(endpoint.close)
            understood, _ = await Speaker(config, endpoint).restate(FOLLOW_UP, history, deadline=Deadline.after(0.2))
    assert understood == standalone(FOLLOW_UP, history)


async def test_a_question_that_stands_alone_costs_no_call(opened: Opened) -> None:
    model = Model(Reply(WHOLE))
    async with ScriptedServer(model) as server, opened(server, retrieval_mode="prefetch") as book:
        _, asked = await conversed(book, FIRST, "How often does the fog horn sound?")
    assert asked[1] == "How often does the fog horn sound?"
    assert not model.restated


async def test_a_change_of_subject_is_not_dragged_along(opened: Opened) -> None:
    shift = "And what about the fog horn?"
    async with ScriptedServer(Model(Reply(shift))) as server, opened(server, retrieval_mode="prefetch") as book:
        _, asked = await conversed(book, FIRST, shift)
    assert asked[1] == shift


async def test_the_rule_can_be_chosen(opened: Opened) -> None:
    model = Model(Reply(WHOLE))
    async with ScriptedServer(model) as server:
        async with opened(server, retrieval_mode="prefetch", followups="rule") as book:
            _, asked = await conversed(book, FIRST, FOLLOW_UP)
    assert not model.restated
    assert "mantle" in asked[1]


def test_a_model_can_be_asked_for_only_where_there_is_one() -> None:
    with pytest.raises(ConfigurationError, match="no model is set"):
        AgentConfig(followups="model")


async def test_more_about_the_second_source_is_looked_for_there(opened: Opened) -> None:
    """003: "Tell me more about the second source"."""
    async with opened(None) as book:
        (first, second), _ = await conversed(book, "When does the fog horn sound and how is the log kept?", MORE)
    pointed = first.citations[1]
    assert second.sources[0].chunk_id == pointed.chunk_id
    assert [source.position for source in second.sources] == list(range(1, len(second.sources) + 1))
    assert second.grounded
    assert pointed.chunk_id in {citation.chunk_id for citation in second.citations}


async def test_a_source_that_was_never_shown_is_asked_back_about(opened: Opened) -> None:
    async with opened(None) as book:
        (_, second), _ = await conversed(book, FIRST, "Tell me more about the ninth source")
    assert second.outcome == "clarify"
