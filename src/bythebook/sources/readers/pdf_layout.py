"""Layout analysis of a PDF: from text runs to lines, and from lines to paragraphs, lists, code and tables.

A PDF has no lines, words or paragraphs. It has text runs with coordinates, in drawing order.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import groupby, pairwise
from statistics import median, median_low
from typing import NamedTuple

from bythebook.sources.document import DocumentPart, DocumentWriter
from bythebook.sources.readers.pdf_outline import HeadingDetector

_MONOSPACED = re.compile(r"mono|courier|consol|menlo|typewriter|cmtt|code|fixed|terminal|inconsolata", re.IGNORECASE)
_BOLD = re.compile(r"bold|black|heavy|demi|cmbx|cmssbx", re.IGNORECASE)
_LIGATURES = "\ufb00 ff \ufb01 fi \ufb02 fl \ufb03 ffi \ufb04 ffl \ufb05 ft \ufb06 st".split()
_LIGATURE_TABLE = str.maketrans(dict(zip(_LIGATURES[::2], _LIGATURES[1::2], strict=True)) | {"\u00a0": " ", "\t": " "})
_NARROW, _WIDE = frozenset("iIjl.,:;'|!()[]ft’‘` "), frozenset("mwMW—@%")
_FIXED_WIDTH = 0.6


class TextRun(NamedTuple):
    """Text drawn by one operation. `x` and `y` are the start of its baseline; y grows upwards."""

    text: str
    x: float
    y: float
    size: float
    turn: int
    """Rotation in counterclockwise quarter turns."""
    font: str


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line of a page or of a column."""

    text: str
    x: float
    y: float
    size: float
    end: float
    """The x coordinate of its end, estimated from its letters."""
    is_monospaced: bool
    is_bold: bool
    cells: tuple[tuple[float, str], ...] = ()
    """The x coordinates and texts of its segments with wide gaps between them. Empty for a single segment."""


def place_run(text: str, place: Sequence[float], *, size: float, font: str) -> TextRun:
    """A text run at the position that the transformation `place` gives it."""
    a, b, c, d, x, y = place
    turn = round(math.atan2(b, a) / (math.pi / 2)) % 4
    x, y = ((x, y), (y, -x), (-x, -y), (-y, x))[turn]
    return TextRun(text.translate(_LIGATURE_TABLE), x, y, abs(size) * math.hypot(c, d), turn, font)


def group_into_lines(pieces: Iterable[TextRun]) -> list[TextLine]:
    """The lines of a page in drawing order, or column by column if columns are recognised.

    Text with another rotation than most of the page, such as a stamp or an axis label, is dropped.
    """
    upright = _upright_runs(pieces)
    found: list[list[TextRun]] = []
    for one in upright:
        if one.text.strip() and found and _continues_line(found[-1], one):
            found[-1].append(one)
        elif one.text.strip():
            found.append([one])
        elif found and one.text and not found[-1][-1].text.endswith(" "):
            found[-1][-1] = found[-1][-1]._replace(text=found[-1][-1].text + " ")
    return _order_columns([_build_line(group) for group in found])


def _upright_runs(pieces: Iterable[TextRun]) -> list[TextRun]:
    every = [part for one in pieces for part in _split_lines(one)]
    turns: Counter[int] = Counter()
    for one in every:
        turns[one.turn] += len(one.text.strip())
    turn = turns.most_common(1)[0][0] if turns else 0
    return [one for one in every if one.turn == turn]


def _split_lines(one: TextRun) -> list[TextRun]:
    """Split a run at line breaks inside it. A break at its end is visible from the position of the next run."""
    rows = one.text.strip("\n").split("\n")
    return [one._replace(text=row, y=one.y - number * one.size * 1.2) for number, row in enumerate(rows)]


def _continues_line(group: list[TextRun], one: TextRun) -> bool:
    last = group[-1]
    tallest = max(one.size, last.size)
    return abs(one.y - group[0].y) <= 0.5 * tallest and one.x >= last.x - 0.5 * tallest


def _build_line(group: list[TextRun]) -> TextLine:
    letters = sum(len(one.text) for one in group)
    longest = max(group, key=lambda one: len(one.text))
    cells: list[tuple[float, str]] = []
    end = -math.inf
    for one in group:
        if cells and one.x - end <= 1.2 * one.size + 0.1 * max(0.0, end - cells[-1][0]):
            cells[-1] = (cells[-1][0], cells[-1][1] + one.text)
        else:
            cells.append((one.x + _indent_width(one), one.text))
        end = one.x + _width(one.text, one.size, is_monospaced=bool(_MONOSPACED.search(one.font)))
    cells = [(x, text.strip(" ")) for x, text in cells]
    return TextLine(
        text=" ".join(text for _, text in cells),
        x=cells[0][0],
        y=longest.y,
        size=round(longest.size, 1),
        end=end,
        is_monospaced=2 * sum(len(one.text) for one in group if _MONOSPACED.search(one.font)) > letters,
        is_bold=sum(len(one.text) for one in group if _BOLD.search(one.font)) > 0.9 * letters,
        cells=tuple(cells) if len(cells) > 1 else (),
    )


