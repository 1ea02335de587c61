"""AsciiDoc as Asciidoctor publishes it. No file is included and no code is run.

The preprocessor resolves attributes, conditions and comments line by line. The block parser turns the remaining lines
into parts. Inline markup and tables have their own functions below.
"""

import csv
import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bythebook.sources import Unreadable
from bythebook.sources.document import DocumentWriter, ParsedDocument

MAX_SECONDS = 60.0
"""Time limit for a page. Only pages built to be slow reach it."""
MAX_DEPTH = 40

_SECTION = re.compile(r"(={1,6}|#{1,6})[ \t]+(\S.*?)(?:[ \t]+\1)?$")
_BLOCK_ATTRIBUTES = re.compile(r"\[(?!\[)([^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*)\]$")
_BLOCK_ANCHOR = re.compile(r"\[\[([\w:.-]+)(?:,.*)?\]\]$")
_BLOCK_TITLE = re.compile(r"\.([^\s.].*)$")
_DELIMITER = re.compile(r"(?:([-.=*_+/])\1{3,}|--|`{3,}([\w-]*)|[|,:!]={3,})$")
_ITEM = re.compile(r"[ \t]*(\*{1,6}|-|\.{1,6}|\d{1,4}\.|[a-zA-Z]\.|<(?:\d{1,3}|\.)>)[ \t]+(\S.*)$")
_DESCRIPTION_TERM = re.compile(r"[ \t]*(\S.*?)(:{2,4}|;;)(?:[ \t]+(.*))?$")
_BREAK = re.compile(r"'{3,}$|<{3,}$|- ?- ?-$|\* ?\* ?\*$")
_MACRO = re.compile(r"(?:image|video|audio|toc|include|ifdef|ifndef|ifeval|endif)::[^\[\]]*\[.*\]$")
_ADMONITION = re.compile(r"(NOTE|TIP|IMPORTANT|WARNING|CAUTION):[ \t]+")
_VERBATIM_STYLES = frozenset(["source", "listing", "literal", "verse"])
_ADMONITIONS = frozenset(["NOTE", "TIP", "IMPORTANT", "WARNING", "CAUTION"])
_CALLOUT = re.compile(r"[ \t]*(?://|#|--|;;)?[ \t]*(?:<(?:\d{1,3}|\.)>|<!--(?:\d{1,3}|\.)-->)[ \t]*$", re.MULTILINE)
_NAMED_ATTRIBUTE = re.compile(r"""([\w-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^,]*))""")
_ID = re.compile(r"#([\w:.-]+)")
_INLINE_ID = re.compile(r"\[\[([\w:.-]+)(?:,[^\]]*)?\]\]\s*|\[#([\w:.-]+)\]")
_TASK = re.compile(r"\[[ xX*]\][ \t]+")


@dataclass(slots=True)
class _BlockMetadata:
    """The attributes, anchor and title in the lines before a block."""

    style: str = ""
    positional: tuple[str, ...] = ()
    named: dict[str, str] = field(default_factory=dict)
    anchor: str = ""
    title: str = ""


def read(text: str) -> ParsedDocument:
    """The document, with the heading ids of Asciidoctor."""
    source = AsciidocPreprocessor(text)
    parser = _BlockParser(source.attributes)
    lines, title = _split_header(source.lines)
    if title:
        parser.write_heading(1, title, _BlockMetadata())
    parser.parse(lines)
    parts = parser.writer.finish()
    top = next((part.text for part in parts if part.level == 1), "")
    return ParsedDocument(top or next((part.text for part in parts[:1] if part.level), ""), parts)


def _split_header(lines: Sequence[str]) -> tuple[Sequence[str], str]:
    """The lines after the header (title, authors, revision), and the title."""
    start = next((number for number, line in enumerate(lines) if line.strip()), 0)
    match = _SECTION.match(lines[start]) if start < len(lines) else None
    if not match or len(match[1]) > 1:
        return lines, ""
    end = next((number for number in range(start, len(lines)) if not lines[number].strip()), len(lines))
    return lines[end:], match[2]


