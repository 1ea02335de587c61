"""Lines of a PDF: what stands on one line of a page, put together from the pieces a PDF is drawn in.

A PDF has no lines, words or paragraphs. It has pieces of text, each at its place, in the order they were drawn.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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
