"""Questions for a definition, and the sentences that give it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bythebook import Book
from bythebook.retrieval.evidence import definition_pattern


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        pytest.param("What is a winch?", "A winch is a drum that winds a rope.", id="an article"),
        pytest.param("what is gazebo", "Gazebo is a simulator.", id="no mark"),
        pytest.param("What are clades?", "A clade is a group of organisms.", id="one of several"),
        pytest.param("What is a winch?", "Winches are drums.", id="several of one"),
        pytest.param("What is Isaac Sim?", "NVIDIA Isaac Sim is a simulator.", id="a maker's name before it"),
        pytest.param("What is URDF?", "URDF (Unified Robot Description Format) is a format.", id="spelled out"),
        pytest.param("What is Nav2?", "ROS 2 Navigation (Nav2) is the standard stack.", id="abbreviated"),
        pytest.param("What does idempotent mean?", "Idempotent means that twice is once.", id="meaning"),
        pytest.param("Define latency.", "*Latency* refers to the time until an answer.", id="define"),
        pytest.param("So what's a fog horn?", "The old fog horn is a horn.", id="said to somebody"),
        pytest.param("What are the processes?", "A process is what runs.", id="another ending"),
        pytest.param("What is it? Isaac Sim", "Isaac Sim is a simulator.", id="a follow-up"),
        pytest.param("Who was Ada Lovelace?", "Ada Lovelace was a mathematician.", id="a person"),
        pytest.param("What is a TF-IDF?", "TF-IDF is a weight.", id="a name with a mark in it"),
    ],
)
def test_recognises_a_definition_of_the_term(question: str, sentence: str) -> None:
    asked = definition_pattern(question)
    assert asked
    assert asked.match(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        pytest.param("Always oil the winch before it is used.", id="it is named later"),
        pytest.param("The winch turns slowly.", id="what it does"),
        pytest.param("Winching is hard work.", id="another word"),
        pytest.param("Nobody knows what a winch is.", id="it is no answer"),
    ],
)
def test_a_mention_of_the_term_is_not_a_definition(sentence: str) -> None:
    asked = definition_pattern("What is a winch?")
    assert asked
    assert not asked.match(sentence)


@pytest.mark.parametrize(
    "question",
    [
        "How is a winch oiled?",
        "What is the default size of a chunk?",
        "What is the very best way home tonight?",
        "What happens at night?",
        "What does the keeper do?",
        "What is it?",
        "Is a winch a drum?",
        "What is ?",
        "",
    ],
)
def test_other_questions_do_not_ask_for_a_definition(question: str) -> None:
    assert definition_pattern(question) is None


def test_hostile_questions_are_matched_fast_and_literally() -> None:
    for question in (
        "what is " + "!" * 900 + "\nx",
        "so " * 330 + "x",
        "what does " + "mean " * 190,
        "What is a (b|c.*+?",
    ):
        asked = definition_pattern(question)
        assert asked is None or not asked.match("An a is b.")


async def test_a_definition_ranks_before_other_sentences_about_the_term(book: Book, tmp_path: Path) -> None:
    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "winch.md").write_text(
        "# The winch\n\n## Care\n\nAlways oil the winch:\n\n- the winch drum\n- the winch brake\n\n"
        "## Overview\n\nThe winch is a drum with a crank that lifts the boat out of the water on stormy nights.\n",
        encoding="utf-8",
    )
    await book.ingest(str(pages))
    asked, other = await book.ask("What is a winch?"), await book.ask("How is the winch oiled?")
    assert asked.citations[0].quote.startswith("The winch is a drum with a crank")
    assert other.citations[0].quote.startswith("Always oil the winch:")