class _BlockParser:
    """Parses the lines of a document block by block and writes its parts."""

    def __init__(self, attributes: dict[str, str]) -> None:
        self.writer = DocumentWriter()
        self._attributes = attributes
        self._used_ids: set[str] = set()
        self._deadline = time.monotonic() + MAX_SECONDS
        self._depth = 0

    def parse(self, lines: Sequence[str]) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise Unreadable("it is nested too deeply to be a page")
        at, metadata = 0, _BlockMetadata()
        while at < len(lines):
            line = lines[at]
            if not line.strip() or self._parse_metadata(line, metadata):
                at += 1
            else:
                at = self._write_block(lines, at, metadata)
                metadata = _BlockMetadata()
        self._depth -= 1

    def _parse_metadata(self, line: str, metadata: _BlockMetadata) -> bool:
        """Parse a line of block metadata. False if the line is not metadata."""
        if anchor := _BLOCK_ANCHOR.match(line):
            metadata.anchor = anchor[1]
        elif attributes := _BLOCK_ATTRIBUTES.match(line):
            _parse_attributes(metadata, attributes[1])
        elif (title := _BLOCK_TITLE.match(line)) and not _DELIMITER.match(line):
            metadata.title = title[1]
        else:
            return False
        return True

    def _write_block(self, lines: Sequence[str], at: int, metadata: _BlockMetadata) -> int:
        """Write the block at this line. Returns the line after it."""
        line = lines[at]
        if time.monotonic() > self._deadline:
            raise Unreadable("it takes too long to read; split it, or take out what is not text")
        if section := _SECTION.match(line):
            self.write_heading(len(section[1]), section[2], metadata)
            return at + 1
        if _BREAK.match(line) or _MACRO.match(line):
            return at + 1
        if metadata.title:
            self._write_paragraph(metadata.title)
        if delimiter := _DELIMITER.match(line):
            return self._write_delimited_block(lines, at, metadata, delimiter)
        if _ITEM.match(line) or (_DESCRIPTION_TERM.match(line) and not metadata.style):
            return self._write_list(lines, at)
        return self._write_plain(lines, at, metadata)

    def write_heading(self, level: int, source: str, metadata: _BlockMetadata) -> None:
        inline = _INLINE_ID.search(source)
        explicit = metadata.anchor or ((inline[1] or inline[2]) if inline else "")
        text = render_inline(_INLINE_ID.sub("", source), self._attributes)[0]
        self.writer.heading(text, level=level, anchor=explicit or self._generate_id(text))
        self._used_ids.add(explicit)

    def _generate_id(self, text: str) -> str:
        """An id like Asciidoctor's, with the prefix and separator from the document's attributes."""
        prefix = self._attributes.get("idprefix", "_")
        by = self._attributes.get("idseparator", "_")[:1]
        slug = re.sub(r"[ .-]+", by or "", re.sub(r"[^ \w.-]+", "", text.lower()))
        slug = prefix + slug.strip(by) if by else prefix + slug
        anchor, number = slug, 2
        while anchor in self._used_ids:
            anchor, number = f"{slug}{by or '_'}{number}", number + 1
        self._used_ids.add(anchor)
        return anchor

    def _write_delimited_block(
        self, lines: Sequence[str], at: int, metadata: _BlockMetadata, delimiter: re.Match[str]
    ) -> int:
        fence = lines[at]
        closing = "```" if fence.startswith("```") else fence
        end = next((number for number in range(at + 1, len(lines)) if lines[number] == closing), len(lines))
        inside = lines[at + 1 : end]
        if fence.startswith("```"):
            self._write_code(inside, metadata, language=delimiter[2] or "")
        elif fence[0] in "|,:!":
            self._write_table(inside, metadata, fence)
        else:
            self._write_delimited_content(fence, inside, metadata)
        return end + 1

    def _write_delimited_content(self, fence: str, inside: Sequence[str], metadata: _BlockMetadata) -> None:
        mark = fence[0]
        if mark == "/" or metadata.style == "comment":
            return
        if mark == "+":
            # A passthrough block is raw output, unless it is a formula.
            if metadata.style in ("stem", "latexmath", "asciimath"):
                self._write_code(inside, metadata, language="latex")
        elif metadata.style in _VERBATIM_STYLES or mark == "." or (mark == "-" and fence != "--"):
            self._write_code(inside, metadata)
        else:
            if metadata.style in _ADMONITIONS:
                self.writer.paragraph(metadata.style.capitalize())
            self.parse(inside)
            self._write_attribution(metadata)

    def _write_attribution(self, metadata: _BlockMetadata) -> None:
        """Write the author and source of a quote."""
        authors = [part for part in metadata.positional[1:3] if part]
        if metadata.style in ("quote", "verse") and authors:
            self._write_paragraph("— " + ", ".join(authors))

    def _write_code(self, inside: Sequence[str], metadata: _BlockMetadata, *, language: str = "") -> None:
        if metadata.style == "source" or not metadata.style:
            positional = metadata.positional[1] if len(metadata.positional) > 1 else ""
            usual = self._attributes.get("source-language", "") if metadata.style == "source" else ""
            language = metadata.named.get("language", "") or positional or language or usual
        if metadata.style == "verse":
            self.writer.paragraph("\n".join(render_inline(line, self._attributes)[0] for line in inside))
            self._write_attribution(metadata)
            return
        self.writer.code(_CALLOUT.sub("", "\n".join(inside)), language=language)

    def _write_table(self, inside: Sequence[str], metadata: _BlockMetadata, fence: str) -> None:
        found = parse_table(inside, metadata.named, delimiter=fence)
        self.writer.table([[self._join_lines(cell.split("\n")) for cell in row] for row in found])

    def _write_plain(self, lines: Sequence[str], at: int, metadata: _BlockMetadata) -> int:
        """Write a paragraph, or the block that its style selects."""
        end = at
        while end < len(lines) and lines[end].strip() and (end == at or not self._interrupts(lines[end])):
            end += 1
        block = lines[at:end]
        if metadata.style in _VERBATIM_STYLES:
            self._write_code(block, metadata)
        elif block[0][0] in " \t" and metadata.style not in _ADMONITIONS:
            self._write_code(_dedent(block), _BlockMetadata())
        else:
            self._write_prose(block, metadata)
        return end

    def _write_prose(self, block: Sequence[str], metadata: _BlockMetadata) -> None:
        admonition = _ADMONITION.match(block[0])
        if admonition or metadata.style in _ADMONITIONS:
            self.writer.paragraph((admonition[1] if admonition else metadata.style).capitalize())
            block = [block[0][admonition.end() if admonition else 0 :], *block[1:]]
        self._write_paragraph(*block)
        self._write_attribution(metadata)

    def _interrupts(self, line: str) -> bool:
        return bool(_DELIMITER.match(line) or _BLOCK_ATTRIBUTES.match(line) or _BLOCK_ANCHOR.match(line))

    def _write_paragraph(self, *lines: str) -> None:
        text, notes = render_inline(_unwrap_lines(lines), self._attributes)
        self.writer.paragraph(text)
        for note in notes:
            self.writer.paragraph(note)

    def _join_lines(self, lines: Sequence[str]) -> str:
        return render_inline(_unwrap_lines([line for line in lines if line.strip()]), self._attributes)[0]

    def _write_list(self, lines: Sequence[str], at: int) -> int:
        """Write a list of items or terms, with the blocks attached to them by `+`."""
        open_markers: list[str] = []
        counts: list[int] = []
        notes = lines[at].startswith("<")
        while (found := _skip_blank_lines(lines, at)) < len(lines) and self._is_item(lines[found]):
            # Callouts form a separate list.
            if lines[found].startswith("<") != notes:
                break
            at = self._write_item(lines, found, open_markers, counts)
        for _ in open_markers:
            self.writer.close_item()
        self.writer.close_list()
        return at

    def _is_item(self, line: str) -> bool:
        return bool(_ITEM.match(line) or _DESCRIPTION_TERM.match(line)) and not _SECTION.match(line)

    def _write_item(self, lines: Sequence[str], at: int, open_markers: list[str], counts: list[int]) -> int:
        item = _ITEM.match(lines[at])
        term = None if item else _DESCRIPTION_TERM.match(lines[at])
        marker = _normalize_marker(item[1]) if item else term[2] if term else "-"
        self._enter_level(marker, open_markers, counts)
        end = self._end_of_item(lines, at + 1)
        if item:
            self.writer.open_item(f"{counts[-1]}." if marker[0] in ".<1a" else "-")
            self._write_paragraph(_TASK.sub("", item[2], count=1), *lines[at + 1 : end])
        elif term:
            self.writer.open_item("-")
            self._write_paragraph(term[1])
            end = self._write_description(term[3] or "", lines, at + 1, end)
        open_markers.append(marker)
        return self._write_attached_blocks(lines, end)

    def _write_description(self, said: str, lines: Sequence[str], start: int, end: int) -> int:
        """Write the description of a term: on the same line or below it, also after a blank line."""
        if not said and start == end:
            start = end = _skip_blank_lines(lines, end)
            if end < len(lines) and not self._is_item(lines[end]) and not self._interrupts(lines[end]):
                end = self._end_of_item(lines, end)
            else:
                return start
        self._write_paragraph(said, *(line.strip() for line in lines[start:end]))
        return end

    def _enter_level(self, marker: str, open_markers: list[str], counts: list[int]) -> None:
        """Close the items nested deeper than this marker. A new marker opens a deeper level."""
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
            if len(counts) > MAX_DEPTH:
                raise Unreadable("it is nested too deeply to be a page")

    def _end_of_item(self, lines: Sequence[str], at: int) -> int:
        while at < len(lines) and lines[at].strip() and lines[at] != "+":
            if self._is_item(lines[at]) or self._interrupts(lines[at]):
                break
            at += 1
        return at

    def _write_attached_blocks(self, lines: Sequence[str], at: int) -> int:
        while at < len(lines) and lines[at] == "+":
            at += 1
            metadata = _BlockMetadata()
            while at < len(lines) and self._parse_metadata(lines[at], metadata):
                at += 1
            if at < len(lines) and lines[at].strip():
                at = self._write_block_in_item(lines, at, metadata)
        return at

    def _write_block_in_item(self, lines: Sequence[str], at: int, metadata: _BlockMetadata) -> int:
        """Write a block attached to an item. It ends at the `+` of the next attached block at the latest."""
        if _DELIMITER.match(lines[at]):
            return self._write_block(lines, at, metadata)
        end = at
        while end < len(lines) and lines[end].strip() and lines[end] != "+" and not self._is_item(lines[end]):
            end += 1
        if end == at:
            return at
        return at + self._write_block(lines[at:end], 0, metadata)


