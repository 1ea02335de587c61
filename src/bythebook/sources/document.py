"""Compose: from the parts a reader finds in a document to the text and blocks of a page.

Readers differ in how they find headings, lists and code; how those are written down is decided here, once, so that
the same document reads the same whatever format it came in.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bythebook.sources import Block, Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


@dataclass(frozen=True, slots=True)
class Part:
    """One block of a page before its place in the text is known."""

    kind: Kind
    text: str
    level: int = 0
    anchor: str = ""


@dataclass(frozen=True, slots=True)
class Draft:
    """A document as its reader understood it. The title is empty when the document does not name itself."""

    title: str
    parts: tuple[Part, ...]
    module_name: str = ""
    """The title of the book it is a chapter of, where it says so."""


def compose(parts: Iterable[Part]) -> tuple[str, tuple[Block, ...]]:
    """The text of a page and its blocks: parts in order, a blank line between them."""
    texts: list[str] = []
    blocks: list[Block] = []
    start = 0
    for part in parts:
        end = start + len(part.text)
        texts.append(part.text)
        blocks.append(Block(part.kind, start, end, level=part.level, anchor=part.anchor))
        start = end + 2
    return "\n\n".join(texts), tuple(blocks)


# The joiners U+200C and U+200D are as wide as nothing too, but they change how their neighbours look: they stay.
_INVISIBLE = re.compile("[\u00ad\u200b\u2060\ufeff]")
_LINE_END = re.compile("\r\n?|[\x85\u2028\u2029]")
_SPACES = re.compile("[ \t\xa0\x0b\x0c\x1c-\x1f]+")
_CONTROL = re.compile("[\x00-\x08\x0e-\x1b\x7f]")
_MOST_CELLS = 500_000
_PLAIN_ASCII = re.compile(r"[!-~]+(?: [!-~]+)*")


def clean(text: str) -> str:
    """Running text as a browser shows it: no invisible characters, runs of spaces as one, no space at line ends."""
    if _PLAIN_ASCII.fullmatch(text):
        return text
    text = _LINE_END.sub("\n", _CONTROL.sub("", _INVISIBLE.sub("", text)))
    lines = (_SPACES.sub(" ", line).strip() for line in text.split("\n"))
    return "\n".join(line for line in lines if line)


def fenced(code: str, *, language: str = "") -> str:
    """Code between fences that nothing inside it can close. Empty when there is no code."""
    code = _INVISIBLE.sub("", code).replace("\r\n", "\n").replace("\r", "\n").replace("\x00", "")
    lines = code.split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    while lines and not lines[0].strip():
        lines.pop(0)
    if not lines:
        return ""
    longest = max((len(run) for run in re.findall("`{3,}", code)), default=2)
    fence = "`" * max(3, longest + 1)
    word = re.match(r"[^\s`,{]*", language)
    return "\n".join([fence + (word[0] if word else ""), *lines, fence])


def piped(rows: Sequence[Sequence[str]]) -> str:
    """A pipe table whose first row is its header. Empty when no cell says anything."""
    cells = [[clean(cell).replace("\n", " ").replace("|", "\\|") for cell in row] for row in rows]
    width = max((len(row) for row in cells), default=0)
    if not any(cell for row in cells for cell in row):
        return ""
    if width * len(cells) > _MOST_CELLS:
        # One endless row would make all the others endless.
        return "\n".join(" | ".join(row) for row in cells)
    lines = ["| " + " | ".join(row + [""] * (width - len(row))) + " |" for row in cells]
    lines.insert(1, "|" + " --- |" * width)
    return "\n".join(re.sub(" +", " ", line) for line in lines)


class Writer:
    """Collects parts while a reader walks a document, in document order.

    Inside a list, text is gathered into one list part. Code, a table or a heading between items stands as a part of
    its own, and the list goes on after it.
    """

    def __init__(self) -> None:
        self._parts: list[Part] = []
        self._lines: list[str] = []
        self._has_item = False
        self._markers: list[str] = []
        self._unwritten = 0
        """How many of the innermost markers have not been written in front of a text yet."""

    def heading(self, text: str, *, level: int, anchor: str = "") -> None:
        text = clean(text).replace("\n", " ")
        if text:
            self._add(Part(Kind.HEADING, text, level=level, anchor=anchor))

    def paragraph(self, text: str) -> None:
        text = clean(text)
        if not text:
            return
        if self._markers:
            self._write_in_item(text)
        else:
            self._add(Part(Kind.PARAGRAPH, text))

    def code(self, code: str, *, language: str = "") -> None:
        text = fenced(code, language=language)
        if text:
            self._add(Part(Kind.CODE, text))

    def table(self, rows: Sequence[Sequence[str]]) -> None:
        text = piped(rows)
        if text:
            self._add(Part(Kind.TABLE, text))

    def open_item(self, marker: str) -> None:
        """Begin a list item; what is written until `close_item` belongs to it."""
        self._markers.append(marker)
        self._unwritten += 1

    def close_item(self) -> None:
        self._markers.pop()
        self._unwritten = max(0, self._unwritten - 1)

    def close_list(self) -> None:
        """End a list: what follows outside of any item is no longer part of it."""
        if not self._markers:
            self._flush()

    def finish(self) -> tuple[Part, ...]:
        self._flush()
        return tuple(self._parts)

    def _write_in_item(self, text: str) -> None:
        if self._unwritten and not self._has_item:
            self._flush()
        written = len(self._markers) - self._unwritten
        indent = " " * sum(len(marker) + 1 for marker in self._markers[:written])
        # A list whose first item begins with a list: one line, both markers, as Markdown has it.
        lead = "".join(marker + " " for marker in self._markers[written:])
        self._has_item = self._has_item or self._unwritten > 0
        hanging = indent + " " * len(lead)
        first, *rest = text.split("\n")
        self._lines += [indent + lead + first, *(hanging + line for line in rest)]
        self._unwritten = 0

    def _add(self, part: Part) -> None:
        self._flush()
        self._unwritten = 0
        self._parts.append(part)

    def _flush(self) -> None:
        if self._lines:
            margin = min(len(line) - len(line.lstrip(" ")) for line in self._lines)
            text = "\n".join(line[margin:] for line in self._lines)
            self._parts.append(Part(Kind.LIST if self._has_item else Kind.PARAGRAPH, text))
        self._lines, self._has_item = [], False
