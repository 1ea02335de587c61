from __future__ import annotations

import pytest

from bythebook.sources import BlockKind
from bythebook.sources.document import DocumentPart, ParsedDocument
from bythebook.sources.readers import text as plain


def test_a_short_first_line_is_the_title() -> None:
    assert plain.read("Arms\n\nThey bend.") == ParsedDocument(
        "Arms", (DocumentPart(BlockKind.HEADING, "Arms", level=1), DocumentPart(BlockKind.PARAGRAPH, "They bend."))
    )


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("They bend. Both of them.\n\nMore.", id="a sentence"),
        pytest.param("They bend " * 20 + "\n\nMore.", id="too long"),
        pytest.param("Arms", id="nothing below it"),
    ],
)
def test_other_first_lines_are_text(text: str) -> None:
    assert plain.read(text).title == ""


def test_joins_wrapped_prose_and_keeps_the_lines_of_lists() -> None:
    first, second = "An arm is a chain of links, each of which turns well", "against the one before it."

    assert [part.text for part in plain.read(f"{first}\n{second}\n\n- a\n- b").parts] == [
        f"{first} {second}",
        "- a\n- b",
    ]