def _skip_blank_lines(lines: Sequence[str], at: int) -> int:
    while at < len(lines) and not lines[at].strip():
        at += 1
    return at


def _normalize_marker(written: str) -> str:
    """The marker that all items of a list share, without the item number."""
    if written[0].isdigit():
        return "1."
    if written[0] == "<":
        return "<1>"
    return "a." if written[0].isalpha() else written


def _parse_attributes(metadata: _BlockMetadata, said: str) -> None:
    """Parse an attribute list such as `source,python`, `#id.role%option` or `cols="1,2"`."""
    positional = [part.strip().strip("\"'") for part in _NAMED_ATTRIBUTE.sub("", said).split(",")]
    metadata.positional = tuple(positional)
    for match in _NAMED_ATTRIBUTE.finditer(said):
        metadata.named[match[1].lower()] = next(value for value in match.groups()[1:] if value is not None).strip()
    first = positional[0]
    if anchor := _ID.search(first):
        metadata.anchor = anchor[1]
    metadata.anchor = metadata.named.get("id", metadata.anchor)
    metadata.style = re.split(r"[#.%]", first, maxsplit=1)[0] or metadata.named.get("style", "")


def _unwrap_lines(lines: Sequence[str]) -> str:
    """Join wrapped lines. A line that ends in ` +` keeps its line break."""
    pieces: list[str] = []
    for line in lines:
        text = line.strip()
        pieces.append(text[:-2].rstrip() + "\u2028" if text.endswith(" +") else text + " ")
    return "".join(pieces).strip()


