"""Headings of a PDF, and its page headers and footers.

Headings are recognised by the outline of the document, if it has one, and by font size and weight. Headers, footers and
page numbers repeat on many pages and are removed.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bythebook.sources.readers.pdf_layout import TextLine


MAX_HEADING_LENGTH = 150
"""A longer line is not a heading, regardless of its size."""
_MAX_BOLD_LENGTH = 90
MIN_HEADING_SCALE = 1.12
"""Minimum ratio of the font size of a heading to that of the body text."""
_LETTER = re.compile(r"[^\W\d_]")
_NUMBERED = re.compile(
    r"(?:(?:chapter|part|appendix|section)\s+)?(?:\d+(?:\.\d+)*[.:)]?|[a-z](?:\.\d+)+[.:)]?|[a-z][.:)])\s+(?=\S)"
)

Typography = tuple[float, bool]
"""The font size of a line, and whether it is bold."""


@dataclass(frozen=True, slots=True)
class OutlineEntry:
    """An entry of the document's outline (bookmarks)."""

    title: str
    page: int
    level: int


@dataclass(frozen=True, slots=True)
class HeadingDetector:
    """Decides which lines are headings, and their levels."""

    body: float
    """The font size of the body text: the most frequent one."""
    levels: Mapping[Typography, int]
    entries: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    """The level of each title in the outline, by page number."""

    def level(self, line: TextLine, *, page: int) -> int:
        """1 to 6 for a heading, 0 for other lines."""
        named = self.entries.get(page, {}).get(_normalize_title(line.text), 0)
        return named or (self.levels.get(_typography_of(line), 0) if _is_prominent(line, self.body) else 0)

    def is_in_outline(self, text: str, *, page: int) -> bool:
        """Whether the outline has this title on this page."""
        return _normalize_title(text) in self.entries.get(page, {})


def detect_headings(pages: Sequence[Sequence[TextLine]], entries: Sequence[OutlineEntry]) -> HeadingDetector:
    """Find the typography of the headings of a document."""
    body = find_body_size(pages)
    by_page: dict[int, dict[str, int]] = defaultdict(dict)
    for entry in entries:
        by_page[entry.page].setdefault(_normalize_title(entry.title), min(entry.level, 6))
    styles: Counter[Typography] = Counter()
    known: dict[Typography, Counter[int]] = defaultdict(Counter)
    for number, page in enumerate(pages, start=1):
        for line in page:
            if _is_prominent(line, body):
                styles[_typography_of(line)] += 1
                if level := by_page.get(number, {}).get(_normalize_title(line.text)):
                    known[_typography_of(line)][level] += 1
    return HeadingDetector(body, _assign_levels(styles, known), by_page)


def _assign_levels(styles: Counter[Typography], known: Mapping[Typography, Counter[int]]) -> dict[Typography, int]:
    """Levels by decreasing font size; the outline decides for a typography that occurs in it."""
    levels: dict[Typography, int] = {}
    above = 0
    for style in sorted(styles, reverse=True):
        level = known[style].most_common(1)[0][0] if style in known else above + 1
        levels[style] = min(level, 6)
        above = levels[style]
    return levels


def _is_prominent(line: TextLine, body: float) -> bool:
    if (
        line.is_monospaced
        or len(line.cells) > 2
        or len(line.text) > MAX_HEADING_LENGTH
        or not _LETTER.search(line.text)
    ):
        return False
    if line.size >= MIN_HEADING_SCALE * body:
        return True
    return (
        line.is_bold
        and not line.cells
        and line.size >= 0.97 * body
        and len(line.text) <= _MAX_BOLD_LENGTH
        and not line.text.rstrip().endswith((".", ",", ";", ":"))
    )


def find_body_size(pages: Sequence[Sequence[TextLine]]) -> float:
    """The size most of a document is set in."""
    sizes: Counter[float] = Counter()
    for page in pages:
        for line in page:
            sizes[round(line.size * 2) / 2] += len(line.text) * (1 if line.is_monospaced else 2)
    return sizes.most_common(1)[0][0] if sizes else 0.0


def _typography_of(line: TextLine) -> Typography:
    return round(line.size * 2) / 2, line.is_bold


def _normalize_title(text: str) -> str:
    """A title without its number, in lower case and with single spaces."""
    text = " ".join(text.split()).casefold()
    return _NUMBERED.sub("", text, count=1) if _NUMBERED.match(text) else text


_EDGE_LINES = 3
"""How many heights at the top and at the bottom of a page may be those of a header or footer."""
_NUMBER = re.compile(r"\d+")
_PAGE_NUMBER = re.compile(
    r"(?:page|p\.|seite|página|стр\.)?\s*[-–—|\[(]?\s*"
    r"(?:\d{1,5}|(?=[ivxlc])(?:xc|xl|l?x{0,3})(?:ix|iv|v?i{0,3}))"
    r"\s*[-–—|\])]?(?:\s*(?:/|of|von|de)\s*\d{1,5})?",
    re.IGNORECASE,
)


def remove_headers_and_footers(pages: Sequence[Sequence[TextLine]]) -> list[list[TextLine]]:
    """The lines of each page without headers, footers and page numbers."""
    body = find_body_size(pages)
    repeated = Counter(key for page in pages for key in {_repetition_key(line, body) for line in _edge_lines(page)})
    written = sum(1 for page in pages if page)
    enough = min(3, max(2, written))
    kept: list[list[TextLine]] = []
    for page in pages:
        edges = _edge_lines(page)
        gone = {
            id(line)
            for line in edges
            if repeated[_repetition_key(line, body)] >= enough or _PAGE_NUMBER.fullmatch(line.text)
        }
        kept.append([line for line in page if id(line) not in gone])
    return kept


def _edge_lines(page: Sequence[TextLine]) -> list[TextLine]:
    """The lines at the three outermost heights at the top and at the bottom of a page, in any drawing order."""
    heights = sorted({round(line.y) for line in page})
    outermost = {*heights[:_EDGE_LINES], *heights[-_EDGE_LINES:]}
    return [line for line in page if round(line.y) in outermost]


def _repetition_key(line: TextLine, body: float) -> tuple[str, int]:
    """Equal for lines that repeat at the same height with other page numbers. Numbers in headings are kept."""
    text = line.text if line.size >= MIN_HEADING_SCALE * body else _NUMBER.sub("#", line.text)
    return text, round(line.y / 3)