def _indent_width(one: TextRun) -> float:
    blanks = len(one.text) - len(one.text.lstrip(" "))
    return blanks * one.size * (_FIXED_WIDTH if _MONOSPACED.search(one.font) else 0.3)


def text_width(text: str, like: TextLine) -> float:
    """The width of a text in the font of this line."""
    return _width(text, like.size, is_monospaced=like.is_monospaced)


def _width(text: str, size: float, *, is_monospaced: bool) -> float:
    """The approximate width in an ordinary font. Each font of a PDF encodes exact widths differently."""
    return size * (_FIXED_WIDTH * len(text) if is_monospaced else sum(map(_letter_width, text)))


def _letter_width(letter: str) -> float:
    if letter in _NARROW:
        return 0.3
    if letter in _WIDE:
        return 0.85
    return 0.67 if letter.isupper() else 1.0 if letter > "\u2e80" else 0.49


def _order_columns(found: list[TextLine]) -> list[TextLine]:
    """If two columns are drawn line by line across the page, put the left one before the right one."""
    across = [line for line in found if len(line.cells) == 2 and min(len(text) for _, text in line.cells) > 15]
    if len(across) < 8 or 2 * len(across) < len(found):
        return found
    gutter = median(line.cells[1][0] for line in across)
    if sum(abs(line.cells[1][0] - gutter) < 3 for line in across) < 0.8 * len(across):
        return found
    left: list[TextLine] = []
    right: list[TextLine] = []
    for line in found:
        if line in across:
            left.append(replace(line, text=line.cells[0][1], end=gutter - line.size, cells=()))
            right.append(replace(line, text=line.cells[1][1], x=line.cells[1][0], cells=()))
        elif line.x >= gutter - 3:
            right.append(line)
        else:
            left.append(line)
    return left + right


_ITEM = re.compile(r"(?:(?P<bullet>[•◦▪▫‣⁃●○■□·\uf0b7–*-])|(?P<number>\(?\d{1,3}[.)]))\s+(?=\S)")
_PARAGRAPH_END = re.compile(r"[.!?:;。！？][\"'”’)\]]*$")
_SENTENCE_END = re.compile(r"[.!?][\"'”’)\]]*\s+(?=[\"“‘(]?[A-Z0-9])|[。！？]")
_HYPHENATED_END = re.compile(r"([^\W\d_]+(?:-[^\W\d_]+)*)[-\u00ad\u2010]$")
_URL_END = re.compile(r"(?:://|www\.)\S*$")
_FIRST_WORD = re.compile(r"[^\W\d_]+")
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_USUAL_LEADING = 1.2


class _RegionKind(Enum):
    HEADING = "heading"
    TEXT = "text"
    CODE = "code"
    TABLE = "table"


@dataclass(frozen=True, slots=True)
class _Region:
    """Consecutive lines of one page that form one block."""

    kind: _RegionKind
    page: int
    lines: tuple[TextLine, ...]
    text: str = ""
    level: int = 0


class _RightEdges:
    """The right edge of each column of a page."""

    def __init__(self, page: Sequence[TextLine]) -> None:
        self._page = page
        self._known: dict[int, float] = {}

    def right_of(self, line: TextLine) -> float:
        """The right edge of the column of this line: the 90th percentile of its line ends."""
        place = round(line.x)
        if place not in self._known:
            ends = sorted(one.end for one in self._page if abs(one.x - place) < 5 * one.size and not one.cells)
            self._known[place] = ends[int(len(ends) * 0.9)] if ends else line.end
        return self._known[place]


