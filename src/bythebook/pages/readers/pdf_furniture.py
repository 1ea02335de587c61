"""Furniture of a PDF: the running heads, feet and numbers that stand on page after page and are none of its text."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from bythebook.pages.readers.pdf_headings import LARGER, body_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bythebook.pages.readers.pdf_lines import Line

_AT_THE_EDGE = 3
"""How many lines at the top, and at the bottom, may be furniture."""
_NUMBER = re.compile(r"\d+")
_ONLY_A_NUMBER = re.compile(
    r"(?:page|p\.|seite|página|стр\.)?\s*[-–—|\[(]?\s*"
    r"(?:\d{1,5}|(?=[ivxlc])(?:xc|xl|l?x{0,3})(?:ix|iv|v?i{0,3}))"
    r"\s*[-–—|\])]?(?:\s*(?:/|of|von|de)\s*\d{1,5})?",
    re.IGNORECASE,
)


def without_furniture(pages: Sequence[Sequence[Line]]) -> list[list[Line]]:
    """The lines of each page that stand there only once."""
    body = body_size(pages)
    repeated = Counter(key for page in pages for key in {_key(line, body) for line in _edges(page)})
    written = sum(1 for page in pages if page)
    enough = min(3, max(2, written))
    kept: list[list[Line]] = []
    for page in pages:
        edges = _edges(page)
        gone = {
            id(line) for line in edges if repeated[_key(line, body)] >= enough or _ONLY_A_NUMBER.fullmatch(line.text)
        }
        kept.append([line for line in page if id(line) not in gone])
    return kept


def _edges(page: Sequence[Line]) -> list[Line]:
    """The outermost lines of a page that stand apart from the rest of it, wherever they were drawn."""
    if not page:
        return []
    order = sorted(page, key=lambda line: line.y)
    return [*_edge(order), *_edge(order[::-1])]


def _edge(order: Sequence[Line]) -> Iterator[Line]:
    """The first lines of `order`. A repeated line is furniture anywhere near the edge."""
    heights = sorted({round(line.y) for line in order[: 4 * _AT_THE_EDGE]}, key=lambda y: abs(y - order[0].y))
    outermost = set(heights[:_AT_THE_EDGE])
    for line in order[: 4 * _AT_THE_EDGE]:
        if round(line.y) in outermost:
            yield line


def _key(line: Line, body: float) -> tuple[str, int]:
    """What is the same on every page at the same height, but for its numbers. Headings count chapters, not pages."""
    text = line.text if line.size >= LARGER * body else _NUMBER.sub("#", line.text)
    return text, round(line.y / 3)
