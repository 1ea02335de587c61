from __future__ import annotations

import pytest

from bythebook.sources import Block, Kind
from bythebook.sources.document import Part, Writer, clean, compose, fenced, piped


def test_parts_are_joined_by_blank_lines_and_found_again_at_their_offsets() -> None:
    parts = [Part(Kind.HEADING, "Arms", level=2, anchor="arms"), Part(Kind.PARAGRAPH, "They bend.")]

    assert compose(parts) == (
        "Arms\n\nThey bend.",
        (Block(Kind.HEADING, 0, 4, level=2, anchor="arms"), Block(Kind.PARAGRAPH, 6, 16)),
    )


def test_no_parts_make_an_empty_page() -> None:
    assert compose([]) == ("", ())


@pytest.mark.parametrize(
    ("written", "seen"),
    [
        pytest.param("a\u200bb\ufeffc\u00add", "abcd", id="invisible characters are gone"),
        pytest.param("👩\u200d🚀 می\u200cخواهم", "👩\u200d🚀 می\u200cخواهم", id="joiners change what is seen and stay"),
        pytest.param("10\u00a0kg \t of  it", "10 kg of it", id="runs of spaces are one"),
        pytest.param("one \r\n two\r three\u2028four", "one\ntwo\nthree\nfour", id="every line end is a newline"),
        pytest.param("a\x00b\x07c", "abc", id="control characters are gone"),
        pytest.param(" \n ", "", id="nothing but space is nothing"),
    ],
)
def test_running_text_is_cleaned(written: str, seen: str) -> None:
    assert clean(written) == seen


@pytest.mark.parametrize(
    ("code", "language", "block"),
    [
        pytest.param("a = 1\n", "python", "```python\na = 1\n```", id="named"),
        pytest.param("\n\n  a\tb  \n\n", "", "```\n  a\tb  \n```", id="verbatim but for blank lines around it"),
        pytest.param("```\nx\n```", "md", "````md\n```\nx\n```\n````", id="a longer fence around a fence"),
        pytest.param("fn main() {}", "rust,ignore", "```rust\nfn main() {}\n```", id="only the language is kept"),
        pytest.param(" \n", "python", "", id="no code, no block"),
    ],
)
def test_code_is_fenced(code: str, language: str, block: str) -> None:
    assert fenced(code, language=language) == block


def test_a_table_has_a_header_row_and_as_many_cells_in_every_row() -> None:
    assert piped([["a", "b"], ["x|y"], ["1", "2\n3"]]) == "| a | b |\n| --- | --- |\n| x\\|y | |\n| 1 | 2 3 |"


def test_a_table_that_says_nothing_is_nothing() -> None:
    assert piped([["", ""], []]) == ""


def test_code_between_items_stands_alone_and_the_list_goes_on() -> None:
    writer = Writer()
    for marker in ("1.", "2."):
        writer.open_item(marker)
        writer.paragraph("Run")
        writer.code("go")
        writer.paragraph("and wait\nlong")
        writer.close_item()
    writer.close_list()

    assert writer.finish() == (
        Part(Kind.LIST, "1. Run"),
        Part(Kind.CODE, "```\ngo\n```"),
        Part(Kind.PARAGRAPH, "and wait\nlong"),
        Part(Kind.LIST, "2. Run"),
        Part(Kind.CODE, "```\ngo\n```"),
        Part(Kind.PARAGRAPH, "and wait\nlong"),
    )


def test_an_item_with_nothing_in_it_is_not_written() -> None:
    writer = Writer()
    writer.open_item("-")
    writer.close_item()
    writer.close_list()

    assert writer.finish() == ()
