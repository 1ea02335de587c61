"""Suggested questions: taken from the book, and answered by it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bythebook import Book, Outcome
from bythebook.index.catalog import TocEntry
from bythebook.qa.suggestions import _questions


@pytest.mark.parametrize(
    ("heading", "question"),
    [
        pytest.param("What is a lamp?", "What is a lamp?", id="a question"),
        pytest.param("How to trim a wick", "How do I trim a wick?", id="how to"),
        pytest.param("3.2 How to trim a wick", "How do I trim a wick?", id="numbered"),
        pytest.param("Fog signals", "What does the book say about fog signals?", id="a subject"),
        pytest.param("Fog Signals", "What does the book say about Fog Signals?", id="a subject with capitals"),
        pytest.param("ROS 2", "What does the book say about ROS 2?", id="a name"),
    ],
)
def test_a_heading_becomes_a_question(heading: str, question: str) -> None:
    page = TocEntry("https://book.example/1", "1.md", heading, ())
    assert [text for text, _ in _questions(page)] == [question]


@pytest.mark.parametrize(
    "heading", ["", "2024", "… a lamp?", "Why does it smoke?", "Everything there is to know about the keeping of lamps"]
)
def test_some_headings_are_not_turned_into_questions(heading: str) -> None:
    assert list(_questions(TocEntry("https://book.example/1", "1.md", heading, ()))) == []


async def test_every_suggested_question_has_an_answer(book: Book, lighthouse: Path) -> None:
    await book.ingest(lighthouse)
    known = await book.introduction()
    assert (known.name, known.sections) == ("The Lighthouse Handbook", ("Keeping", "Signals"))
    assert len(known.questions) == 4
    for question in known.questions:
        assert (await book.ask(question)).outcome is Outcome.ANSWERED
    assert await book.introduction() is known
