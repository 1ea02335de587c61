"""Lines of a PDF: what stands on one line of a page, put together from the pieces a PDF is drawn in.

A PDF has no lines, words or paragraphs. It has pieces of text, each at its place, in the order they were drawn.

Flow of a PDF: from its lines back to paragraphs, items, code and tables.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, replace
from enum import Enum
from itertools import groupby, pairwise
from statistics import median, median_low
from typing import TYPE_CHECKING, NamedTuple

from bythebook.sources.document import Part, Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from bythebook.sources.readers.pdf_outline import Headings


_MONOSPACED = re.compile(r"mono|courier|consol|menlo|typewriter|cmtt|code|fixed|terminal|inconsolata", re.IGNORECASE)
_BOLD = re.compile(r"bold|black|heavy|demi|cmbx|cmssbx", re.IGNORECASE)
_LIGATURES = "\ufb00 ff \ufb01 fi \ufb02 fl \ufb03 ffi \ufb04 ffl \ufb05 ft \ufb06 st".split()
_SPELLED = str.maketrans(dict(zip(_LIGATURES[::2], _LIGATURES[1::2], strict=True)) | {"\u00a0": " ", "\t": " "})
_NARROW, _WIDE = frozenset("iIjl.,:;'|!()[]ft’‘` "), frozenset("mwMW—@%")
_FIXED_WIDTH = 0.6


class Piece(NamedTuple):
    """Text drawn at one go. `x` and `y` say where its base line begins, upwards and to the right."""

    text: str
    x: float
    y: float
    size: float
    turn: int
    """Quarter turns it is rotated by, against the clock."""
    font: str


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a page, or of a column of it."""

    text: str
    x: float
    y: float
    size: float
    end: float
    """Where it ends, as far as its letters tell."""
    is_monospaced: bool
    is_bold: bool
    cells: tuple[tuple[float, str], ...] = ()
    """Its text in pieces with wide gaps between them, each with its place, where it has more than one."""


def matrix(inner: Sequence[float], outer: Sequence[float]) -> tuple[float, float, float, float, float, float]:
    """The transformation that is first `inner`, then `outer`."""
    a, b, c, d, e, f = inner
    p, q, r, s, t, u = outer
    return a * p + b * r, a * q + b * s, c * p + d * r, c * q + d * s, e * p + f * r + t, e * q + f * s + u


def piece(text: str, place: Sequence[float], *, size: float, font: str) -> Piece:
    """A piece of text as a page's matrix places it."""
    a, b, c, d, x, y = place
    turn = round(math.atan2(b, a) / (math.pi / 2)) % 4
    x, y = ((x, y), (y, -x), (-x, -y), (-y, x))[turn]
    return Piece(text.translate(_SPELLED), x, y, abs(size) * math.hypot(c, d), turn, font)


def lines(pieces: Iterable[Piece]) -> list[Line]:
    """The lines of a page in the order they were drawn; column by column where that can be told.

    What is turned another way than most of the page is no part of its text: a stamp, a label on an axis.
    """
    upright = _upright(pieces)
    found: list[list[Piece]] = []
    for one in upright:
        if one.text.strip() and found and _goes_on(found[-1], one):
            found[-1].append(one)
        elif one.text.strip():
            found.append([one])
        elif found and one.text and not found[-1][-1].text.endswith(" "):
            found[-1][-1] = found[-1][-1]._replace(text=found[-1][-1].text + " ")
    return _columns([_line(group) for group in found])


def _upright(pieces: Iterable[Piece]) -> list[Piece]:
    every = [part for one in pieces for part in _one_line_each(one)]
    turns: Counter[int] = Counter()
    for one in every:
        turns[one.turn] += len(one.text.strip())
    turn = turns.most_common(1)[0][0] if turns else 0
    return [one for one in every if one.turn == turn]


def _one_line_each(one: Piece) -> list[Piece]:
    """Line ends are told by where the next piece stands; only one that is followed by text is needed."""
    rows = one.text.strip("\n").split("\n")
    return [one._replace(text=row, y=one.y - number * one.size * 1.2) for number, row in enumerate(rows)]


def _goes_on(group: list[Piece], one: Piece) -> bool:
    last = group[-1]
    tallest = max(one.size, last.size)
    return abs(one.y - group[0].y) <= 0.5 * tallest and one.x >= last.x - 0.5 * tallest


