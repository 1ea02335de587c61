"""Headings of a PDF: by its table of contents where it has one, and by the size and weight of their letters.

Furniture of a PDF: the running heads, feet and numbers that stand on page after page and are none of its text.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from bythebook.sources.readers.pdf_layout import Line


LONGEST = 150
"""Letters beyond which a line is no heading, however large."""
_LONGEST_BOLD = 90
LARGER = 1.12
"""How much larger than the text a heading is, at least."""
_LETTER = re.compile(r"[^\W\d_]")
_NUMBERED = re.compile(
    r"(?:(?:chapter|part|appendix|section)\s+)?(?:\d+(?:\.\d+)*[.:)]?|[a-z](?:\.\d+)+[.:)]?|[a-z][.:)])\s+(?=\S)"
)

Look = tuple[float, bool]
"""The size and weight of a line."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the document's table of contents (its outline, or bookmarks)."""

    title: str
    page: int
    level: int


@dataclass(frozen=True, slots=True)
class Headings:
    """Tells which lines are headings, and of which level."""

    body: float
    """The size most of the document is set in."""
    levels: Mapping[Look, int]
    entries: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    """The level of each title in the table of contents, by its page."""

    def level(self, line: Line, *, page: int) -> int:
        """1 to 6 for a heading, 0 for any other line."""
        named = self.entries.get(page, {}).get(_plain(line.text), 0)
        return named or (self.levels.get(_look(line), 0) if _stands_out(line, self.body) else 0)

    def named(self, text: str, *, page: int) -> bool:
        """Whether the table of contents has exactly this."""
        return _plain(text) in self.entries.get(page, {})


def headings(pages: Sequence[Sequence[Line]], entries: Sequence[Entry]) -> Headings:
    """What the headings of a document look like."""
    body = body_size(pages)
    by_page: dict[int, dict[str, int]] = defaultdict(dict)
    for entry in entries:
        by_page[entry.page].setdefault(_plain(entry.title), min(entry.level, 6))
    looks: Counter[Look] = Counter()
    known: dict[Look, Counter[int]] = defaultdict(Counter)
    for number, page in enumerate(pages, start=1):
        for line in page:
            if _stands_out(line, body):
                looks[_look(line)] += 1
                if level := by_page.get(number, {}).get(_plain(line.text)):
                    known[_look(line)][level] += 1
    return Headings(body, _levels(looks, known), by_page)


def _levels(looks: Counter[Look], known: Mapping[Look, Counter[int]]) -> dict[Look, int]:
    """The larger, the higher; as the table of contents has it where it knows a look."""
    levels: dict[Look, int] = {}
    above = 0
    for look in sorted(looks, reverse=True):
        level = known[look].most_common(1)[0][0] if look in known else above + 1
        levels[look] = min(level, 6)
        above = levels[look]
    return levels


def _stands_out(line: Line, body: float) -> bool:
    if line.is_monospaced or len(line.cells) > 2 or len(line.text) > LONGEST or not _LETTER.search(line.text):
        return False
    if line.size >= LARGER * body:
        return True
    return (
        line.is_bold
        and not line.cells
        and line.size >= 0.97 * body
        and len(line.text) <= _LONGEST_BOLD
        and not line.text.rstrip().endswith((".", ",", ";", ":"))
    )


def body_size(pages: Sequence[Sequence[Line]]) -> float:
    """The size most of a document is set in."""
    sizes: Counter[float] = Counter()
    for page in pages:
        for line in page:
            sizes[round(line.size * 2) / 2] += len(line.text) * (1 if line.is_monospaced else 2)
    return sizes.most_common(1)[0][0] if sizes else 0.0


def _look(line: Line) -> Look:
    return round(line.size * 2) / 2, line.is_bold


def _plain(text: str) -> str:
    """A title however it is numbered, spaced and cased."""
    text = " ".join(text.split()).casefold()
    return _NUMBERED.sub("", text, count=1) if _NUMBERED.match(text) else text


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
