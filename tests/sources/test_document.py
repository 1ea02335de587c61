from __future__ import annotations

import pytest

from bythebook.sources import Block, BlockKind
from bythebook.sources.document import (
    DocumentPart,
    DocumentWriter,
    compose,
    format_code_block,
    format_table,
    normalize_text,
)


def test_joins_parts_with_blank_lines_and_records_their_offsets() -> None:
    parts = [
        DocumentPart(BlockKind.HEADING, "Arms", level=2, anchor="arms"),
        DocumentPart(BlockKind.PARAGRAPH, "They bend."),
    ]

    assert compose(parts) == (
        "Arms\n\nThey bend.",
        (Block(BlockKind.HEADING, 0, 4, level=2, anchor="arms"), Block(BlockKind.PARAGRAPH, 6, 16)),
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
def test_normalizes_running_text(written: str, seen: str) -> None:
    assert normalize_text(written) == seen


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
def test_formats_code_with_a_fence(code: str, language: str, block: str) -> None:
    assert format_code_block(code, language=language) == block


def test_formats_a_table_with_a_header_and_equally_many_cells_per_row() -> None:
    assert format_table([["a", "b"], ["x|y"], ["1", "2\n3"]]) == "| a | b |\n| --- | --- |\n| x\\|y | |\n| 1 | 2 3 |"


def test_a_table_without_text_is_empty() -> None:
    assert format_table([["", ""], []]) == ""


def test_code_between_items_is_a_separate_part_and_the_list_continues() -> None:
    writer = DocumentWriter()
    for marker in ("1.", "2."):
        writer.open_item(marker)
        writer.paragraph("Run")
        writer.code("go")
        writer.paragraph("and wait\nlong")
        writer.close_item()
    writer.close_list()

    assert writer.finish() == (
        DocumentPart(BlockKind.LIST, "1. Run"),
        DocumentPart(BlockKind.CODE, "```\ngo\n```"),
        DocumentPart(BlockKind.PARAGRAPH, "and wait\nlong"),
        DocumentPart(BlockKind.LIST, "2. Run"),
        DocumentPart(BlockKind.CODE, "```\ngo\n```"),
        DocumentPart(BlockKind.PARAGRAPH, "and wait\nlong"),
    )


def test_does_not_write_an_empty_item() -> None:
    writer = DocumentWriter()
    writer.open_item("-")
    writer.close_item()
    writer.close_list()

    assert writer.finish() == ()
