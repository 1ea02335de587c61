"""Extractive answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bythebook.answers.extractive import MOST, cite, extract, format_refusal, nearest_sections
from bythebook.chunking.spans import split_spans
from bythebook.index.terms import Bm25Terms
from bythebook.retrieval.evidence import ScoredSpan
from tests.support.passages import result

if TYPE_CHECKING:
    from bythebook.retrieval import RetrievalResult

WORDS = Bm25Terms(20.0)


def weighed(found: RetrievalResult, begins: str, *, score: float = 1.0) -> ScoredSpan:
    """The span of a passage that starts with this text."""
    (unit,) = (
        unit for unit in split_spans(found.text, fence=found.fence) if found.text[unit.start :].startswith(begins)
    )
    return ScoredSpan(found, unit, score)


def answer(text: str, *begins: str, fence: str = "") -> str:
    """The answer when these spans of one passage score best, in this order."""
    found = result(text, fence=fence)
    ranked = [weighed(found, begin, score=1.0 - 0.01 * place) for place, begin in enumerate(begins)]
    return cite(extract(ranked, WORDS))[0]


@pytest.mark.parametrize(
    ("text", "begins", "expected"),
    [
        pytest.param("It burns oil. It is bright.", ["It burns"], "It burns oil. [1]", id="a sentence"),
        pytest.param(
            "The keeper lights lamps. Nobody sleeps. Ships pass by.",
            ["Ships", "The keeper"],
            "The keeper lights lamps. [1]\n\nShips pass by. [2]",
            id="two sentences in the order of the page",
        ),
        pytest.param(
            "The keeper lights lamps. Ships pass by. Nobody sleeps.",
            ["Ships", "The keeper"],
            "The keeper lights lamps. Ships pass by. [1]",
            id="neighbours are one quote",
        ),
        pytest.param(
            "The keeper lights lamps.\n\nShips pass by.",
            ["Ships", "The keeper"],
            "The keeper lights lamps.\n\nShips pass by. [1]",
            id="also across a paragraph",
        ),
        pytest.param(
            "You need:\n- colza oil\n- a dry wick\n\nThen wait.",
            ["colza"],
            "You need:\n- colza oil\n- a dry wick [1]",
            id="an item brings its list and what introduces it",
        ),
        pytest.param(
            "You need:\n1. colza oil\n2. a dry wick",
            ["You need"],
            "You need:\n1. colza oil\n2. a dry wick [1]",
            id="what introduces a list brings it",
        ),
        pytest.param(
            "- colza oil. It burns.\n- a dry wick", ["a dry"], "- a dry wick [1]", id="an item alone keeps its mark"
        ),
        pytest.param("3. colza oil\n4. a wick", ["colza"], "3. colza oil [1]", id="an item alone keeps its number"),
        pytest.param(
            "- colza oil. It burns brightly.", ["It burns"], "It burns brightly. [1]", id="half an item has no mark"
        ),
        pytest.param(
            "Many things:\n" + "\n".join(f"- thing{number} here" for number in range(20)),
            ["thing3"],
            "- thing3 here [1]",
            id="a long list does not come whole",
        ),
        pytest.param(
            "Run this:\n\n```sh\nlamp --on\n```\n\nDone.",
            ["Run this"],
            "Run this:\n\n```sh\nlamp --on\n```\n[1]",
            id="code comes with what introduces it, in its fences",
        ),
        pytest.param(
            "Run this:\n\n```sh\nlamp --on\n```\n\n```sh\nlamp --off\n```",
            ["Run this"],
            "Run this:\n\n```sh\nlamp --on\n```\n[1]",
            id="only the code that was introduced",
        ),
        pytest.param(
            "Flags mean:\n\n| Flag | Is |\n| --- | --- |\n| Red | Danger |\n\nEnd.",
            ["| Red"],
            "Flags mean:\n\n| Flag | Is |\n| --- | --- |\n| Red | Danger |\n[1]",
            id="a row brings its table and what introduces it",
        ),
        pytest.param("| Red | Danger |\n| Blue | Calm |", ["| Blue"], "| Blue | Calm |\n[1]", id="a row alone"),
        pytest.param(
            "As he wrote:\n\nCall me Ishmael. Some years ago I sailed.",
            ["As he"],
            "As he wrote:\n\nCall me Ishmael. [1]",
            id="a colon before prose brings one sentence",
        ),
        pytest.param("What it needs:", ["What"], "What it needs: [1]", id="a colon with nothing below it"),
    ],
)
def test_extracted_answers(text: str, begins: list[str], expected: str) -> None:
    assert answer(text, *begins) == expected


@pytest.mark.parametrize(
    ("text", "fence", "expected"),
    [
        pytest.param("```py\nlamp = 1", "", "```py\nlamp = 1\n```\n[1]", id="cut at its end"),
        pytest.param("lamp = 1\n```", "```py", "```py\nlamp = 1\n```\n[1]", id="cut at its start"),
        pytest.param("lamp = 1", "~~~~py", "~~~~py\nlamp = 1\n~~~~\n[1]", id="cut at both ends"),
        pytest.param("````\n```\nlamp\n```", "", "````\n```\nlamp\n```\n````\n[1]", id="with fences inside"),
        pytest.param("````\n```\nlamp", "", "````\n```\nlamp\n````\n[1]", id="with half a fence inside"),
    ],
)
def test_a_partial_code_block_is_rendered_with_fences(text: str, fence: str, expected: str) -> None:
    assert answer(text, text[:4], fence=fence) == expected


def test_the_quotes_of_the_best_passage_come_first() -> None:
    second = result("Ships pass by.", url="https://b.example/2")
    first = result("The keeper lights lamps. Nobody sleeps.", url="https://b.example/1")
    said, citations = cite(extract([weighed(second, "Ships"), weighed(first, "The keeper", score=0.9)], WORDS))

    assert said == "Ships pass by. [1]\n\nThe keeper lights lamps. [2]"
    assert [(made.number, made.quote, made.chunk_id) for made in citations] == [
        (1, "Ships pass by.", second.chunk_id),
        (2, "The keeper lights lamps.", first.chunk_id),
    ]


def test_repeated_content_is_quoted_once() -> None:
    one = result("The lamp burns colza oil.", url="https://b.example/1")
    two = result("Colza oil burns in the lamp.", url="https://b.example/2")
    assert cite(extract([weighed(one, "The"), weighed(two, "Colza")], WORDS))[0] == "The lamp burns colza oil. [1]"


def test_further_quotes_need_nearly_the_best_score() -> None:
    found = result("The lamp burns oil. Nobody sleeps. Ships pass by.")
    ranked = [weighed(found, "The lamp"), weighed(found, "Ships", score=0.69)]
    assert cite(extract(ranked, WORDS))[0] == "The lamp burns oil. [1]"


def test_the_number_of_quotes_is_limited() -> None:
    found = [result(f"Thing{number} alpha{number}.", url=f"https://b.example/{number}") for number in range(9)]
    assert len(extract([weighed(entry, "Thing") for entry in found], WORDS)) == MOST


def test_spans_without_content_words_are_not_quoted() -> None:
    assert extract([weighed(result("To be or not to be."), "To")], WORDS) == []
    assert cite([]) == ("", ())


def test_a_refusal_names_the_question_and_the_nearest_sections() -> None:
    assert format_refusal("Who?", ["A > B", "C"]) == (
        "I don't have information about “Who?” in this book.\n\nThe nearest sections are:\n- A > B\n- C"
    )
    assert format_refusal("Who?", []) == "I don't have information about “Who?” in this book."
    assert len(format_refusal("x" * 1000, [])) < 200


def test_nearest_sections_are_unique_and_limited() -> None:
    found = [
        result("a", heading_hierarchy=("A", "B")),
        result("b", heading_hierarchy=("A", "B")),
        result("c", title="C"),
        result("d", heading_hierarchy=("D",)),
        result("e", heading_hierarchy=("E",)),
    ]
    assert nearest_sections(found) == ("A > B", "C", "D")
