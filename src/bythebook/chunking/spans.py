"""Spans: the smallest parts of a chunk that can be quoted separately."""

import re
from collections.abc import Iterator
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from bythebook.chunking.sentences import split_sentences

_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+")
_TABLE_RULE = re.compile(r"\s*\|?[\s:|-]+\|?\s*$")


class SpanKind(StrEnum):
    SENTENCE = "sentence"
    ITEM = "item"
    CODE = "code"
    ROW = "row"


class Span(NamedTuple):
    """A sentence, a list item, a table row or a whole code block: `text[start:end]` of its chunk."""

    kind: SpanKind
    start: int
    end: int


@lru_cache(maxsize=1024)
def split_spans(text: str, *, fence: str = "") -> tuple[Span, ...]:
    """The spans of a chunk's text in order. `fence` is the opening line if it begins in a code block."""
    return tuple(_iterate_spans(text, fence))


def _iterate_spans(text: str, fence: str) -> Iterator[Span]:
    code = 0
    for start, end in _lines(text):
        line = text[start:end]
        if fence:
            if _closes_fence(line, fence):
                yield Span(SpanKind.CODE, code, end)
                fence = ""
        elif opening := _FENCE.match(line):
            fence, code = opening[0], start
        else:
            yield from _split_line(text, start, end)
    if fence and text[code:].strip():
        yield Span(SpanKind.CODE, code, len(text.rstrip()))


def find_open_fence(text: str) -> str:
    """The fence of the code block that is open at the end of the text; empty if there is none."""
    fence = ""
    for start, end in _lines(text):
        line = text[start:end]
        if fence:
            fence = "" if _closes_fence(line, fence) else fence
        elif opening := _FENCE.match(line):
            fence = opening[1]
    return fence


def _lines(text: str) -> Iterator[tuple[int, int]]:
    return (match.span() for match in re.finditer(r"[^\n]+", text))


def _closes_fence(line: str, fence: str) -> bool:
    mark = _FENCE.match(fence)
    stripped = line.strip()
    return bool(mark) and stripped.startswith(mark[1] if mark else "") and not stripped.strip("`~")


def _split_line(text: str, start: int, end: int) -> Iterator[Span]:
    line = text[start:end]
    if line.lstrip().startswith("|"):
        if not _TABLE_RULE.match(line):
            yield Span(SpanKind.ROW, start, end)
        return
    item = _ITEM.match(line)
    kind = SpanKind.ITEM if item else SpanKind.SENTENCE
    begin = start + (item.end() if item else 0)
    for first, last in split_sentences(text[begin:end]):
        yield Span(kind, begin + first, begin + last)