def _dedent(lines: Sequence[str]) -> list[str]:
    margin = min(len(line) - len(line.lstrip()) for line in lines)
    return [line[margin:] for line in lines]


_ATTRIBUTE_ENTRY = re.compile(r":(!?)(\w[\w-]*)(!?):(?:[ \t]+(.*))?$")
_CONDITION = re.compile(r"(ifdef|ifndef|ifeval|endif)::(\S*?)\[(.*)\]\s*$")
_INCLUDE = re.compile(r"include::\S.*\[.*\]\s*$")
_VERBATIM_FENCES = re.compile(r"(-{4,}|\.{4,}|\+{4,}|/{4,}|`{3,}[\w-]*)\s*$")
_COMMENT = re.compile(r"//(?!/)")


class AsciidocPreprocessor:
    """Resolves attribute entries, conditions, comments and includes line by line."""

    def __init__(self, text: str) -> None:
        self.attributes: dict[str, str] = dict(CHARACTERS)
        self._verbatim = ""
        """The line that ends the current verbatim block. Inside it, only conditions are resolved."""
        self._skipping: list[bool] = []
        self.lines = list(self._read(text))

    def _read(self, text: str) -> Iterator[str]:
        lines = iter(text.split("\n"))
        for raw in lines:
            line = raw.rstrip()
            if condition := _CONDITION.match(line):
                yield from self._resolve_condition(*condition.groups())
                continue
            if any(self._skipping) or _INCLUDE.match(line):
                continue
            if self._verbatim or _VERBATIM_FENCES.match(line):
                self._track_verbatim(line)
                yield line
            elif entry := _ATTRIBUTE_ENTRY.match(line):
                self._set_attribute(entry, lines)
            elif not _COMMENT.match(line):
                yield line

    def _track_verbatim(self, line: str) -> None:
        """Track the start and end of code, comments and passthrough blocks."""
        if not self._verbatim:
            self._verbatim = "```" if line.startswith("```") else line
        elif line == self._verbatim:
            self._verbatim = ""

    def _resolve_condition(self, kind: str, names: str, said: str) -> Iterator[str]:
        """Begin or end a conditional part, or yield the text of a condition on a single line."""
        if kind == "endif":
            if self._skipping:
                self._skipping.pop()
        elif kind == "ifeval":
            self._skipping.append(False)
        elif not said:
            self._skipping.append(not self._is_true(kind, names))
        elif self._is_true(kind, names):
            yield said

    def _is_true(self, kind: str, names: str) -> bool:
        """Whether a condition is true. Commas mean any of the attributes, plus signs mean all of them."""
        there = [name in self.attributes for name in re.split(r"[,+]", names.lower())]
        result = all(there) if "+" in names else any(there)
        return not any(self._skipping) and result == (kind == "ifdef")

    def _set_attribute(self, entry: re.Match[str], lines: Iterator[str]) -> None:
        before, name, after, value = entry.groups()
        value = (value or "").strip()
        while value.endswith("\\"):
            value = value[:-1].rstrip(" +") + " " + next(lines, "").strip()
        if before or after:
            self.attributes.pop(name.lower(), None)
        else:
            self.attributes[name.lower()] = substitute_attributes(value, self.attributes)[:MAX_ATTRIBUTE_LENGTH]


