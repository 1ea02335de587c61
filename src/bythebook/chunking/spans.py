"""Units: the smallest parts of a chunk that can be quoted on their own and still be read."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from bythebook.chunking.sentences import sentences

if TYPE_CHECKING:
    from collections.abc import Iterator

_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+")
_RULE = re.compile(r"\s*\|?[\s:|-]+\|?\s*$")


class UnitKind(StrEnum):
    SENTENCE = "sentence"
    ITEM = "item"
    CODE = "code"
    ROW = "row"


class Unit(NamedTuple):
    """A sentence, a list item, a table row or a whole code block: `text[start:end]` of its chunk."""

    kind: UnitKind
    start: int
    end: int


@lru_cache(maxsize=1024)
def units(text: str, *, fence: str = "") -> tuple[Unit, ...]:
    """The units of a chunk's text in order. `fence` opens the code block the text begins inside of, if any."""
    return tuple(_units(text, fence))


def _units(text: str, fence: str) -> Iterator[Unit]:
    code = 0
    for start, end in _lines(text):
        line = text[start:end]
        if fence:
            if _closes(line, fence):
                yield Unit(UnitKind.CODE, code, end)
                fence = ""
        elif opening := _FENCE.match(line):
            fence, code = opening[0], start
        else:
            yield from _of_line(text, start, end)
    if fence and text[code:].strip():
        yield Unit(UnitKind.CODE, code, len(text.rstrip()))


def left_open(text: str) -> str:
    """The fence of the code block that is still open at the end of the text, empty when none is."""
    fence = ""
    for start, end in _lines(text):
        line = text[start:end]
        if fence:
            fence = "" if _closes(line, fence) else fence
        elif opening := _FENCE.match(line):
            fence = opening[1]
    return fence


def _lines(text: str) -> Iterator[tuple[int, int]]:
    return (match.span() for match in re.finditer(r"[^\n]+", text))


def _closes(line: str, fence: str) -> bool:
    mark = _FENCE.match(fence)
    stripped = line.strip()
    return bool(mark) and stripped.startswith(mark[1] if mark else "") and not stripped.strip("`~")


def _of_line(text: str, start: int, end: int) -> Iterator[Unit]:
    line = text[start:end]
    if line.lstrip().startswith("|"):
        if not _RULE.match(line):
            yield Unit(UnitKind.ROW, start, end)
        return
    item = _ITEM.match(line)
    kind = UnitKind.ITEM if item else UnitKind.SENTENCE
    begin = start + (item.end() if item else 0)
    for first, last in sentences(text[begin:end]):
        yield Unit(kind, begin + first, begin + last)
