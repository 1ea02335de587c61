"""Small talk in a book: a friendly line with questions that the book answers, without a search and without a model."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from bythebook import AgentRequest, Book, Outcome
from bythebook.answers import AnswerCompleted, SourcesFound
from bythebook.answers.refusal import CLARIFY
from bythebook.errors import RetrievalError
from bythebook.testing import ScriptedServer, cooperative_model
from tests.conftest import copied

Opened = Callable[..., AbstractAsyncContextManager[Book]]


@pytest.mark.parametrize("text", ["hello", "thanks", "who are you?", "bye", "ok", "Danke!", "مرحبا"])
async def test_small_talk_gets_a_friendly_line_with_three_questions_of_the_book(opened: Opened, text: str) -> None:
    async with opened(None) as book:
        events = [event async for event in book.stream(text)]
        last = events[-1]
        assert isinstance(last, AnswerCompleted)
        response = last.response
        assert response.outcome is Outcome.CLARIFY
        assert response.questions == (await book.introduction()).questions[:3]
        assert len(response.questions) == 3
        assert response.answer.endswith("\n".join(f"- {question}" for question in response.questions))
        assert "don't have information" not in response.answer
        assert not response.retrieval_performed
        assert not any(isinstance(event, SourcesFound) for event in events)
        assert (await book.ask(response.questions[0])).outcome is Outcome.ANSWERED


async def test_small_talk_is_replied_to_even_if_its_questions_cannot_be_checked(opened: Opened) -> None:
    async def fail() -> tuple[str, ...]:
        raise RetrievalError("the index does not respond")

    async with opened(None) as book:
        response = await replace(book.extractive_pipeline(), suggest_questions=fail).ask(AgentRequest("hello"))
    assert (response.outcome, response.questions) == (Outcome.CLARIFY, ())


async def test_no_model_is_called_for_small_talk(opened: Opened) -> None:
    async with ScriptedServer(cooperative_model) as server, opened(server) as book:
        session = (await book.conversation()).id
        await book.ask(AgentRequest("When does the fog horn sound?", session_id=session))
        calls = len(server.exchanges)
        response = await book.ask(AgentRequest("thank you!", session_id=session))
        assert (response.outcome, response.tokens_used) == (Outcome.CLARIFY, 0)
        assert response.answer.startswith("You're welcome!")
        assert len(server.exchanges) == calls


async def test_small_talk_is_no_gap_and_may_be_rated(opened: Opened, shelved: Path, tmp_path: Path) -> None:
    async with opened(None, data_dir=copied(shelved, tmp_path / "own")) as book:
        hello = await book.ask("hello")
        await book.ask("What is it?")
        assert [entry.question for entry in await book.unanswered_questions()] == ["What is it?"]
        await book.rate(hello.id, "down", "too friendly")
        report = await book.gaps()
        assert (report.questions, report.topics, report.foreign, report.unclear) == (1, (), (), ("What is it?",))


async def test_an_unclear_first_question_keeps_its_question_back(opened: Opened) -> None:
    async with opened(None) as book:
        response = await book.ask("What is it?")
        assert (response.answer, response.outcome, response.questions) == (CLARIFY, Outcome.CLARIFY, ())


async def test_a_greeting_before_a_question_changes_nothing(opened: Opened) -> None:
    async with opened(None) as book:
        response = await book.ask("Hello! When does the fog horn sound?")
        assert response.outcome is Outcome.ANSWERED


async def test_small_talk_about_selected_text_is_a_question_about_it(opened: Opened) -> None:
    async with opened(None) as book:
        response = await book.ask(AgentRequest("ok", selected_text="The horn gives two blasts of three seconds."))
        assert response.retrieval_performed


async def test_neither_small_talk_nor_a_refusal_is_the_subject_of_the_next_question(opened: Opened) -> None:
    async with opened(None) as book:
        session = (await book.conversation()).id
        said = ("How long does a mantle last?", "How is cheese made in Sardinia?", "danke", "How do I change it?")
        outcomes = [(await book.ask(AgentRequest(text, session_id=session))).outcome for text in said]
        turns = await (await book.conversations()).turns(session, user_id="")
    assert outcomes == ["answered", "refused", "clarify", "answered"]
    assert "mantle" in turns[3].standalone_question
    assert "cheese" not in turns[3].standalone_question.lower()


async def test_a_question_that_stands_alone_gets_the_same_answer_after_an_unrelated_one(opened: Opened) -> None:
    question = "When does the fog horn sound?"
    async with opened(None) as book:
        alone = await book.ask(question)
        session = (await book.conversation()).id
        await book.ask(AgentRequest("How long does a mantle last?", session_id=session))
        after = await book.ask(AgentRequest(question, session_id=session))
    assert (after.answer, after.citations) == (alone.answer, alone.citations)


async def test_the_questions_are_kept_with_the_message(opened: Opened) -> None:
    async with opened(None) as book:
        session = (await book.conversation()).id
        response = await book.ask(AgentRequest("hello", session_id=session))
        message = (await book.conversation(session)).messages[-1]
    assert message.metadata["questions"] == list(response.questions)
