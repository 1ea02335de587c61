"""The parts of a chunk that can be quoted separately."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings

from bythebook.chunking.spans import find_table_header, is_lead, split_spans
from tests.support.markdown_strategies import MARKDOWN, page_of


@pytest.mark.parametrize(
    ("text", "fence", "expected"),
    [
        pytest.param(
            "Light it. Then wait.", "", [("sentence", "Light it."), ("sentence", "Then wait.")], id="sentences"
        ),
        pytest.param(
            "Bring:\n- oil\n- a wick. Dry.\n12) a match",
            "",
            [
                ("sentence", "Bring:"),
                ("item", "oil"),
                ("item", "a wick."),
                ("item", "Dry."),
                ("item", "a match"),
            ],
            id="a list without its marks",
        ),
        pytest.param("- oil\n  - colza", "", [("item", "oil"), ("item", "colza")], id="a list in a list"),
        pytest.param(
            "| Flag | Meaning |\n|:--- | ---: |\n| Red | Danger |",
            "",
            [("row", "| Flag | Meaning |"), ("row", "| Red | Danger |")],
            id="a table without its rule",
        ),
        pytest.param(
            "Run:\n\n```sh\nlamp --on. Now\n\n- not an item\n```\n\nDone.",
            "",
            [("sentence", "Run:"), ("code", "```sh\nlamp --on. Now\n\n- not an item\n```"), ("sentence", "Done.")],
            id="code is one unit with its fences",
        ),
        pytest.param(
            "````md\n```py\nx\n```\n````", "", [("code", "````md\n```py\nx\n```\n````")], id="a fence inside a fence"
        ),
        pytest.param("~~~\n```\n~~~", "", [("code", "~~~\n```\n~~~")], id="a fence of tildes"),
        pytest.param("```py\nx = 1\ny = 2", "", [("code", "```py\nx = 1\ny = 2")], id="code cut at its end"),
        pytest.param(
            "y = 2\n```\n\nDone.", "```py", [("code", "y = 2\n```"), ("sentence", "Done.")], id="code cut at its start"
        ),
        pytest.param("    y = 2\n\n    z = 3", "```py", [("code", "    y = 2\n\n    z = 3")], id="the middle of code"),
        pytest.param("````\nx\n````", "`````md", [("code", "````\nx\n````")], id="cut code holds shorter fences"),
        pytest.param("", "", [], id="nothing"),
        pytest.param(" \n ", "```", [], id="nothing inside code"),
    ],
)
def test_splits_spans(text: str, fence: str, expected: list[tuple[str, str]]) -> None:
    assert [(unit.kind.value, text[unit.start : unit.end]) for unit in split_spans(text, fence=fence)] == expected


@settings(max_examples=60, deadline=None)
@given(MARKDOWN)
def test_spans_omit_only_list_marks_table_rules_and_white_space(markdown: str) -> None:
    text = page_of(markdown).text
    found = split_spans(text)

    assert all(text[unit.start : unit.end].strip() for unit in found)
    edges = [0, *(edge for unit in found for edge in (unit.start, unit.end)), len(text)]
    assert edges == sorted(edges)
    between = [text[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True)]
    assert [gap for gap in between if not re.fullmatch(r"(\s|[-*+]|\d+[.)]|[|:])*", gap)] == []


@pytest.mark.parametrize(
    ("line", "leads"),
    [
        ("Light it so:", True),
        ("lamp.py", True),
        ("macOS/Linux", True),
        ("设置：", True),
        ("It burns oil.", False),
        ("Does it burn?", False),
        ("lamp " * 30, False),
        ("", False),
    ],
)
def test_a_lead_is_a_label_or_ends_in_a_colon(line: str, leads: bool) -> None:
    assert is_lead(line) == leads


TABLE = "| a | b |\n| --- | --- |\n| 1 | 2 |\n| 3 | 4 |"


@pytest.mark.parametrize(
    ("text", "row", "before", "header"),
    [
        pytest.param(f"Text:\n\n{TABLE}\n\nText", "| 3", "", TABLE[:23], id="in the text"),
        pytest.param(TABLE, "| a", "", "", id="the header itself"),
        pytest.param("| 5 | 6 |\n| 7 | 8 |", "| 7", TABLE[:23], TABLE[:23], id="before the text"),
        pytest.param(f"| 5 | 6 |\n\n{TABLE.upper()}", "| 3", TABLE[:23], TABLE[:23].upper(), id="of a second table"),
        pytest.param("| 5 | 6 |", "| 5", "", "", id="unknown"),
    ],
)
def test_finds_the_header_of_a_table_row(text: str, row: str, before: str, header: str) -> None:
    assert find_table_header(text, text.index(row), before=before) == header
