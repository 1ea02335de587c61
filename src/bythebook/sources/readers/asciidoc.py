"""AsciiDoc, as Asciidoctor publishes it. Nothing is included and nothing is run.

Lines of AsciiDoc: what is left of a source once its attributes, conditions, comments and includes are dealt with.

Words of AsciiDoc: markup inside a line, read as a browser shows it.

Tables of AsciiDoc: cells behind bars, however many there are on a line.
"""

from __future__ import annotations

import csv
import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bythebook.sources import Unreadable
from bythebook.sources.document import Draft, Writer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


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
        found = rows(inside, about.named, delimiter=fence)
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


_ENTRY = re.compile(r":(!?)(\w[\w-]*)(!?):(?:[ \t]+(.*))?$")
_CONDITION = re.compile(r"(ifdef|ifndef|ifeval|endif)::(\S*?)\[(.*)\]\s*$")
_INCLUDE = re.compile(r"include::\S.*\[.*\]\s*$")
_VERBATIM_FENCES = re.compile(r"(-{4,}|\.{4,}|\+{4,}|/{4,}|`{3,}[\w-]*)\s*$")
_COMMENT = re.compile(r"//(?!/)")


class Source:
    """The lines of a document, one after another, while its attributes come and go."""

    def __init__(self, text: str) -> None:
        self.attributes: dict[str, str] = dict(CHARACTERS)
        self._verbatim = ""
        """The line that ends the code or comment we are in, where nothing is a condition or an attribute."""
        self._skipping: list[bool] = []
        self.lines = list(self._read(text))

    def _read(self, text: str) -> Iterator[str]:
        lines = iter(text.split("\n"))
        for raw in lines:
            line = raw.rstrip()
            if self._is_condition(line):
                if line.startswith(("ifdef", "ifndef")) and not line.endswith("[]") and self._holds(line):
                    yield line[line.index("[") + 1 : -1]
                continue
            if any(self._skipping) or _INCLUDE.match(line):
                continue
            if self._verbatim or _VERBATIM_FENCES.match(line):
                yield from self._within(line)
            elif entry := _ENTRY.match(line):
                self._set(entry, lines)
            elif not _COMMENT.match(line):
                yield line

    def _within(self, line: str) -> Iterator[str]:
        """Code, comments and what is passed through, from their first line to their last."""
        if not self._verbatim:
            self._verbatim = "```" if line.startswith("```") else line
        elif line == self._verbatim:
            self._verbatim = ""
        yield line

    def _is_condition(self, line: str) -> bool:
        match = _CONDITION.match(line)
        if not match:
            return False
        kind, _, said = match.groups()
        if kind == "endif":
            if self._skipping:
                self._skipping.pop()
        elif kind == "ifeval":
            self._skipping.append(False)
        elif not said:
            self._skipping.append(not self._holds(line))
        return True

    def _holds(self, line: str) -> bool:
        """Whether the attributes are there, or not there: one of those with commas, all of those with plus signs."""
        match = _CONDITION.match(line)
        names = match[2].lower() if match else ""
        there = [name in self.attributes for name in re.split(r"[,+]", names)]
        holds = all(there) if "+" in names else any(there)
        return not any(self._skipping) and holds == line.startswith("ifdef")

    def _set(self, entry: re.Match[str], lines: Iterator[str]) -> None:
        before, name, after, value = entry.groups()
        value = (value or "").strip()
        while value.endswith("\\"):
            value = value[:-1].rstrip(" +") + " " + next(lines, "").strip()
        if before or after:
            self.attributes.pop(name.lower(), None)
        else:
            self.attributes[name.lower()] = substituted(value, self.attributes)


LONGEST = 10_000
"""Letters beyond which a paragraph is data, and is kept as it is written."""

_NAMES = (
    "nbsp sp empty blank zwsp wj plus lt gt amp quot apos lsquo rsquo ldquo rdquo deg brvbar asterisk tilde".split()
)
_SHOWN_AS = [" ", " ", "", "", "", "", *"+<>&\"'‘’“”°¦*~"]
_MORE = {"caret": "^", "backslash": "\\", "backtick": "`", "vbar": "|", "startsb": "[", "endsb": "]", "cpp": "C++"}
CHARACTERS = dict(zip(_NAMES, _SHOWN_AS, strict=True)) | _MORE | {"two-colons": "::", "two-semicolons": ";;"}
"""What every document may name: characters that would be markup if they were written."""

