"""Fences: a text in pieces of code and of everything else, found in one pass over its lines."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MARK = re.compile(r"[ \t]*(?P<mark>`{3,}|~{3,})(?P<rest>.*)")


def pieces(text: str) -> Iterator[tuple[bool, str]]:
    """Each piece of the text, with whether it is a block of code. Together they are the text."""
    lines: list[str] = []
    mark = ""
    for line in text.splitlines(keepends=True):
        found = _MARK.match(line)
        if not mark and found:
            yield False, "".join(lines)
            mark, lines = found["mark"], [line]
        elif mark and found and found["mark"].startswith(mark) and not found["rest"].strip():
            yield True, "".join([*lines, line])
            mark, lines = "", []
        else:
            lines.append(line)
    yield bool(mark), "".join(lines)


def changed_outside(text: str, change: Callable[[str], str]) -> str:
    """The text with everything but its code changed."""
    return "".join(piece if is_code else change(piece) for is_code, piece in pieces(text))


def prose(text: str) -> str:
    """The text without its code."""
    return "".join(piece for is_code, piece in pieces(text) if not is_code)