def _line(group: list[Piece]) -> Line:
    letters = sum(len(one.text) for one in group)
    longest = max(group, key=lambda one: len(one.text))
    cells: list[tuple[float, str]] = []
    end = -math.inf
    for one in group:
        if cells and one.x - end <= 1.2 * one.size + 0.1 * max(0.0, end - cells[-1][0]):
            cells[-1] = (cells[-1][0], cells[-1][1] + one.text)
        else:
            cells.append((one.x + _indent(one), one.text))
        end = one.x + _width(one.text, one.size, is_monospaced=bool(_MONOSPACED.search(one.font)))
    cells = [(x, text.strip(" ")) for x, text in cells]
    return Line(
        text=" ".join(text for _, text in cells),
        x=cells[0][0],
        y=longest.y,
        size=round(longest.size, 1),
        end=end,
        is_monospaced=2 * sum(len(one.text) for one in group if _MONOSPACED.search(one.font)) > letters,
        is_bold=sum(len(one.text) for one in group if _BOLD.search(one.font)) > 0.9 * letters,
        cells=tuple(cells) if len(cells) > 1 else (),
    )


def _indent(one: Piece) -> float:
    blanks = len(one.text) - len(one.text.lstrip(" "))
    return blanks * one.size * (_FIXED_WIDTH if _MONOSPACED.search(one.font) else 0.3)


def text_width(text: str, like: Line) -> float:
    """How wide a text would be, set like this line."""
    return _width(text, like.size, is_monospaced=like.is_monospaced)


def _width(text: str, size: float, *, is_monospaced: bool) -> float:
    """As in an ordinary typeface. PDFs have exact widths, but each font says them in its own way."""
    return size * (_FIXED_WIDTH * len(text) if is_monospaced else sum(map(_letter_width, text)))


def _letter_width(letter: str) -> float:
    if letter in _NARROW:
        return 0.3
    if letter in _WIDE:
        return 0.85
    return 0.67 if letter.isupper() else 1.0 if letter > "\u2e80" else 0.49


def _columns(found: list[Line]) -> list[Line]:
    """Two columns drawn across, line by line, are read one after the other."""
    across = [line for line in found if len(line.cells) == 2 and min(len(text) for _, text in line.cells) > 15]
    if len(across) < 8 or 2 * len(across) < len(found):
        return found
    gutter = median(line.cells[1][0] for line in across)
    if sum(abs(line.cells[1][0] - gutter) < 3 for line in across) < 0.8 * len(across):
        return found
    left: list[Line] = []
    right: list[Line] = []
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
_FINISHED = re.compile(r"[.!?:;。！？][\"'”’)\]]*$")
_SENTENCE_END = re.compile(r"[.!?][\"'”’)\]]*\s+(?=[\"“‘(]?[A-Z0-9])|[。！？]")
_BROKEN_WORD = re.compile(r"([^\W\d_]+(?:-[^\W\d_]+)*)[-\u00ad\u2010]$")
_ADDRESS = re.compile(r"(?:://|www\.)\S*$")
_BEGINNING = re.compile(r"[^\W\d_]+")
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_USUAL_LEADING = 1.2


