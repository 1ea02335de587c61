"""The common output of all readers, and how it becomes the text and blocks of a page.

Readers differ in how they find headings, lists and code. Their formatting is the same for all of them and is defined
here, so that a document has the same text in every format.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bythebook.sources import Block, BlockKind


@dataclass(frozen=True, slots=True)
class DocumentPart:
    """A block of a document before its offsets in the page are known."""

    kind: BlockKind
    text: str
    level: int = 0
    anchor: str = ""
    code: tuple[tuple[int, int], ...] = ()
    """The start and end of each piece of inline code in the text."""


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """The result of a reader. The title is empty if the document has none."""

    title: str
    parts: tuple[DocumentPart, ...]
    module_name: str = ""
    """The title of the book that contains the document, if the document states it."""


def compose(parts: Iterable[DocumentPart]) -> tuple[str, tuple[Block, ...]]:
    """The text of a page and its blocks: the parts, separated by blank lines."""
    texts: list[str] = []
    blocks: list[Block] = []
    start = 0
    for part in parts:
        end = start + len(part.text)
        texts.append(part.text)
        code = tuple((start + first, start + last) for first, last in part.code)
        blocks.append(Block(part.kind, start, end, level=part.level, anchor=part.anchor, code=code))
        start = end + 2
    return "\n\n".join(texts), tuple(blocks)


# The zero-width joiners U+200C and U+200D are kept, because they change the shape of their neighbours.
_INVISIBLE = re.compile("[\u00ad\u200b\u2060\ufeff]")
_NEWLINE = re.compile("\r\n?|[\x85\u2028\u2029]")
_WHITESPACE = re.compile("[ \t\xa0\x0b\x0c\x1c-\x1f]+")
_CONTROL = re.compile("[\x00-\x08\x0e-\x1b\x7f]")
_MAX_CELLS = 500_000
_PLAIN_ASCII = re.compile(r"[!-~]+(?: [!-~]+)*")


# Readers put inline code between these two noncharacters, which stay in their place when lines are joined and indented.
# `DocumentWriter` removes them again.
_CODE_START, _CODE_END = "\ufdd0", "\ufdd1"
_CODE_MARKS = re.compile(f"([{_CODE_START}{_CODE_END}])")


def mark_code(code: str) -> str:
    """Inline code for the text of a paragraph, a heading or a cell."""
    return f"{_CODE_START}{remove_code_marks(code)}{_CODE_END}"


def remove_code_marks(text: str) -> str:
    return _CODE_MARKS.sub("", text)


def _find_code(text: str) -> tuple[str, tuple[tuple[int, int], ...]]:
    """The text without marks, and where its code is."""
    plain, code, start = "", [], -1
    for piece in _CODE_MARKS.split(text):
        if piece == _CODE_START:
            start = len(plain)
        elif piece == _CODE_END:
            if 0 <= start < len(plain):
                code.append((start, len(plain)))
            start = -1
        else:
            plain += piece
    return plain, tuple(code)


def normalize_text(text: str) -> str:
    """Running text as a browser shows it: no invisible characters, single spaces, no spaces at line ends."""
    if _PLAIN_ASCII.fullmatch(text):
        return text
    text = _NEWLINE.sub("\n", _CONTROL.sub("", _INVISIBLE.sub("", text)))
    lines = (_WHITESPACE.sub(" ", line).strip() for line in text.split("\n"))
    return "\n".join(line for line in lines if line)


_TITLE_AND_TARGET = re.compile(r"(.*[^\s<])\s*<[^<>]*>", re.DOTALL)
_BRACES = re.compile(r"(?<!\\)[{}]")


def format_role(role: str, text: str) -> str:
    """What Sphinx shows of a role: the title of `title <target>`, `c` of `~a.b.c`, `a.b` of `.a.b` and of `!a.b`."""
    role = role.lower().rpartition(":")[2]
    if role in _ICON_ROLES or role.startswith("material-"):
        return ""
    titled = _TITLE_AND_TARGET.fullmatch(text)
    if titled:
        return titled[1]
    if role in _TEXT_ROLES:
        return _TEXT_ROLES[role].sub("", text)
    words = text.removeprefix("!")
    if not _SYMBOL.fullmatch(words):
        return words
    words = words[1:].rpartition(".")[2] if words.startswith("~") else words.lstrip(".")
    return f"{words}()" if role in ("func", "meth") and not words.endswith(")") else words


_ICON_ROLES = frozenset("octicon fa fas fab far fa-solid fa-brands fa-regular".split())
_TEXT_ROLES = {
    "abbr": re.compile(r"\s*\(.*\)$"),
    "file": _BRACES,
    "samp": _BRACES,
    "guilabel": re.compile("&"),
    "menuselection": re.compile("&"),
}
"""What is not shown of the text of a role."""
_SYMBOL = re.compile(r"[~.]?[\w.]+(?:\(.*\)|\[.*\])?")


def format_code_block(code: str, *, language: str = "") -> str:
    """A code block whose fence is longer than any fence inside it. Empty if there is no code."""
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


def format_table(rows: Sequence[Sequence[str]]) -> str:
    """A pipe table whose first row is its header. Empty if all cells are empty."""
    cells = [[normalize_text(cell).replace("\n", " ").replace("|", "\\|") for cell in row] for row in rows]
    width = max((len(row) for row in cells), default=0)
    if not any(cell for row in cells for cell in row):
        return ""
    if width * len(cells) > _MAX_CELLS:
        # Padding all rows to the width of one very long row would multiply the size of the table.
        return "\n".join(" | ".join(row) for row in cells)
    lines = ["| " + " | ".join(row + [""] * (width - len(row))) + " |" for row in cells]
    lines.insert(1, "|" + " --- |" * width)
    return "\n".join(re.sub(" +", " ", line) for line in lines)


class DocumentWriter:
    """Collects the parts of a document in document order.

    The text of a list becomes one part. Code, a table or a heading between items is a separate part; the list
    continues after it.
    """

    def __init__(self) -> None:
        self._parts: list[DocumentPart] = []
        self._lines: list[str] = []
        self._has_item = False
        self._markers: list[str] = []
        self._unwritten = 0
        """How many of the innermost markers have not been written yet."""

    def heading(self, text: str, *, level: int, anchor: str = "") -> None:
        text = normalize_text(remove_code_marks(text)).replace("\n", " ")
        if text:
            self._add(DocumentPart(BlockKind.HEADING, text, level=level, anchor=anchor))

    def paragraph(self, text: str) -> None:
        text = normalize_text(text)
        if not remove_code_marks(text):
            return
        if self._markers:
            self._write_in_item(text)
        else:
            self._add(_to_part(BlockKind.PARAGRAPH, text))

    def code(self, code: str, *, language: str = "") -> None:
        text = format_code_block(code, language=language)
        if text:
            self._add(DocumentPart(BlockKind.CODE, text))

    def table(self, rows: Sequence[Sequence[str]]) -> None:
        text = format_table(rows)
        if text:
            self._add(_to_part(BlockKind.TABLE, text))

    def extend(self, parts: Iterable[DocumentPart]) -> None:
        """Write the parts of another document."""
        for part in parts:
            self._add(part)

    def open_item(self, marker: str) -> None:
        """Begin a list item. It contains everything written before `close_item`."""
        self._markers.append(marker)
        self._unwritten += 1

    def close_item(self) -> None:
        self._markers.pop()
        self._unwritten = max(0, self._unwritten - 1)

    def close_list(self) -> None:
        """End a list. Later text outside of an item is not part of it."""
        if not self._markers:
            self._flush()

    def finish(self) -> tuple[DocumentPart, ...]:
        self._flush()
        return tuple(self._parts)

    def _write_in_item(self, text: str) -> None:
        if self._unwritten and not self._has_item:
            self._flush()
        written = len(self._markers) - self._unwritten
        indent = " " * sum(len(marker) + 1 for marker in self._markers[:written])
        # If the first item of a list begins with a list, both markers are on one line, as in Markdown.
        lead = "".join(marker + " " for marker in self._markers[written:])
        self._has_item = self._has_item or self._unwritten > 0
        hanging = indent + " " * len(lead)
        first, *rest = text.split("\n")
        self._lines += [indent + lead + first, *(hanging + line for line in rest)]
        self._unwritten = 0

    def _add(self, part: DocumentPart) -> None:
        self._flush()
        self._unwritten = 0
        self._parts.append(part)

    def _flush(self) -> None:
        if self._lines:
            margin = min(len(line) - len(line.lstrip(" ")) for line in self._lines)
            text = "\n".join(line[margin:] for line in self._lines)
            self._parts.append(_to_part(BlockKind.LIST if self._has_item else BlockKind.PARAGRAPH, text))
        self._lines, self._has_item = [], False


def _to_part(kind: BlockKind, text: str) -> DocumentPart:
    plain, code = _find_code(text)
    return DocumentPart(kind, plain, code=code)
