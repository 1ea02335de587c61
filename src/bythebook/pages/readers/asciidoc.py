"""AsciiDoc, as Asciidoctor publishes it. Nothing is included and nothing is run."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bythebook.pages import Unreadable
from bythebook.pages.compose import Draft, Writer
from bythebook.pages.readers import asciidoc_tables
from bythebook.pages.readers.asciidoc_lines import Source
from bythebook.pages.readers.asciidoc_words import words

if TYPE_CHECKING:
    from collections.abc import Sequence

LONGEST_READING = 60.0
"""Seconds after which a page is given up: it was made to be slow."""
DEEPEST = 40

_SECTION = re.compile(r"(={1,6}|#{1,6})[ \t]+(\S.*?)(?:[ \t]+\1)?$")
_BLOCK_ATTRIBUTES = re.compile(r"\[(?!\[)([^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*)\]$")
_BLOCK_ANCHOR = re.compile(r"\[\[([\w:.-]+)(?:,.*)?\]\]$")
_BLOCK_TITLE = re.compile(r"\.([^\s.].*)$")
_DELIMITER = re.compile(r"(?:([-.=*_+/])\1{3,}|--|`{3,}([\w-]*)|[|,:!]={3,})$")
_ITEM = re.compile(r"[ \t]*(\*{1,6}|-|\.{1,6}|\d{1,4}\.|[a-zA-Z]\.|<(?:\d{1,3}|\.)>)[ \t]+(\S.*)$")
_TERM = re.compile(r"[ \t]*(\S.*?)(:{2,4}|;;)(?:[ \t]+(.*))?$")
_BREAK = re.compile(r"'{3,}$|<{3,}$|- ?- ?-$|\* ?\* ?\*$")
_MACRO = re.compile(r"(?:image|video|audio|toc|include|ifdef|ifndef|ifeval|endif)::[^\[\]]*\[.*\]$")
_ADMONITION = re.compile(r"(NOTE|TIP|IMPORTANT|WARNING|CAUTION):[ \t]+")
_VERBATIM = frozenset(["source", "listing", "literal", "verse"])
_ADMONITIONS = frozenset(["NOTE", "TIP", "IMPORTANT", "WARNING", "CAUTION"])
_CALLOUT = re.compile(r"[ \t]*(?://|#|--|;;)?[ \t]*(?:<(?:\d{1,3}|\.)>|<!--(?:\d{1,3}|\.)-->)[ \t]*$", re.MULTILINE)
_NAMED = re.compile(r"""([\w-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^,]*))""")
_ID = re.compile(r"#([\w:.-]+)")
_INLINE_ID = re.compile(r"\[\[([\w:.-]+)(?:,[^\]]*)?\]\]\s*|\[#([\w:.-]+)\]")
_TASK = re.compile(r"\[[ xX*]\][ \t]+")


@dataclass(slots=True)
class _About:
    """What the lines above a block say about it."""

    style: str = ""
    positional: tuple[str, ...] = ()
    named: dict[str, str] = field(default_factory=dict)
    anchor: str = ""
    title: str = ""


def read(text: str) -> Draft:
    """The document, with heading ids as Asciidoctor gives them."""
    source = Source(text)
    walk = _Walk(source.attributes)
    lines, title = _without_header(source.lines)
    if title:
        walk.heading(1, title, _About())
    walk.over(lines)
    parts = walk.writer.finish()
    top = next((part.text for part in parts if part.level == 1), "")
    return Draft(top or next((part.text for part in parts[:1] if part.level), ""), parts)


def _without_header(lines: Sequence[str]) -> tuple[Sequence[str], str]:
    """The lines below the document's title, its authors and its revision."""
    start = next((number for number, line in enumerate(lines) if line.strip()), 0)
    match = _SECTION.match(lines[start]) if start < len(lines) else None
    if not match or len(match[1]) > 1:
        return lines, ""
    end = next((number for number in range(start, len(lines)) if not lines[number].strip()), len(lines))
    return lines[end:], match[2]