MAX_ATTRIBUTE_LENGTH = 4_096
"""The limit of Asciidoctor in its secure mode. An attribute may repeat others, which repeat others."""
MAX_INLINE_LENGTH = 10_000
"""A longer paragraph is data. Its inline markup is not parsed."""

_NAMED = (
    "plus + lt < gt > amp & quot \" apos ' lsquo ‘ rsquo ’ ldquo “ rdquo ” deg ° brvbar ¦ asterisk * tilde ~ caret ^ "
    "backslash \\ backtick ` vbar | startsb [ endsb ] cpp C++ two-colons :: two-semicolons ;; "
).split()
CHARACTERS = dict(zip(_NAMED[::2], _NAMED[1::2], strict=True)) | {"nbsp": " ", "sp": " "}
CHARACTERS |= dict.fromkeys(["empty", "blank", "zwsp", "wj"], "")
"""Predefined attributes: characters that would otherwise be markup."""

_PASSTHROUGH = re.compile(r"\+\+\+(.+?)\+\+\+|pass:[a-z,]*\[(.*?)(?<!\\)\]|`\+(.+?)\+`|(?<!\w)\+(\S|\S.*?\S)\+(?!\w)")
_ATTRIBUTE = re.compile(r"(?<!\\)\{(\w[\w-]*)\}")
_COUNTER = re.compile(r"(?<!\\)\{(?:counter2?|set):[^{}]*\}")
_INVISIBLE = re.compile(
    r"\[\[[\w:.-]+(?:,[^\[\]]*)?\]\]|\banchor:[\w:.-]+\[[^\[\]]*\]"  # an anchor
    r"|\(\(\((?:[^()]|\([^()]*\))*\)\)\)|\bindexterm:\[[^\[\]]*\]"  # an index term
    r"|\b(?:image|icon):[^\s:\[\]][^\s\[\]]*\[[^\[\]]*\]"
)
_FOOTNOTE = re.compile(r"\s*\bfootnote(?:ref)?:[\w-]*\[((?:[^\[\]]|\[[^\[\]]*\])*)\]")
_REFERENCE = re.compile(r"<<#?([^<>,]+)(?:,\s*([^<>]*))?>>")
_LINK = re.compile(
    r"(?<!\\)(?:\b(?:link:|xref:|mailto:)(?P<target>[^\s\[\]]*)|(?P<url>\b(?:https?|ftp|irc)://[^\s\[\]<>]+))"
    r"\[(?P<said>(?:[^\[\]\\]|\\.)*)\]"
)
_INLINE_MACRO = re.compile(r"\b(?:kbd|btn|stem|latexmath|asciimath|indexterm2):\[((?:[^\[\]\\]|\\.)*)\]")
_MENU = re.compile(r"\bmenu:([^\s\[\]][^\[\]]*)\[([^\[\]]*)\]")
_INLINE_TERM = re.compile(r"\(\(([^()]+)\)\)")
_CURVED_QUOTES = ((re.compile(r'"`(.+?)`"'), r"“\1”"), (re.compile(r"'`(.+?)`'"), r"‘\1’"))
_ROLE = r"(?:\[[^\[\]]*\])?"
_FORMATTING = [
    *(re.compile(rf"(?<!\\){_ROLE}{re.escape(2 * mark)}(.+?){re.escape(2 * mark)}") for mark in "*_`#"),
    *(re.compile(rf"(?<![\w;:}}\\]){_ROLE}{re.escape(mark)}(\S|\S.*?\S){re.escape(mark)}(?!\w)") for mark in "*_`#"),
    *(re.compile(rf"(?<!\\){_ROLE}{re.escape(mark)}(\S+?){re.escape(mark)}") for mark in "^~"),
]
_REPLACEMENTS = [
    (re.compile(pattern), shown)
    for pattern, shown in json.loads(Path(__file__).with_suffix(".json").read_bytes())["replacements"]
]
_PLACEHOLDER = re.compile("\ue000(\\d+)\ue001")
_MARKUP = re.compile(r"[*_`#^~{\[\]<>\\+():'.-]")