_AS_TYPED = re.compile(r"\+\+\+(.+?)\+\+\+|pass:[a-z,]*\[(.*?)(?<!\\)\]|`\+(.+?)\+`|(?<!\w)\+(\S|\S.*?\S)\+(?!\w)")
_ATTRIBUTE = re.compile(r"(?<!\\)\{(\w[\w-]*)\}")
_COUNTER = re.compile(r"(?<!\\)\{(?:counter2?|set):[^{}]*\}")
_UNSEEN = re.compile(
    r"\[\[[\w:.-]+(?:,[^\[\]]*)?\]\]|\banchor:[\w:.-]+\[[^\[\]]*\]"  # a place to link to
    r"|\(\(\((?:[^()]|\([^()]*\))*\)\)\)|\bindexterm:\[[^\[\]]*\]"  # only in the index
    r"|\b(?:image|icon):[^\s:\[\]][^\s\[\]]*\[[^\[\]]*\]"
)
_NOTE = re.compile(r"\s*\bfootnote(?:ref)?:[\w-]*\[((?:[^\[\]]|\[[^\[\]]*\])*)\]")
_REFERENCE = re.compile(r"<<#?([^<>,]+)(?:,\s*([^<>]*))?>>")
_LINK = re.compile(
    r"(?<!\\)(?:\b(?:link:|xref:|mailto:)(?P<target>[^\s\[\]]*)|(?P<url>\b(?:https?|ftp|irc)://[^\s\[\]<>]+))"
    r"\[(?P<said>(?:[^\[\]\\]|\\.)*)\]"
)
_INLINE_MACRO = re.compile(r"\b(?:kbd|btn|stem|latexmath|asciimath|indexterm2):\[((?:[^\[\]\\]|\\.)*)\]")
_MENU = re.compile(r"\bmenu:([^\s\[\]][^\[\]]*)\[([^\[\]]*)\]")
_INLINE_TERM = re.compile(r"\(\(([^()]+)\)\)")
_CURVED = ((re.compile(r'"`(.+?)`"'), r"“\1”"), (re.compile(r"'`(.+?)`'"), r"‘\1’"))
_ROLE = r"(?:\[[^\[\]]*\])?"
_MARKED = [
    *(re.compile(rf"(?<!\\){_ROLE}{re.escape(2 * mark)}(.+?){re.escape(2 * mark)}") for mark in "*_`#"),
    *(re.compile(rf"(?<![\w;:}}\\]){_ROLE}{re.escape(mark)}(\S|\S.*?\S){re.escape(mark)}(?!\w)") for mark in "*_`#"),
    *(re.compile(rf"(?<!\\){_ROLE}{re.escape(mark)}(\S+?){re.escape(mark)}") for mark in "^~"),
]
_REPLACED = [
    (re.compile(pattern), shown)
    for pattern, shown in [
        (r"(?<!\\)\(C\)", "©"),
        (r"(?<!\\)\(R\)", "®"),
        (r"(?<!\\)\(TM\)", "™"),
        (r"(?<=\w)--(?=\w)", "—"),
        (r"(?<= )--(?= )", "—"),
        (r"(?<!\\)\.\.\.", "…"),
        (r"(?<=\w)'(?=\w)", "’"),
        (r"(?<!\\)->", "→"),
        (r"(?<![\\<=])=>", "⇒"),
        (r"(?<!\\)<-(?!-)", "←"),
        (r"\\(?=[*_`#^~{\[\]<.(+-]|https?:|link:)", ""),
    ]
]
_KEPT = re.compile("\ue000(\\d+)\ue001")
_MARKUP = re.compile(r"[*_`#^~{\[\]<>\\+():'.-]")


def words(text: str, attributes: Mapping[str, str]) -> tuple[str, list[str]]:
    """A line as it reads, and the notes that stand at its foot."""
    if len(text) > LONGEST or not _MARKUP.search(text):
        return text, []
    kept: list[str] = []

    def keep(match: re.Match[str]) -> str:
        kept.append(next((group for group in match.groups() if group is not None), ""))
        return f"\ue000{len(kept) - 1}\ue001"

    text = _AS_TYPED.sub(keep, text.replace("\ue000", "").replace("\ue001", ""))
    text = substituted(text, attributes)
    notes = [note for note in _NOTE.findall(text) if note.strip()]
    text = _UNSEEN.sub("", _NOTE.sub("", text))
    text = _shown(text)
    return _KEPT.sub(lambda match: kept[int(match[1])], text), [_shown(note) for note in notes]


def substituted(text: str, attributes: Mapping[str, str]) -> str:
    """With the values of the document's attributes. One that is not known is left as it is written."""
    if "{" not in text:
        return text
    return _ATTRIBUTE.sub(lambda match: attributes.get(match[1].lower(), match[0]), _COUNTER.sub("", text))


def _shown(text: str) -> str:
    text = _REFERENCE.sub(lambda match: match[2] or match[1], text)
    text = _LINK.sub(_said, text)
    text = _MENU.sub(lambda match: " › ".join(filter(None, [match[1], *re.split(r"\s*>\s*", match[2])])), text)
    text = _INLINE_MACRO.sub(lambda match: match[1].replace("\\]", "]"), text)
    text = _INLINE_TERM.sub(r"\1", text)
    for pattern, shown in _CURVED:
        text = pattern.sub(shown, text)
    for pattern in _MARKED:
        text = pattern.sub(r"\1", text)
    for pattern, shown in _REPLACED:
        text = pattern.sub(shown, text)
    return text


def _said(match: re.Match[str]) -> str:
    said = match["said"].replace("\\]", "]").strip()
    # Behind the words of a link there may be where it opens: `[the words,window=_blank]`.
    said = re.sub(r'(?:^|,)\s*(?:window|role|opts|options|rel|subject|body)=(?:"[^"]*"|[^,]*)', "", said).strip('" ^')
    return said or match["target"] or match["url"] or ""


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