class LayoutAnalyzer:
    """Groups the lines of a document into blocks."""

    def __init__(self, pages: Sequence[Sequence[TextLine]], headings: HeadingDetector) -> None:
        self._pages = pages
        self._headings = headings
        self._leading = _leading(pages)
        every = (line.text for page in pages for line in page)
        # The last word of a line may be hyphenated.
        self._words = Counter(word.casefold() for text in every for word in _WORD.findall(text.rpartition(" ")[0]))
        self._keeps_hyphens = self._prefers_hyphens()

    def parts(self, heartbeat: Callable[[], object]) -> Iterator[DocumentPart]:
        """The parts in order. The anchor of each is its first page. Calls `heartbeat` after each page."""
        regions = (
            region for number, page in enumerate(self._pages, 1) for region in self._iterate_regions(page, number)
        )
        for number, group in groupby(self._join_continued_regions(regions), key=lambda region: region.page):
            writer = DocumentWriter()
            for region in group:
                _write_region(writer, region)
            for part in writer.finish():
                yield replace(part, anchor=f"page={number}")
            heartbeat()

    def _iterate_regions(self, page: Sequence[TextLine], number: int) -> Iterator[_Region]:
        """The regions of one page."""
        edges = _RightEdges(page)
        group: list[TextLine] = []
        kind = _RegionKind.TEXT
        for line in page:
            now = self._kind(line, number)
            if group and self._continues_group(group, line, kinds=(kind, now), edges=edges, page=number):
                group.append(line)
                continue
            if group:
                yield self._build_region(kind, group, number)
            group, kind = [line], now
        if group:
            yield self._build_region(kind, group, number)

    def _kind(self, line: TextLine, page: int) -> _RegionKind:
        if self._headings.level(line, page=page):
            return _RegionKind.HEADING
        if line.is_monospaced:
            return _RegionKind.CODE
        return _RegionKind.TABLE if line.cells and not _ITEM.match(line.text) else _RegionKind.TEXT

    def _continues_group(
        self,
        group: Sequence[TextLine],
        line: TextLine,
        *,
        kinds: tuple[_RegionKind, _RegionKind],
        edges: _RightEdges,
        page: int,
    ) -> bool:
        before, kind, now = group[-1], *kinds
        drop = before.y - line.y
        if drop <= -0.5 * line.size or drop > 4 * line.size:
            return False
        if kind is _RegionKind.TABLE:
            return now is _RegionKind.TABLE or (now is _RegionKind.TEXT and _is_in_column(group, line))
        if kind is not now:
            return False
        if kind is _RegionKind.CODE:
            return abs(before.size - line.size) < 1 and drop <= 3.2 * line.size
        if kind is _RegionKind.HEADING:
            return self._is_same_heading(group, line, page)
        return self._is_same_paragraph(group, line, edges)

    def _is_same_heading(self, group: Sequence[TextLine], line: TextLine, page: int) -> bool:
        """Whether a line continues a heading: it has the same typography and a small distance."""
        before = group[-1]
        alike = before.size == line.size and before.is_bold == line.is_bold
        whole = " ".join(one.text for one in group)
        return alike and before.y - line.y <= 1.6 * line.size and not self._headings.is_in_outline(whole, page=page)

    def _is_same_paragraph(self, group: Sequence[TextLine], line: TextLine, edges: _RightEdges) -> bool:
        before = group[-1]
        if abs(before.size - line.size) > 0.08 * line.size or _ITEM.match(line.text):
            return False
        if before.y - line.y > 1.3 * self._leading * line.size:
            return False
        if len(group) > 1 and abs(line.x - before.x) > 0.8 * line.size:
            return False  # only the first line of a paragraph may be indented
        first_word = text_width(line.text.split(" ", 1)[0] + " ", line)
        edge = edges.right_of(before)
        # If the first word would have fit on the line before, the line break starts a new paragraph.
        return before.end + first_word > edge - 0.15 * (edge - before.x)

    def _build_region(self, kind: _RegionKind, group: list[TextLine], page: int) -> _Region:
        if kind is _RegionKind.TABLE and sum(bool(line.cells) for line in group) < 2:
            kind = _RegionKind.TEXT
        text = "" if kind in (_RegionKind.CODE, _RegionKind.TABLE) else self._join_lines(line.text for line in group)
        level = self._headings.level(group[0], page=page) if kind is _RegionKind.HEADING else 0
        return _Region(kind, page, tuple(group), text, level)

    def _join_lines(self, texts: Iterable[str]) -> str:
        """Join lines and the words that are hyphenated at their ends."""
        whole = ""
        for text in texts:
            whole = self._join_words(whole, text.strip()) if whole else text.strip()
        return whole

    def _join_words(self, before: str, after: str) -> str:
        first, second = _HYPHENATED_END.search(before), _FIRST_WORD.match(after)
        if not first:
            return f"{before} {after}"
        if before.endswith("\u00ad"):
            return before[:-1] + after
        known = self._compare_spellings(first[1], second[0]) if second else -1
        if not second or not second[0][0].islower() or _URL_END.search(before) or known < 0:
            return before + after
        return before + after if known == 0 and self._keeps_hyphens else before[:-1] + after

    def _compare_spellings(self, first: str, second: str) -> int:
        """Above 0 if the rest of the document spells the two halves as one word, below 0 if with a hyphen."""
        as_word = self._words[(first.rpartition("-")[2] + second).casefold()]
        return as_word - self._words[f"{first}-{second}".casefold()]

    def _prefers_hyphens(self) -> bool:
        """Whether most hyphens at line ends belong to the word, judging by the rest of the document."""
        verdicts: Counter[int] = Counter()
        for before, line in (pair for page in self._pages for pair in pairwise(page)):
            first, second = _HYPHENATED_END.search(before.text), _FIRST_WORD.match(line.text)
            if first and second:
                known = self._compare_spellings(first[1], second[0])
                verdicts[(known > 0) - (known < 0)] += 1
        return verdicts[-1] > verdicts[1]

    def _join_continued_regions(self, regions: Iterable[_Region]) -> Iterator[_Region]:
        """Join a paragraph that continues in the next column, and a sentence that continues on the next page.

        The rest of the paragraph after that sentence keeps its own page, so that citations lead there.
        """
        before: _Region | None = None
        for region in regions:
            rest = region
            if before and _continues_region(before, region):
                whole = self._join_words(before.text, region.text)
                cut = len(whole) if before.page == region.page else _find_sentence_end(whole, len(before.text))
                before = replace(before, text=whole[:cut].rstrip())
                if cut == len(whole):
                    continue
                rest = replace(region, text=whole[cut:])
            if before:
                yield before
            before = rest
        if before:
            yield before


