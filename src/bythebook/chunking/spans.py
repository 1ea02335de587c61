"""Spans: the smallest parts of a chunk that can be quoted separately."""

import re
from collections.abc import Iterator
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from bythebook.chunking.sentences import split_sentences

_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+")
_TABLE_RULE = re.compile(r"[\s:|-]+$")


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


_MAX_LABEL = 80
_SENTENCE_MARK = re.compile(r"[.!?。！？…;,][\"'”’)\]]*$")


def is_lead(line: str) -> bool:
    """Whether a line only introduces what follows: it ends in a colon, or is a label such as the name of a tab."""
    line = line.strip()
    return line.endswith((":", "：")) or (0 < len(line) <= _MAX_LABEL and not _SENTENCE_MARK.search(line))


def is_list_item(line: str) -> bool:
    return _ITEM.match(line) is not None


def table_header(table: str) -> str:
    """The header and the rule below it at the start of a table, as two lines; empty if it has none."""
    header, _, rest = table.partition("\n")
    rule = rest.partition("\n")[0]
    return f"{header}\n{rule}" if "|" in header and "-" in rule and _TABLE_RULE.match(rule) else ""


def find_table_header(text: str, start: int, *, before: str = "") -> str:
    """The header of the table row at `start`; empty if the row is the header. `before`: the chunk's `table_header`."""
    begin = text.rfind("\n", 0, start) + 1
    while begin and text.startswith("|", text.rfind("\n", 0, begin - 1) + 1):
        begin = text.rfind("\n", 0, begin - 1) + 1
    header = table_header(text[begin:]) or (before if begin == 0 else "")
    return "" if header and text[start:].startswith(header) else header


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