def render_inline(text: str, attributes: Mapping[str, str]) -> tuple[str, list[str]]:
    """The visible text of a line, and the texts of its footnotes."""
    if len(text) > MAX_INLINE_LENGTH or not _MARKUP.search(text):
        return text, []
    kept: list[str] = []

    def keep(match: re.Match[str]) -> str:
        kept.append(next((group for group in match.groups() if group is not None), ""))
        return f"\ue000{len(kept) - 1}\ue001"

    text = _PASSTHROUGH.sub(keep, text.replace("\ue000", "").replace("\ue001", ""))
    text = substitute_attributes(text, attributes)
    notes = [note for note in _FOOTNOTE.findall(text) if note.strip()]
    text = _INVISIBLE.sub("", _FOOTNOTE.sub("", text))
    text = _remove_markup(text)
    return _PLACEHOLDER.sub(lambda match: kept[int(match[1])], text), [_remove_markup(note) for note in notes]


def substitute_attributes(text: str, attributes: Mapping[str, str]) -> str:
    """Replace attribute references with their values. Unknown references are unchanged."""
    if "{" not in text:
        return text
    return _ATTRIBUTE.sub(lambda match: attributes.get(match[1].lower(), match[0]), _COUNTER.sub("", text))


def _remove_markup(text: str) -> str:
    text = _REFERENCE.sub(lambda match: match[2] or match[1], text)
    text = _LINK.sub(_link_text, text)
    text = _MENU.sub(lambda match: " › ".join(filter(None, [match[1], *re.split(r"\s*>\s*", match[2])])), text)
    text = _INLINE_MACRO.sub(lambda match: match[1].replace("\\]", "]"), text)
    text = _INLINE_TERM.sub(r"\1", text)
    for pattern, shown in _CURVED_QUOTES:
        text = pattern.sub(shown, text)
    for pattern in _FORMATTING:
        text = pattern.sub(r"\1", text)
    for pattern, shown in _REPLACEMENTS:
        text = pattern.sub(shown, text)
    return text