def _leading(pages: Sequence[Sequence[TextLine]]) -> float:
    """The usual distance between the lines of a paragraph, as a multiple of the font size."""
    drops = (
        (before.y - line.y) / line.size
        for page in pages
        for before, line in pairwise(page)
        if line.size and before.size == line.size and not line.is_monospaced
    )
    usual = [drop for drop in drops if 0.9 < drop < 2.2]
    return median(usual) if usual else _USUAL_LEADING


def _is_in_column(group: Sequence[TextLine], line: TextLine) -> bool:
    """Whether a line continues a cell of the row above it."""
    starts = [x for row in group for x, _ in row.cells]
    return group[-1].y - line.y < 1.5 * line.size and any(abs(x - line.x) < 3 for x in starts)


def _continues_region(before: _Region, after: _Region) -> bool:
    if not (before.kind is after.kind is _RegionKind.TEXT) or after.page - before.page > 1:
        return False
    is_new_column = before.page != after.page or after.lines[0].y > before.lines[-1].y
    if (
        not is_new_column
        or _PARAGRAPH_END.search(before.text)
        or abs(before.lines[-1].size - after.lines[0].size) > 0.5
    ):
        return False
    return after.text[:1].islower() or bool(_HYPHENATED_END.search(before.text))


def _find_sentence_end(text: str, start: int) -> int:
    match = _SENTENCE_END.search(text, max(0, start - 1))
    return match.end() if match else len(text)


def _write_region(writer: DocumentWriter, region: _Region) -> None:
    if region.kind is _RegionKind.HEADING:
        writer.heading(region.text, level=region.level)
    elif region.kind is _RegionKind.CODE:
        writer.code(_code_text(region.lines))
    elif region.kind is _RegionKind.TABLE:
        writer.table(_table_rows(region.lines))
    elif item := _ITEM.match(region.text):
        writer.open_item((item["number"] or "-").replace("(", "").replace(")", "."))
        writer.paragraph(region.text[item.end() :])
        writer.close_item()
    else:
        writer.close_list()
        writer.paragraph(region.text)


def _code_text(group: Sequence[TextLine]) -> str:
    """Code with indentation and blank lines, estimated from the coordinates of its lines."""
    left = min(line.x for line in group)
    drop = median_low([before.y - line.y for before, line in pairwise(group)] or [0.0])
    typed: list[str] = []
    above = group[0].y
    for line in group:
        if drop and above - line.y > 1.7 * drop:
            typed.append("")
        above = line.y
        indent = " " * round((line.x - left) / max(0.6 * line.size, 0.1))
        typed.append(indent[:80] + line.text)
    return "\n".join(typed)


def _table_rows(group: Sequence[TextLine]) -> list[list[str]]:
    """The rows of a table. A line with a single segment continues the previous row."""
    starts = _column_starts(group)
    rows: list[list[str]] = []
    for line in group:
        cells = line.cells or ((line.x, line.text),)
        row = [""] * len(starts)
        for x, text in cells:
            column = min(range(len(starts)), key=lambda index: abs(starts[index] - x))
            row[column] = f"{row[column]} {text}".strip()
        if rows and not line.cells:
            rows[-1] = [f"{above} {below}".strip() for above, below in zip(rows[-1], row, strict=True)]
        else:
            rows.append(row)
    return rows


def _column_starts(group: Sequence[TextLine]) -> list[float]:
    starts: list[float] = []
    for x in sorted(x for line in group for x, _ in line.cells):
        if not starts or x - starts[-1] > 1.5 * group[0].size:
            starts.append(x)
    return starts
