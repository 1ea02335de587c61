"""Retrieval contexts, citations and filters."""

from __future__ import annotations

from datetime import UTC

import pytest

from bythebook.errors import InputError
from bythebook.index import Filters
from bythebook.retrieval import RetrievalContext
from tests.support.passages import result

LAMP = result("The lamp burns oil.", position=1, score=0.8765, url="https://b.example/lamp", anchor="oil")
HORN = result("The horn warns ships.", position=2, score=0.5, url="https://b.example/horn", title="The Horn")
FOUND = RetrievalContext(query="lamp", results=(LAMP, HORN))
NOTHING = RetrievalContext(query="lamp", results=())


def test_total_tokens_is_the_sum_of_the_results() -> None:
    assert FOUND.total_tokens == LAMP.token_count + HORN.token_count == 10
    assert NOTHING.total_tokens == 0


def test_records_the_time_of_retrieval() -> None:
    assert FOUND.retrieved_at.tzinfo is UTC


def test_formats_numbered_blocks_for_a_prompt() -> None:
    assert FOUND.format_for_prompt() == (
        "Context from book:\n\n"
        "[1] Source: The Lamp (https://b.example/lamp)\nThe lamp burns oil.\n\n"
        "[2] Source: The Horn (https://b.example/horn)\nThe horn warns ships."
    )
    assert NOTHING.format_for_prompt() == "No relevant content found in the book."


@pytest.mark.parametrize(
    ("tokens", "kept"),
    [(100, (LAMP, HORN)), (10, (LAMP, HORN)), (9, (LAMP,)), (5, (LAMP,)), (4, ()), (0, ())],
    ids=["more than enough", "exactly enough", "one too few", "for one", "for none", "no room"],
)
def test_trimming_drops_the_lowest_results_first(tokens: int, kept: tuple[object, ...]) -> None:
    trimmed = FOUND.trim_to_budget(tokens)
    assert (trimmed.results, trimmed.query, trimmed.retrieved_at) == (kept, "lamp", FOUND.retrieved_at)


def test_every_passage_has_a_citation() -> None:
    first, second = FOUND.get_citations()
    assert (first.number, first.quote, first.start, first.end, first.verified) == (
        1,
        LAMP.text,
        0,
        len(LAMP.text),
        True,
    )
    assert first.url == "https://b.example/lamp#oil:~:text=The%20lamp%20burns%20oil."
    assert (second.number, second.title, second.score) == (2, "The Horn", 0.5)
    assert NOTHING.get_citations() == ()


def test_the_footer_lists_the_sources() -> None:
    assert FOUND.format_sources_footer() == (
        "\n---\n**Sources:**\n[1] https://b.example/lamp (score: 0.88)\n[2] https://b.example/horn (score: 0.50)"
    )
    assert NOTHING.format_sources_footer() == ""


@pytest.mark.parametrize(
    ("texts", "filters"),
    [
        pytest.param([], Filters(), id="none"),
        pytest.param(["module=Signals"], Filters(module="Signals"), id="module"),
        pytest.param(["chapter=a/b"], Filters(chapter="a/b"), id="chapter"),
        pytest.param(["url=https://b/?a=b"], Filters(url_prefix="https://b/?a=b"), id="url with an equals sign"),
        pytest.param([" module = Two words "], Filters(module="Two words"), id="spaces"),
        pytest.param(["module=A", "chapter=b"], Filters(module="A", chapter="b"), id="two"),
        pytest.param(["module=A", "module=B"], Filters(module="B"), id="the last one counts"),
    ],
)
def test_parses_filters_of_the_command_line(texts: list[str], filters: Filters) -> None:
    assert Filters.parse(texts) == filters


@pytest.mark.parametrize("text", ["colour=red", "module", "module=", "=Signals", "", "url_prefix=https://b"])
def test_rejects_invalid_filters_and_lists_valid_ones(text: str) -> None:
    with pytest.raises(InputError, match="module=NAME, chapter=ID or url=PREFIX"):
        Filters.parse([text])


def test_rejects_a_lone_surrogate_in_a_filter() -> None:
    with pytest.raises(InputError, match="UTF-8"):
        Filters.parse(["module=\udcff"])


def test_a_filter_is_truthy_and_describes_itself() -> None:
    assert not Filters()
    assert [bool(Filters(**{name: "x"})) for name in ("module", "chapter", "url_prefix")] == [True] * 3
    assert str(Filters(module="A", url_prefix="https://b")) == "module=A, url=https://b"
    assert str(Filters()) == ""