class _Walk:
    """One pass over the lines of a document, block by block."""

    def __init__(self, attributes: dict[str, str]) -> None:
        self.writer = Writer()
        self._attributes = attributes
        self._taken: set[str] = set()
        self._deadline = time.monotonic() + LONGEST_READING
        self._depth = 0

    def over(self, lines: Sequence[str]) -> None:
        self._depth += 1
        if self._depth > DEEPEST:
            raise Unreadable("it is nested too deeply to be a page")
        at, about = 0, _About()
        while at < len(lines):
            line = lines[at]
            if not line.strip() or self._says_about(line, about):
                at += 1
            else:
                at = self._block(lines, at, about)
                about = _About()
        self._depth -= 1

    def _says_about(self, line: str, about: _About) -> bool:
        """Whether a line only says something about the block below it."""
        if anchor := _BLOCK_ANCHOR.match(line):
            about.anchor = anchor[1]
        elif attributes := _BLOCK_ATTRIBUTES.match(line):
            _learn(about, attributes[1])
        elif (title := _BLOCK_TITLE.match(line)) and not _DELIMITER.match(line):
            about.title = title[1]
        else:
            return False
        return True

    def _block(self, lines: Sequence[str], at: int, about: _About) -> int:
        """Write the block that begins here. Returns where the next one may begin."""
        line = lines[at]
        if time.monotonic() > self._deadline:
            raise Unreadable("it takes too long to read; split it, or take out what is not text")
        if section := _SECTION.match(line):
            self.heading(len(section[1]), section[2], about)
            return at + 1
        if _BREAK.match(line) or _MACRO.match(line):
            return at + 1
        if about.title:
            self._paragraph(about.title)
        if delimiter := _DELIMITER.match(line):
            return self._delimited(lines, at, about, delimiter)
        if _ITEM.match(line) or (_TERM.match(line) and not about.style):
            return self._list(lines, at)
        return self._plain(lines, at, about)

    def heading(self, level: int, source: str, about: _About) -> None:
        inline = _INLINE_ID.search(source)
        explicit = about.anchor or ((inline[1] or inline[2]) if inline else "")
        text = words(_INLINE_ID.sub("", source), self._attributes)[0]
        self.writer.heading(text, level=level, anchor=explicit or self._id(text))
        self._taken.add(explicit)

    def _id(self, text: str) -> str:
        """As Asciidoctor makes ids, with the prefix and separator the document asks for."""
        prefix = self._attributes.get("idprefix", "_")
        by = self._attributes.get("idseparator", "_")[:1]
        slug = re.sub(r"[ .-]+", by or "", re.sub(r"[^ \w.-]+", "", text.lower()))
        slug = prefix + slug.strip(by) if by else prefix + slug
        anchor, number = slug, 2
        while anchor in self._taken:
            anchor, number = f"{slug}{by or '_'}{number}", number + 1
        self._taken.add(anchor)
        return anchor

    def _delimited(self, lines: Sequence[str], at: int, about: _About, delimiter: re.Match[str]) -> int:
        fence = lines[at]
        closing = "```" if fence.startswith("```") else fence
        end = next((number for number in range(at + 1, len(lines)) if lines[number] == closing), len(lines))
        inside = lines[at + 1 : end]
        if fence.startswith("```"):
            self._code(inside, about, language=delimiter[2] or "")
        elif fence[0] in "|,:!":
            self._table(inside, about, fence)
        else:
            self._enclosed(fence, inside, about)
        return end + 1

    def _enclosed(self, fence: str, inside: Sequence[str], about: _About) -> None:
        mark = fence[0]
        if mark == "/" or about.style == "comment":
            return
        if mark == "+":
            # What is passed through is for another program, unless it is a formula.
            if about.style in ("stem", "latexmath", "asciimath"):
                self._code(inside, about, language="latex")
        elif about.style in _VERBATIM or mark == "." or (mark == "-" and fence != "--"):
            self._code(inside, about)
        else:
            if about.style in _ADMONITIONS:
                self.writer.paragraph(about.style.capitalize())
            self.over(inside)
            self._attributed(about)

    def _attributed(self, about: _About) -> None:
        """Who said what was quoted."""
        said_by = [part for part in about.positional[1:3] if part]
        if about.style in ("quote", "verse") and said_by:
            self._paragraph("— " + ", ".join(said_by))

    def _code(self, inside: Sequence[str], about: _About, *, language: str = "") -> None:
        if about.style == "source" or not about.style:
            positional = about.positional[1] if len(about.positional) > 1 else ""
            usual = self._attributes.get("source-language", "") if about.style == "source" else ""
            language = about.named.get("language", "") or positional or language or usual
        if about.style == "verse":
            self.writer.paragraph("\n".join(words(line, self._attributes)[0] for line in inside))
            self._attributed(about)
            return
        self.writer.code(_CALLOUT.sub("", "\n".join(inside)), language=language)

    def _table(self, inside: Sequence[str], about: _About, fence: str) -> None:
        found = asciidoc_tables.rows(inside, about.named, delimiter=fence)
        self.writer.table([[self._flowing(cell.split("\n")) for cell in row] for row in found])

    def _plain(self, lines: Sequence[str], at: int, about: _About) -> int:
        """A paragraph, or what its style makes of it."""
        end = at
        while end < len(lines) and lines[end].strip() and (end == at or not self._interrupts(lines[end])):
            end += 1
        block = lines[at:end]
        if about.style in _VERBATIM:
            self._code(block, about)
        elif block[0][0] in " \t" and about.style not in _ADMONITIONS:
            self._code(_dedented(block), _About())
        else:
            self._prose(block, about)
        return end

    def _prose(self, block: Sequence[str], about: _About) -> None:
        admonition = _ADMONITION.match(block[0])
        if admonition or about.style in _ADMONITIONS:
            self.writer.paragraph((admonition[1] if admonition else about.style).capitalize())
            block = [block[0][admonition.end() if admonition else 0 :], *block[1:]]
        self._paragraph(*block)
        self._attributed(about)

    def _interrupts(self, line: str) -> bool:
        return bool(_DELIMITER.match(line) or _BLOCK_ATTRIBUTES.match(line) or _BLOCK_ANCHOR.match(line))

    def _paragraph(self, *lines: str) -> None:
        text, notes = words(_unwrapped(lines), self._attributes)
        self.writer.paragraph(text)
        for note in notes:
            self.writer.paragraph(note)

    def _flowing(self, lines: Sequence[str]) -> str:
        return words(_unwrapped([line for line in lines if line.strip()]), self._attributes)[0]

    def _list(self, lines: Sequence[str], at: int) -> int:
        """Items and terms, one below another, each with what is attached to it by a `+`."""
        open_markers: list[str] = []
        counts: list[int] = []
        notes = lines[at].startswith("<")
        while (found := _next_written(lines, at)) < len(lines) and self._is_item(lines[found]):
            # Notes on code are a list of their own.
            if lines[found].startswith("<") != notes:
                break
            at = self._item(lines, found, open_markers, counts)
        for _ in open_markers:
            self.writer.close_item()
        self.writer.close_list()
        return at

    def _is_item(self, line: str) -> bool:
        return bool(_ITEM.match(line) or _TERM.match(line)) and not _SECTION.match(line)

    def _item(self, lines: Sequence[str], at: int, open_markers: list[str], counts: list[int]) -> int:
        item = _ITEM.match(lines[at])
        term = None if item else _TERM.match(lines[at])
        marker = _marker(item[1]) if item else term[2] if term else "-"
        self._enter(marker, open_markers, counts)
        end = self._end_of_item(lines, at + 1)
        if item:
            self.writer.open_item(f"{counts[-1]}." if marker[0] in ".<1a" else "-")
            self._paragraph(_TASK.sub("", item[2], count=1), *lines[at + 1 : end])
        elif term:
            self.writer.open_item("-")
            self._paragraph(term[1])
            end = self._described(term[3] or "", lines, at + 1, end)
        open_markers.append(marker)
        return self._attached(lines, end)

    def _described(self, said: str, lines: Sequence[str], start: int, end: int) -> int:
        """What is said of a term, beside it or below it, also after a blank line."""
        if not said and start == end:
            start = end = _next_written(lines, end)
            if end < len(lines) and not self._is_item(lines[end]) and not self._interrupts(lines[end]):
                end = self._end_of_item(lines, end)
            else:
                return start
        self._paragraph(said, *(line.strip() for line in lines[start:end]))
        return end

    def _enter(self, marker: str, open_markers: list[str], counts: list[int]) -> None:
        """Close what is deeper than this marker; one that is not open yet is one deeper."""
        if marker in open_markers:
            while open_markers[-1] != marker:
                open_markers.pop()
                counts.pop()
                self.writer.close_item()
            open_markers.pop()
            self.writer.close_item()
            counts[-1] += 1
        else:
            counts.append(1)
            if len(counts) > DEEPEST:
                raise Unreadable("it is nested too deeply to be a page")

    def _end_of_item(self, lines: Sequence[str], at: int) -> int:
        while at < len(lines) and lines[at].strip() and lines[at] != "+":
            if self._is_item(lines[at]) or self._interrupts(lines[at]):
                break
            at += 1
        return at

    def _attached(self, lines: Sequence[str], at: int) -> int:
        while at < len(lines) and lines[at] == "+":
            at += 1
            about = _About()
            while at < len(lines) and self._says_about(lines[at], about):
                at += 1
            if at < len(lines) and lines[at].strip():
                at = self._block_in_item(lines, at, about)
        return at

    def _block_in_item(self, lines: Sequence[str], at: int, about: _About) -> int:
        """A block that ends, if by nothing else, at the `+` that attaches the next one."""
        if _DELIMITER.match(lines[at]):
            return self._block(lines, at, about)
        end = at
        while end < len(lines) and lines[end].strip() and lines[end] != "+" and not self._is_item(lines[end]):
            end += 1
        if end == at:
            return at
        return at + self._block(lines[at:end], 0, about)