class _Kind(Enum):
    HEADING = "heading"
    TEXT = "text"
    CODE = "code"
    TABLE = "table"


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Lines of one page that belong together."""

    kind: _Kind
    page: int
    lines: tuple[Line, ...]
    text: str = ""
    level: int = 0


class _Edges:
    """Where the full lines of each column of a page end."""

    def __init__(self, page: Sequence[Line]) -> None:
        self._page = page
        self._known: dict[int, float] = {}

    def right_of(self, line: Line) -> float:
        """The right edge of the column this line stands in. Most of its lines are full."""
        place = round(line.x)
        if place not in self._known:
            ends = sorted(one.end for one in self._page if abs(one.x - place) < 5 * one.size and not one.cells)
            self._known[place] = ends[int(len(ends) * 0.9)] if ends else line.end
        return self._known[place]


class Flow:
    """Reads the lines of a document, and writes down what they make up."""

    def __init__(self, pages: Sequence[Sequence[Line]], headings: Headings) -> None:
        self._pages = pages
        self._headings = headings
        self._leading = _leading(pages)
        every = (line.text for page in pages for line in page)
        # The last word of a line may be a half.
        self._words = Counter(word.casefold() for text in every for word in _WORD.findall(text.rpartition(" ")[0]))
        self._keeps_hyphens = self._has_more_compounds()

    def parts(self, sign: Callable[[], object]) -> Iterator[Part]:
        """The parts in order, each with the page it begins on as its anchor. Gives a sign after each page."""
        stretches = (stretch for number, page in enumerate(self._pages, 1) for stretch in self._stretches(page, number))
        for number, group in groupby(self._rejoined(stretches), key=lambda stretch: stretch.page):
            writer = Writer()
            for stretch in group:
                _write(writer, stretch)
            for part in writer.finish():
                yield replace(part, anchor=f"page={number}")
            sign()

    def _stretches(self, page: Sequence[Line], number: int) -> Iterator[_Stretch]:
        """What stands together on one page."""
        edges = _Edges(page)
        group: list[Line] = []
        kind = _Kind.TEXT
        for line in page:
            now = self._kind(line, number)
            if group and self._goes_on(group, line, kinds=(kind, now), edges=edges, page=number):
                group.append(line)
                continue
            if group:
                yield self._stretch(kind, group, number)
            group, kind = [line], now
        if group:
            yield self._stretch(kind, group, number)

    def _kind(self, line: Line, page: int) -> _Kind:
        if self._headings.level(line, page=page):
            return _Kind.HEADING
        if line.is_monospaced:
            return _Kind.CODE
        return _Kind.TABLE if line.cells and not _ITEM.match(line.text) else _Kind.TEXT

    def _goes_on(
        self, group: Sequence[Line], line: Line, *, kinds: tuple[_Kind, _Kind], edges: _Edges, page: int
    ) -> bool:
        before, kind, now = group[-1], *kinds
        drop = before.y - line.y
        if drop <= -0.5 * line.size or drop > 4 * line.size:
            return False
        if kind is _Kind.TABLE:
            return now is _Kind.TABLE or (now is _Kind.TEXT and _is_in_a_column(group, line))
        if kind is not now:
            return False
        if kind is _Kind.CODE:
            return abs(before.size - line.size) < 1 and drop <= 3.2 * line.size
        if kind is _Kind.HEADING:
            return self._is_same_heading(group, line, page)
        return self._is_same_paragraph(group, line, edges)

    def _is_same_heading(self, group: Sequence[Line], line: Line, page: int) -> bool:
        """A long heading takes several lines, which look alike and stand close."""
        before = group[-1]
        alike = before.size == line.size and before.is_bold == line.is_bold
        whole = " ".join(one.text for one in group)
        return alike and before.y - line.y <= 1.6 * line.size and not self._headings.named(whole, page=page)

    def _is_same_paragraph(self, group: Sequence[Line], line: Line, edges: _Edges) -> bool:
        before = group[-1]
        if abs(before.size - line.size) > 0.08 * line.size or _ITEM.match(line.text):
            return False
        if before.y - line.y > 1.3 * self._leading * line.size:
            return False
        if len(group) > 1 and abs(line.x - before.x) > 0.8 * line.size:
            return False  # the first line of a paragraph may stand further in or out, but no later one
        first_word = text_width(line.text.split(" ", 1)[0] + " ", line)
        edge = edges.right_of(before)
        # A word that would still have fit on the line before was put on a new one on purpose.
        return before.end + first_word > edge - 0.15 * (edge - before.x)

    def _stretch(self, kind: _Kind, group: list[Line], page: int) -> _Stretch:
        if kind is _Kind.TABLE and sum(bool(line.cells) for line in group) < 2:
            kind = _Kind.TEXT
        text = "" if kind in (_Kind.CODE, _Kind.TABLE) else self._flowing(line.text for line in group)
        level = self._headings.level(group[0], page=page) if kind is _Kind.HEADING else 0
        return _Stretch(kind, page, tuple(group), text, level)

    def _flowing(self, texts: Iterable[str]) -> str:
        """Lines as one, and words that were cut at their ends whole again."""
        whole = ""
        for text in texts:
            whole = self._joined(whole, text.strip()) if whole else text.strip()
        return whole

    def _joined(self, before: str, after: str) -> str:
        first, second = _BROKEN_WORD.search(before), _BEGINNING.match(after)
        if not first:
            return f"{before} {after}"
        if before.endswith("\u00ad"):
            return before[:-1] + after
        known = self._known_as(first[1], second[0]) if second else -1
        if not second or not second[0][0].islower() or _ADDRESS.search(before) or known < 0:
            return before + after
        return before + after if known == 0 and self._keeps_hyphens else before[:-1] + after

    def _known_as(self, first: str, second: str) -> int:
        """Above 0: the document has the two halves as one word elsewhere. Below 0: it has them with a hyphen."""
        as_word = self._words[(first.rpartition("-")[2] + second).casefold()]
        return as_word - self._words[f"{first}-{second}".casefold()]

    def _has_more_compounds(self) -> bool:
        """Whether words at line ends, as far as the rest of the document tells, have a hyphen of their own."""
        verdicts: Counter[int] = Counter()
        for before, line in (pair for page in self._pages for pair in pairwise(page)):
            first, second = _BROKEN_WORD.search(before.text), _BEGINNING.match(line.text)
            if first and second:
                known = self._known_as(first[1], second[0])
                verdicts[(known > 0) - (known < 0)] += 1
        return verdicts[-1] > verdicts[1]

    def _rejoined(self, stretches: Iterable[_Stretch]) -> Iterator[_Stretch]:
        """A paragraph that goes on in the next column is one, and a sentence that goes on over the page is one.

        What follows that sentence stays on its own page, so that it is cited there.
        """
        before: _Stretch | None = None
        for stretch in stretches:
            rest = stretch
            if before and _is_unfinished(before, stretch):
                whole = self._joined(before.text, stretch.text)
                cut = len(whole) if before.page == stretch.page else _end_of_sentence(whole, len(before.text))
                before = replace(before, text=whole[:cut].rstrip())
                if cut == len(whole):
                    continue
                rest = replace(stretch, text=whole[cut:])
            if before:
                yield before
            before = rest
        if before:
            yield before


def _leading(pages: Sequence[Sequence[Line]]) -> float:
    """How far lines of a paragraph usually are apart, in sizes of their letters."""
    drops = (
        (before.y - line.y) / line.size
        for page in pages
        for before, line in pairwise(page)
        if line.size and before.size == line.size and not line.is_monospaced
    )
    usual = [drop for drop in drops if 0.9 < drop < 2.2]
    return median(usual) if usual else _USUAL_LEADING


def _is_in_a_column(group: Sequence[Line], line: Line) -> bool:
    """Whether a line goes on in a cell of the row above it."""
    starts = [x for row in group for x, _ in row.cells]
    return group[-1].y - line.y < 1.5 * line.size and any(abs(x - line.x) < 3 for x in starts)


def _is_unfinished(before: _Stretch, after: _Stretch) -> bool:
    if not (before.kind is after.kind is _Kind.TEXT) or after.page - before.page > 1:
        return False
    jumped = before.page != after.page or after.lines[0].y > before.lines[-1].y
    if not jumped or _FINISHED.search(before.text) or abs(before.lines[-1].size - after.lines[0].size) > 0.5:
        return False
    return after.text[:1].islower() or bool(_BROKEN_WORD.search(before.text))


def _end_of_sentence(text: str, start: int) -> int:
    match = _SENTENCE_END.search(text, max(0, start - 1))
    return match.end() if match else len(text)


def _write(writer: Writer, stretch: _Stretch) -> None:
    if stretch.kind is _Kind.HEADING:
        writer.heading(stretch.text, level=stretch.level)
    elif stretch.kind is _Kind.CODE:
        writer.code(_as_typed(stretch.lines))
    elif stretch.kind is _Kind.TABLE:
        writer.table(_rows(stretch.lines))
    elif item := _ITEM.match(stretch.text):
        writer.open_item((item["number"] or "-").replace("(", "").replace(")", "."))
        writer.paragraph(stretch.text[item.end() :])
        writer.close_item()
    else:
        writer.close_list()
        writer.paragraph(stretch.text)


def _as_typed(group: Sequence[Line]) -> str:
    """Code with its indents, as far as its place on the page tells them."""
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


def _rows(group: Sequence[Line]) -> list[list[str]]:
    """The rows of a table; a line that only goes on in cells of the row above belongs to it."""
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


def _column_starts(group: Sequence[Line]) -> list[float]:
    starts: list[float] = []
    for x in sorted(x for line in group for x, _ in line.cells):
        if not starts or x - starts[-1] > 1.5 * group[0].size:
            starts.append(x)
    return starts
