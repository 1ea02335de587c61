"""Tables of AsciiDoc: cells behind bars, however many there are on a line."""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_CELL = re.compile(
    r"(?:(?:^|(?<=\s))(?:(?P<count>\d{1,3})(?:\.\d+)?(?P<how>[*+])|\.\d+\+)?"
    r"(?:[<^>](?:\.[<^>])?|\.[<^>])?[aehlmdsv]?)?(?<!\\)\|",
    re.MULTILINE,
)
_MOST_CELLS = 100_000


def rows(lines: Sequence[str], attributes: Mapping[str, str], *, delimiter: str) -> list[list[str]]:
    """The rows of a table, given the lines between its delimiters. The first is its header."""
    written_as = attributes.get("format", {",": "csv", ":": "dsv"}.get(delimiter[0], "psv"))
    if written_as in ("csv", "tsv", "dsv"):
        by = attributes.get("separator", {"csv": ",", "tsv": "\t", "dsv": ":"}[written_as])
        return [row for row in csv.reader(lines, delimiter=by[:1] or ",") if row]
    text = "\n".join(lines).strip("\n")
    if delimiter[0] == "!":
        text = text.replace("!", "|")
    cells = _cells(text)
    width = _columns(attributes) or len(_cells(text.split("\n", 1)[0])) or 1
    return [cells[first : first + width] for first in range(0, len(cells), width)]


def _cells(text: str) -> list[str]:
    cells: list[str] = []
    bars = list(_CELL.finditer(text))
    ends = [bar.start() for bar in bars[1:]] + [len(text)]
    for bar, end in zip(bars, ends, strict=True):
        said = text[bar.end() : end].strip().replace("\\|", "|")
        count = int(bar["count"] or 1)
        if len(cells) + count > _MOST_CELLS:
            break
        cells += [said] * count if bar["how"] == "*" else [said, *[""] * (count - 1)]
    return cells


def _columns(attributes: Mapping[str, str]) -> int:
    """How many columns the table says it has: `3*`, or one entry for each."""
    said = attributes.get("cols", "").strip()
    if not said:
        return 0
    count = 0
    for column in re.split(r"[,;]", said):
        repeated = re.match(r"\s*(\d{1,3})\*", column)
        count += int(repeated[1]) if repeated else 1
    return min(count, 1_000)
