"""Markdown in the dialects of common documentation generators, including MyST.

Admonitions, tabs, footnotes and include markers have a different syntax in each dialect. A parser rule reduces them to
what the published page shows: a label and the content below it. MyST adds the directives and roles of Sphinx.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from bythebook.sources import BlockKind, Unreadable
from bythebook.sources.document import (
    DocumentPart,
    DocumentWriter,
    ParsedDocument,
    format_role,
    mark_code,
    remove_code_marks,
)
from bythebook.sources.projects import DEFAULT_SLUGS, SlugOptions, Style
from bythebook.sources.readers import front_matter, html
from bythebook.sources.slugs import AnchorGenerator

MAX_PARAGRAPH_LENGTH = 100_000
"""A longer paragraph is data, not prose. Its inline markup is not parsed."""
MAX_SECONDS = 60.0
"""Time limit for a page. Only pages built to be slow reach it."""


def read(text: str, *, style: Style = Style.PLAIN, slugs: SlugOptions = DEFAULT_SLUGS) -> ParsedDocument:
    """The document with the heading ids of `style`. Raises Unreadable for invalid front matter."""
    matter, body = front_matter.parse_front_matter(text)
    return parse_body(body, style=style, title=matter.title, parser=_parser(), slugs=slugs)


def parse_body(
    body: str, *, style: Style, title: str, parser: MarkdownIt, slugs: SlugOptions = DEFAULT_SLUGS
) -> ParsedDocument:
    """Parse a document without front matter."""
    env: dict[str, Any] = {}
    tokens = parser.parse(_SNIPPETS.sub("", body) if "8<" in body else body, env)
    walker = _TokenWalker(parser, env, style)
    walker.anchors = AnchorGenerator(style, _explicit_ids(tokens), slugs=slugs)
    walker.walk(tokens)
    parts = walker.writer.finish()
    return ParsedDocument(title or find_title(parts), parts)


def find_title(parts: Sequence[DocumentPart]) -> str:
    """The text of the first top-level heading, or of the heading at the start of the page."""
    top = (part.text for part in parts if part.kind is BlockKind.HEADING and part.level == 1)
    first = parts[0].text if parts and parts[0].kind is BlockKind.HEADING else ""
    return next(top, first)


def build_parser() -> MarkdownIt:
    """A parser of the blocks of all dialects. Inline text is parsed later, and only if it contains markup."""
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"]).disable(["inline", "text_join"])
    interrupted = ["paragraph", "reference", "blockquote", "list"]
    parser.block.ruler.before("reference", "published_block", _parse_extension_block, {"alt": interrupted})
    parser.inline.ruler.after("link", "undefined_reference", _parse_undefined_reference)
    return parser


_parser = cache(build_parser)

_MARKUP = re.compile(r"[\\`*_\[!<&~{:]| \n")
_HEADING_ID = re.compile(r"[ \t]*\{:?[ \t]*#(?P<id>[^\s{}]+)[^{}]*\}[ \t]*$")
_ATTRIBUTE = r"(?:[#.][\w:./-]+|[\w:-]+=(?:\"[^\"{}]*\"|'[^'{}]*'|[^\s{}\"']+))"
_TEMPLATE = re.compile(r"\{%[^\n]*?%\}|\{\{[^\n]*?\}\}|\{\*[^\n]*?\*\}")
_INVISIBLE_MARKUP = re.compile(
    rf"{_TEMPLATE.pattern}"
    rf"|[ \t]*\{{:?[ \t]*{_ATTRIBUTE}(?:[ \t]+(?:{_ATTRIBUTE}|[\w-]+))*[ \t]*\}}"
    r"|\[\^[^\]\s]+\]"  # a footnote reference
    r"|:(?:material|octicons|fontawesome|simple)-[\w-]+:"
)
_ALERT = re.compile(r"\[!(\w+)\][+-]?[ \t]*(.*)")
_TASK = re.compile(r"\[[ xX]\][ \t]+")
_INCLUDE = re.compile(
    r"^[ \t]*(?:\{\{[ \t]*#(?:include|rustdoc_include|playground|shiftinclude)\b.*\}\}"
    r"|\{\*.*\*\}|\{!.*!\}|(?:(?:#|//|--|;|%|/\*|<!--)[ \t]*)?-+8<-+.*)[ \t]*$\n?",
    re.MULTILINE,
)
_SNIPPETS = re.compile(r"^[ \t]*-+8<-+[ \t]*\n(?:.*\n)*?[ \t]*-+8<-+[ \t]*$", re.MULTILINE)
_MARKDOWN_IN_HTML = re.compile(r"<\w[^<>]*\smarkdown(?:=[^<>]*)?>")
_INLINE_LANGUAGE = re.compile(r"(?:#!|:::)[a-z][\w+-]* (?=\S)")
_HIDDEN_RUST = re.compile(r"^[ \t]*#(?: .*)?(?:\n|$)", re.MULTILINE)
_CODE_TITLE = re.compile(r"\btitle=(?:\"([^\"]*)\"|'([^']*)')")
_ESM_LINE = re.compile(r"^(?:import|export)\b.*$", re.MULTILINE)
_TAG = re.compile(r"<!--.*?(?:-->|$)|</?[A-Za-z][^<>]*>", re.DOTALL)
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_COMPONENT = re.compile(r"<[A-Z][\w.]*\s([^<>]*)>")
_VISIBLE_ATTRIBUTE = re.compile(r"\b(?:label|title|caption|summary)=(?:\"([^\"]*)\"|'([^']*)')")


def find_visible_attribute(attributes: str) -> str:
    """The attribute that a component shows: the label of a tab, the title of a card, the caption of a listing."""
    match = _VISIBLE_ATTRIBUTE.search(attributes)
    return (match[1] or match[2] or "") if match else ""


def _explicit_ids(tokens: Sequence[Token]) -> list[str]:
    matches = (_HEADING_ID.search(inline.content) for token, inline in pairwise(tokens) if token.type == "heading_open")
    return [match["id"] for match in matches if match]


class _TokenWalker:
    """Walks over the tokens of a page once and writes its parts."""

    def __init__(self, parser: MarkdownIt, env: dict[str, Any], style: Style) -> None:
        self._parser, self._env, self._style = parser, env, style
        self.writer = DocumentWriter()
        self.anchors = AnchorGenerator(style)
        self._quotes = 0
        self._heading = 0
        self._rows: list[list[str]] | None = None
        self._deadline = time.monotonic() + MAX_SECONDS

    def walk(self, tokens: Sequence[Token]) -> None:
        for token in tokens:
            match token.type:
                case "inline":
                    self._write_inline(token)
                case "heading_open":
                    self._heading = int(token.tag[1])
                case "fence" | "code_block":
                    self._write_code(token)
                case "html_block":
                    self._write_html(token)
                case "blockquote_open":
                    self._quotes += 1
                case "blockquote_close":
                    self._quotes -= 1
                case _:
                    self._write_list_or_table(token)

    def _write_list_or_table(self, token: Token) -> None:
        match token.type:
            case "list_item_open":
                self.writer.open_item(f"{token.info}{token.markup}" if token.info else "-")
            case "list_item_close":
                self.writer.close_item()
            case "bullet_list_close" | "ordered_list_close":
                self.writer.close_list()
            case "table_open":
                self._rows = []
            case "tr_open" if self._rows is not None:
                self._rows.append([])
            case "table_close":
                self.writer.table(self._rows or [])
                self._rows = None

    def _write_inline(self, token: Token) -> None:
        if time.monotonic() > self._deadline:
            raise Unreadable("it takes too long to read; split it, or take out what is not text")
        if self._rows is not None:
            self._rows[-1].append(self._text(token.content))
        elif self._heading:
            self._write_heading(token.content)
        else:
            self._write_paragraph(token.content)

    def _write_heading(self, source: str) -> None:
        match = _HEADING_ID.search(source)
        text = remove_code_marks(self._text(source[: match.start()] if match else source))
        level, self._heading = self._heading, 0
        anchor = self.anchors.anchor(text, level=level, explicit=match["id"] if match else "")
        self.writer.heading(text, level=level, anchor=anchor)

    def _write_paragraph(self, source: str) -> None:
        if source.startswith("["):
            alert = _ALERT.match(source) if self._quotes else None
            if alert:
                self.writer.paragraph(self._text(alert[2]) if alert[2] else alert[1].capitalize())
                source = source[alert.end() :]
            source = _TASK.sub("", source, count=1) if _TASK.match(source) else source
        self.writer.paragraph(self._text(source))

    def _text(self, source: str) -> str:
        """The visible text of inline Markdown, on one line except for explicit line breaks."""
        if not _MARKUP.search(source) or len(source) > MAX_PARAGRAPH_LENGTH:
            return source.replace("\n", " ")
        tokens: list[Token] = []
        self._parser.inline.parse(source, self._parser, self._env, tokens)
        if "}`" in source and self._style is Style.SPHINX:
            _strip_roles(tokens)
        return "".join(map(_visible_text, _join_text(tokens)))

    def _write_code(self, token: Token) -> None:
        code, info = _INCLUDE.sub("", token.content), token.info.strip()
        if directive := _DIRECTIVE.fullmatch(info):
            self._write_directive(directive["name"], directive["argument"], code)
            return
        if not code.strip():
            return
        if info == "mdx-code-block":
            self.walk(self._parser.parse(_ESM_LINE.sub("", code), self._env))
            return
        if self._style is Style.MDBOOK and info.startswith("rust"):
            code = _HIDDEN_RUST.sub("", code)
        title = _CODE_TITLE.search(info)
        if title:
            self.writer.paragraph(title[1] or title[2] or "")
        self.writer.code(code, language="" if "=" in info.split(" ")[0] else info.lstrip("{. "))

    def _write_directive(self, name: str, argument: str, source: str) -> None:
        """Write a fenced directive of MyST. The name of an unknown one is a language, as in MyST notebooks."""
        options = _OPTIONS.match(source)
        content = source[options.end() :] if options else source
        if name == "eval-rst":
            from bythebook.sources.readers import rst  # Few pages need docutils, which is slow to import.

            self.writer.extend(rst.read(content).parts)
        elif name in _TEXT_DIRECTIVES:
            label = argument or (name.capitalize() if name in _MYST_LABELS else "")
            self.writer.paragraph("" if name in _WITH_COLUMNS else self._text(label))
            self.walk(self._parser.parse(content, self._env))
        elif name not in _INVISIBLE_DIRECTIVES and not name.startswith("auto"):
            caption = _CAPTION.search(options[0]) if options else None
            self.writer.paragraph(self._text(caption[1].strip("\"'")) if caption else "")
            self.writer.code(content, language=argument if name in _CODE_DIRECTIVES else name)

    def _write_html(self, token: Token) -> None:
        for component in _COMPONENT.finditer(token.content):
            self.writer.paragraph(self._text(find_visible_attribute(component[1])))
        source = _TEMPLATE.sub("", token.content)
        if _MARKDOWN_IN_HTML.match(source):
            self.walk(self._parser.parse(_TAG.sub("\n", source), self._env))
        elif _TAG.sub("", source).strip():
            html.write_fragment(source, self.writer)


def _strip_roles(tokens: Sequence[Token]) -> None:
    for token, following in pairwise(tokens):
        if token.type == "text" and following.type == "code_inline":
            role = _ROLE.search(token.content)
            if role:
                token.content = token.content[: role.start()]
                following.content = format_role(role[1], following.content)


def _join_text(tokens: Sequence[Token]) -> Iterator[Token]:
    for _, group in groupby(tokens, key=lambda token: token.type == "text" or id(token)):
        first, *rest = group
        first.content += "".join(token.content for token in rest)
        yield first


def _visible_text(token: Token) -> str:
    if token.type == "text":
        has_markup = "{" in token.content or "[" in token.content or ":" in token.content
        return _INVISIBLE_MARKUP.sub("", token.content) if has_markup else token.content
    if token.type == "code_inline":
        return mark_code(_INLINE_LANGUAGE.sub("", token.content))
    if token.type == "text_special":
        return token.content
    if token.type == "softbreak":
        return " "
    if token.type == "hardbreak" or (token.type == "html_inline" and _BREAK.fullmatch(token.content)):
        return "\n"
    return ""


_WORDS = json.loads(Path(__file__).with_suffix(".json").read_bytes())
_LABELS, _MYST_LABELS, _INVISIBLE_DIRECTIVES, _TEXT_DIRECTIVES = (
    frozenset(" ".join(_WORDS[name]).split())
    for name in ("labels", "myst_labels", "invisible_directives", "text_directives")
)
_FIRST_CHARACTERS = frozenset("{-*[:/!?=(")
_INVISIBLE_LINE = re.compile(
    r"\{\*.*\*\}|\{%.*%\}|\{!.*!\}|\{\{.*\}\}|\{:.*\}"  # includes, templates, attributes of the preceding block
    r"|-+8<-+.*"
    r"|\*\[[^\]]+\]:.*"  # an abbreviation definition
    r"|\[\[?_?toc_?\]\]?"
    r"|\([\w:.-]+\)=",  # a MyST label
    re.IGNORECASE,
)
_FENCED_CONTAINER = re.compile(r"(?P<mark>:{3,}|/{3,})[ \t]*(?P<rest>.*)")
_INDENTED_CONTAINER = re.compile(r"(?:!!!|\?\?\?\+?|===[+!]*)[ \t]+(?P<rest>.*)")
_FOOTNOTE = re.compile(r"\[\^[^\]\s]+\]:[ \t]*(?P<rest>.*)")
_CONTAINER_INFO = re.compile(
    r"\{?(?P<kind>[\w-]+)\}?(?:[ \t]*[|\[]|[ \t]+|(?=\{)|$)(?P<title>.*?)\]?(?:\{[^}]*\})?[ \t]*"
)
_QUOTED_TITLE = re.compile(r'(?P<kind>[\w -]*?)[ \t]*(?:"(?P<title>.*)")?[ \t]*')


_REFERENCE_TARGET = re.compile(r"\[(?:\]|(?=[^\]]*[^\W\d])[^\[\]\n]{2,}\])")


def _parse_undefined_reference(state: StateInline, silent: bool) -> bool:
    """`[text][object.name]` or `[object.name][]`, which a plugin resolves when it builds the site: its text."""
    start = state.pos
    if state.src[start] != "[" or (start and (state.src[start - 1].isalnum() or state.src[start - 1] in "_])!")):
        return False
    end = state.md.helpers.parseLinkLabel(state, start, False)
    target = _REFERENCE_TARGET.match(state.src, end + 1) if end > start + 1 else None
    if target is None:
        return False
    if not silent:
        last, state.pos, state.posMax = state.posMax, start + 1, end
        state.md.inline.tokenize(state)
        state.posMax = last
    state.pos = target.end()
    return True


def _parse_extension_block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    position = state.bMarks[start] + state.tShift[start]
    if position >= state.eMarks[start] or state.src[position] not in _FIRST_CHARACTERS or state.is_code_block(start):
        return False
    line = state.src[position : state.eMarks[start]].rstrip()
    if _INVISIBLE_LINE.fullmatch(line):
        if not silent:
            state.line = start + 1
        return True
    for pattern, write in (
        (_FENCED_CONTAINER, _write_fenced_container),
        (_INDENTED_CONTAINER, _write_indented_container),
        (_FOOTNOTE, _write_footnote),
    ):
        match = pattern.fullmatch(line)
        if match:
            if not silent:
                write(state, start, end, match["rest"])
            return True
    return False


def _write_fenced_container(state: StateBlock, start: int, end: int, rest: str) -> None:
    """`:::note Title` or `/// note | Title`: write the label. The content is parsed as normal blocks."""
    state.line = _find_end_of_indent(state, start + 1, end, blank_lines=False)
    match = _CONTAINER_INFO.fullmatch(rest)
    if match:
        _write_paragraph(state, start, _container_label(match["kind"], match["title"]))


def _write_indented_container(state: StateBlock, start: int, end: int, rest: str) -> None:
    """`!!! note "Title"` or `=== "Tab"`: write the label and the indented content."""
    match = _QUOTED_TITLE.fullmatch(rest)
    if match and match["title"] is not None:
        _write_paragraph(state, start, match["title"])
    else:
        _write_paragraph(state, start, _container_label(rest.partition(" ")[0], ""))
    _write_child_blocks(state, start + 1, end)


def _write_footnote(state: StateBlock, start: int, end: int, rest: str) -> None:
    """`[^1]: text`: write the text of the footnote without its mark."""
    last = start + 1
    while last < end and not state.isEmpty(last) and not _FOOTNOTE.match(_line_text(state, last)):
        rest += "\n" + _line_text(state, last)
        last += 1
    _write_paragraph(state, start, rest)
    _write_child_blocks(state, last, end)


def _write_child_blocks(state: StateBlock, start: int, end: int) -> None:
    last = _find_end_of_indent(state, start, end, blank_lines=True)
    line_max, state.lineMax = state.lineMax, last
    state.blkIndent += 4
    state.md.block.tokenize(state, start, last)
    state.blkIndent -= 4
    state.lineMax, state.line = line_max, last


def _find_end_of_indent(state: StateBlock, start: int, end: int, *, blank_lines: bool) -> int:
    """The first line after `start` that is not part of the indented content."""
    line = last = start
    while line < end:
        if state.isEmpty(line):
            if not blank_lines:
                break
        elif state.sCount[line] - state.blkIndent < 4:
            break
        else:
            last = line + 1
        line += 1
    return last


def _write_paragraph(state: StateBlock, line: int, text: str) -> None:
    if not text.strip():
        return
    state.push("paragraph_open", "p", 1).map = [line, line + 1]
    inline = state.push("inline", "", 0)
    inline.content, inline.map, inline.children = text.strip(), [line, line + 1], []
    state.push("paragraph_close", "p", -1)


def _line_text(state: StateBlock, line: int) -> str:
    return state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]


def _container_label(kind: str, title: str) -> str:
    return title.strip() or (kind.capitalize() if kind.lower() in _LABELS else "")


_DIRECTIVE = re.compile(r"\{(?P<name>[\w:.+-]+)\}[ \t]*(?P<argument>.*)")
_OPTIONS = re.compile(r"---\n(?:[^\n]*\n)*?---(?:\n|$)|(?::[\w-]+:[^\n]*(?:\n|$))+")
_CAPTION = re.compile(r"^:?caption:[ \t]*(\S.*?)[ \t]*$", re.MULTILINE)
_ROLE = re.compile(r"\{([\w:.+-]+)\}$")

_CODE_DIRECTIVES = frozenset(["code", "code-block", "code-cell", "sourcecode"])
_WITH_COLUMNS = frozenset(["grid", "grid-item", "tab-set"])
"""The argument of these is a number of columns."""