def _next_written(lines: Sequence[str], at: int) -> int:
    while at < len(lines) and not lines[at].strip():
        at += 1
    return at


def _marker(written: str) -> str:
    """What all items of one list have in common: numbers count up."""
    if written[0].isdigit():
        return "1."
    if written[0] == "<":
        return "<1>"
    return "a." if written[0].isalpha() else written


def _learn(about: _About, said: str) -> None:
    """Take in `source,python`, `#id.role%option`, `cols="1,2"` and the like."""
    positional = [part.strip().strip("\"'") for part in _NAMED.sub("", said).split(",")]
    about.positional = tuple(positional)
    for match in _NAMED.finditer(said):
        about.named[match[1].lower()] = next(value for value in match.groups()[1:] if value is not None).strip()
    first = positional[0]
    if anchor := _ID.search(first):
        about.anchor = anchor[1]
    about.anchor = about.named.get("id", about.anchor)
    about.style = re.split(r"[#.%]", first, maxsplit=1)[0] or about.named.get("style", "")


def _unwrapped(lines: Sequence[str]) -> str:
    """Wrapped lines as one; a line that ends in ` +` is broken on purpose."""
    pieces: list[str] = []
    for line in lines:
        text = line.strip()
        pieces.append(text[:-2].rstrip() + "\u2028" if text.endswith(" +") else text + " ")
    return "".join(pieces).strip()


def _dedented(lines: Sequence[str]) -> list[str]:
    margin = min(len(line) - len(line.lstrip()) for line in lines)
    return [line[margin:] for line in lines]
