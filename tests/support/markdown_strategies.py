"""Markdown as people write it, and as nobody should, for tests that try everything."""

from __future__ import annotations

from hypothesis import strategies as st

from bythebook.sources import Page, readers
from bythebook.sources.document import compose
from bythebook.sources.projects import Style

_WORDS = [
    *"the lamp horn keeper oil fog wick and of is not lens turns nightly every ROS 2 e.g. v1.2.3 3.14 U.S.".split(),
    *[
        "`code`",
        "**bold**",
        "[a link](https://example.com)",
        "Größe",
        "中文。",
        "日本",
        "naïve—dash",
        "R&D",
        "a,b",
        "x-y",
    ],
    "www" * 60,
]
_WORD = st.sampled_from(_WORDS)
_SENTENCE = st.builds(
    lambda words, end: " ".join(words).capitalize() + end,
    st.lists(_WORD, min_size=1, max_size=14),
    st.sampled_from([".", "!", "?", ":", "...", ""]),
)
_PARAGRAPH = st.lists(_SENTENCE, min_size=1, max_size=7).map(" ".join)
_HEADING = st.builds(
    lambda level, words: "#" * level + " " + " ".join(words),
    st.integers(1, 6),
    st.lists(_WORD, min_size=1, max_size=5),
)
_ITEMS = st.lists(st.tuples(st.sampled_from(["- ", "  - ", "1. "]), _SENTENCE), min_size=1, max_size=8)
_LIST = _ITEMS.map(lambda items: "\n".join(mark + text for mark, text in items))
_LINE = st.sampled_from(["x = 1", "    return x", "", "# a comment", "- name: lamp", "```", "| a | b |", "y" * 90])
_CODE = st.builds(
    lambda fence, language, lines: "\n".join([fence + language, *lines, fence]),
    st.sampled_from(["```", "~~~", "`````"]),
    st.sampled_from(["", "python", "yaml"]),
    st.lists(_LINE, max_size=30),
)
_ROW = st.lists(st.lists(_WORD, max_size=3).map(" ".join), min_size=2, max_size=2).map(
    lambda cells: "| " + " | ".join(cells) + " |"
)
_TABLE = st.lists(_ROW, min_size=2, max_size=9).map(lambda rows: "\n".join([rows[0], "| --- | --- |", *rows[1:]]))
_QUOTE = _PARAGRAPH.map(lambda text: "> " + text)
_BLOCK = st.one_of(_PARAGRAPH, _PARAGRAPH, _HEADING, _LIST, _CODE, _TABLE, _QUOTE)

MARKDOWN = st.lists(_BLOCK, min_size=1, max_size=12).map("\n\n".join)
"""One document."""


def page_of(markdown: str, *, url: str = "https://book.example/page", title: str = "") -> Page:
    """The page the real Markdown reader makes of a document."""
    draft = readers.read(markdown, suffix=".md", style=Style.PLAIN)
    text, blocks = compose(draft.parts)
    return Page(url=url, title=title or draft.title or "Untitled", text=text, blocks=blocks)