def _link_text(match: re.Match[str]) -> str:
    said = match["said"].replace("\\]", "]").strip()
    # Attributes may follow the text of a link: `[the text,window=_blank]`.
    said = re.sub(r'(?:^|,)\s*(?:window|role|opts|options|rel|subject|body)=(?:"[^"]*"|[^,]*)', "", said).strip('" ^')
    return said or match["target"] or match["url"] or ""


_CELL = re.compile(
    r"(?:(?:^|(?<=\s))(?:(?P<count>\d{1,3})(?:\.\d+)?(?P<how>[*+])|\.\d+\+)?"
    r"(?:[<^>](?:\.[<^>])?|\.[<^>])?[aehlmdsv]?)?(?<!\\)\|",
    re.MULTILINE,
)
_MAX_CELLS = 100_000


def parse_table(lines: Sequence[str], attributes: Mapping[str, str], *, delimiter: str) -> list[list[str]]:
    """The rows of a table, from the lines between its delimiters. The first row is the header."""
    table_format = attributes.get("format", {",": "csv", ":": "dsv"}.get(delimiter[0], "psv"))
    if table_format in ("csv", "tsv", "dsv"):
        by = attributes.get("separator", {"csv": ",", "tsv": "\t", "dsv": ":"}[table_format])
        return [row for row in csv.reader(lines, delimiter=by[:1] or ",") if row]
    text = "\n".join(lines).strip("\n")
    if delimiter[0] == "!":
        text = text.replace("!", "|")
    cells = _parse_cells(text)
    width = _count_columns(attributes) or len(_parse_cells(text.split("\n", 1)[0])) or 1
    return [cells[first : first + width] for first in range(0, len(cells), width)]


def _parse_cells(text: str) -> list[str]:
    cells: list[str] = []
    bars = list(_CELL.finditer(text))
    ends = [bar.start() for bar in bars[1:]] + [len(text)]
    for bar, end in zip(bars, ends, strict=True):
        said = text[bar.end() : end].strip().replace("\\|", "|")
        count = int(bar["count"] or 1)
        if len(cells) + count > _MAX_CELLS:
            break
        cells += [said] * count if bar["how"] == "*" else [said, *[""] * (count - 1)]
    return cells


def _count_columns(attributes: Mapping[str, str]) -> int:
    """The number of columns in the `cols` attribute: `3*`, or one entry for each column."""
    said = attributes.get("cols", "").strip()
    if not said:
        return 0
    count = 0
    for column in re.split(r"[,;]", said):
        repeat = re.match(r"\s*(\d{1,3})\*", column)
        count += int(repeat[1]) if repeat else 1
    return min(count, 1_000)
