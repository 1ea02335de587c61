"""Suggested questions: taken from the book, and answered by it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bythebook import Book, Outcome
from bythebook.qa.suggestions import question_from_heading, use_sentence_case


@pytest.mark.parametrize(
    ("heading", "question"),
    [
        pytest.param("What is a lamp?", "What is a lamp?", id="a question"),
        pytest.param("How to trim a wick", "How do I trim a wick?", id="how to"),
        pytest.param("How to Implement Custom Types", "How do I implement Custom Types?", id="how to, in title case"),
        pytest.param("Install the lamp", "How do I install the lamp?", id="an order"),
        pytest.param("Passing Parameters In URLs", "How do I pass Parameters In URLs?", id="a gerund"),
        pytest.param("Setting and disabling timeouts", "How do I set and disable timeouts?", id="two gerunds"),
        pytest.param("Getting your own key", "How do I get my own key?", id="a doubled letter, and whose it is"),
        pytest.param("How keys are stored", "How are keys stored?", id="how it is done"),
        pytest.param("How faithfully a site is read", "", id="how in which manner"),
        pytest.param("Testing and Linting", "", id="a gerund that is not known"),
        pytest.param("Merging of configuration", "", id="a noun that looks like a gerund"),
        pytest.param("Use Cases", "", id="a noun that looks like a verb"),
        pytest.param("In a hurry?", "", id="no question in spite of its mark"),
        pytest.param("Fog signals", "", id="a subject"),
        pytest.param("", "", id="nothing"),
    ],
)
def test_a_heading_becomes_the_question_that_people_ask_or_none(heading: str, question: str) -> None:
    assert question_from_heading(heading) == question


def test_capitals_of_a_title_become_those_of_the_text() -> None:
    asked = "How do I pass Parameters to Docker with Flask?"
    text = "The parameters are passed to Docker. Docker reads parameters; flask too."
    assert use_sentence_case(asked, text, keep="Flask") == "How do I pass parameters to Docker with Flask?"


async def test_every_suggested_question_has_an_answer(book: Book, lighthouse: Path) -> None:
    await book.ingest(lighthouse)
    known = await book.introduction()
    assert (known.name, known.sections) == ("The Lighthouse Handbook", ("Keeping", "Signals"))
    assert len(known.questions) == 3
    for question in known.questions:
        assert (await book.ask(question)).outcome is Outcome.ANSWERED
    assert await book.introduction() is known


async def test_a_page_is_introduced_by_its_own_questions_and_an_unknown_one_by_the_book(
    book: Book, lighthouse: Path
) -> None:
    await book.ingest(lighthouse)
    lamp = (lighthouse / "keeping" / "lamp.md").as_uri()
    known = await book.introduction(lamp)
    assert (known.name, known.url) == ("Tending the lamp", lamp)
    assert known.questions[0] == "How do I tend the lamp?"
    for question in known.questions:
        assert (await book.ask(question)).outcome is Outcome.ANSWERED
    assert await book.introduction("https://elsewhere.example/") == await book.introduction()
