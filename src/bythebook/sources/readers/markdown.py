"""Markdown, in the dialects of the common documentation generators.

Blocks that documentation generators add to Markdown, as rules for the parser.

Admonitions, tabs, footnotes and include markers come in many spellings; a reader of the published page sees only a
label and what is below it.

MyST: the directives and roles of Sphinx, written in Markdown.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from markdown_it import MarkdownIt

from bythebook.sources import Kind, Unreadable
from bythebook.sources.document import Draft, Part, Writer
from bythebook.sources.projects import USUAL_SLUGS, Slugs, Style
from bythebook.sources.readers import front_matter, html
from bythebook.sources.slugs import Anchors

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from markdown_it.rules_block import StateBlock
    from markdown_it.token import Token


LONGEST_PARAGRAPH = 100_000
"""Characters beyond which a paragraph is data, not prose, and is kept as it is written."""
LONGEST_READING = 60.0
"""Seconds after which a page is given up: it was made to be slow."""


def read(text: str, *, style: Style = Style.PLAIN, slugs: Slugs = USUAL_SLUGS) -> Draft:
    """The document, with heading ids as `style` gives them. Raises Unreadable for broken front matter."""
    matter, body = front_matter.split(text)
    return draft(body, style=style, title=matter.title, parser=_parser(), slugs=slugs)


def draft(body: str, *, style: Style, title: str, parser: MarkdownIt, slugs: Slugs = USUAL_SLUGS) -> Draft:
    """A document without its front matter."""
    env: dict[str, Any] = {}
    tokens = parser.parse(body, env)
    walk = _Walk(parser, env, style)
    walk.anchors = Anchors(style, _explicit_ids(tokens), slugs=slugs)
    walk.over(tokens)
    parts = walk.writer.finish()
    return Draft(title or title_of(parts), parts)


def title_of(parts: Sequence[Part]) -> str:
    """The first top heading, or the heading a page begins with."""
    top = (part.text for part in parts if part.kind is Kind.HEADING and part.level == 1)
    first = parts[0].text if parts and parts[0].kind is Kind.HEADING else ""
    return next(top, first)


def build_parser() -> MarkdownIt:
    """A parser of blocks. Inline text is parsed later, and only where there is markup in it."""
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"]).disable(["inline", "text_join"])
    add_to(parser)
    return parser


_parser = cache(build_parser)

_MARKUP = re.compile(r"[\\`*_\[!<&~{:]| \n")
_HEADING_ID = re.compile(r"[ \t]*\{:?[ \t]*#(?P<id>[^\s{}]+)[^{}]*\}[ \t]*$")
_ATTRIBUTE = r"(?:[#.][\w:./-]+|[\w:-]+=(?:\"[^\"{}]*\"|'[^'{}]*'|[^\s{}\"']+))"
_TEMPLATE = re.compile(r"\{%[^\n]*?%\}|\{\{[^\n]*?\}\}|\{\*[^\n]*?\*\}")
_UNSEEN = re.compile(
    rf"{_TEMPLATE.pattern}"
    rf"|[ \t]*\{{:?[ \t]*{_ATTRIBUTE}(?:[ \t]+(?:{_ATTRIBUTE}|[\w-]+))*[ \t]*\}}"
    r"|\[\^[^\]\s]+\]"  # a footnote's mark
    r"|:(?:material|octicons|fontawesome|simple)-[\w-]+:"
)
_ALERT = re.compile(r"\[!(\w+)\][+-]?[ \t]*(.*)")
_TASK = re.compile(r"\[[ xX]\][ \t]+")
_INCLUDE = re.compile(
    r"^[ \t]*(?:\{\{[ \t]*#(?:include|rustdoc_include|playground|shiftinclude)\b.*\}\}"
    r"|\{\*.*\*\}|\{!.*!\}|-+8<-+.*)[ \t]*$\n?",
    re.MULTILINE,
)
_HIDDEN_RUST = re.compile(r"^[ \t]*#(?: .*)?(?:\n|$)", re.MULTILINE)
_CODE_TITLE = re.compile(r"\btitle=(?:\"([^\"]*)\"|'([^']*)')")
_TAG = re.compile(r"<!--.*?(?:-->|$)|</?[A-Za-z][^<>]*>", re.DOTALL)
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_COMPONENT = re.compile(r"<[A-Z][\w.]*\s([^<>]*)>")
_SHOWN_ATTRIBUTE = re.compile(r"\b(?:label|title|caption|summary)=(?:\"([^\"]*)\"|'([^']*)')")


def shown_attribute(attributes: str) -> str:
    """The words a component shows from its own attributes: a tab's label, a card's title, a listing's caption."""
    match = _SHOWN_ATTRIBUTE.search(attributes)
    return (match[1] or match[2] or "") if match else ""


def _explicit_ids(tokens: Sequence[Token]) -> list[str]:
    matches = (_HEADING_ID.search(inline.content) for token, inline in pairwise(tokens) if token.type == "heading_open")
    return [match["id"] for match in matches if match]


class _Walk:
    """One pass over the tokens of a page, writing its parts down."""

    def __init__(self, parser: MarkdownIt, env: dict[str, Any], style: Style) -> None:
        self._parser, self._env, self._style = parser, env, style
        self.writer = Writer()
        self.anchors = Anchors(style)
        self._quotes = 0
        self._heading = 0
        self._rows: list[list[str]] | None = None
        self._deadline = time.monotonic() + LONGEST_READING
        self._handlers: dict[str, Callable[[Token], None]] = {
            "inline": self._inline,
            "heading_open": self._open_heading,
            "fence": self._code,
            "code_block": self._code,
            "html_block": self._html,
            "list_item_open": self._open_item,
            "list_item_close": lambda _: self.writer.close_item(),
            "bullet_list_close": lambda _: self.writer.close_list(),
            "ordered_list_close": lambda _: self.writer.close_list(),
            "blockquote_open": lambda _: self._count_quotes(1),
            "blockquote_close": lambda _: self._count_quotes(-1),
            "table_open": self._open_table,
            "tr_open": self._open_row,
            "table_close": self._close_table,
        }

    def over(self, tokens: Sequence[Token]) -> None:
        for token in tokens:
            handler = self._handlers.get(token.type)
            if handler:
                handler(token)

    def _inline(self, token: Token) -> None:
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
        text = self._text(source[: match.start()] if match else source)
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
        """Inline Markdown as it reads: one line, but for the breaks the author asked for."""
        if not _MARKUP.search(source) or len(source) > LONGEST_PARAGRAPH:
            return source.replace("\n", " ")
        tokens: list[Token] = []
        self._parser.inline.parse(source, self._parser, self._env, tokens)
        if "}`" in source and self._style is Style.SPHINX:
            _take_out_roles(tokens)
        return "".join(map(_seen, tokens))

    def _open_heading(self, token: Token) -> None:
        self._heading = int(token.tag[1])

    def _code(self, token: Token) -> None:
        code, info = _INCLUDE.sub("", token.content), token.info.strip()
        found = directive(info, code)
        if found:
            self._directive(found)
            return
        if not code.strip():
            return
        if self._style is Style.MDBOOK and info.startswith("rust"):
            code = _HIDDEN_RUST.sub("", code)
        title = _CODE_TITLE.search(info)
        if title:
            self.writer.paragraph(title[1] or title[2] or "")
        self.writer.code(code, language="" if "=" in info.split(" ")[0] else info.lstrip("{. "))

    def _directive(self, directive: Directive) -> None:
        if directive.is_text:
            self.writer.paragraph(self._text(directive.label))
            self.over(self._parser.parse(directive.content, self._env))
        elif directive.is_seen:
            self.writer.code(directive.content, language=directive.language)

    def _html(self, token: Token) -> None:
        for component in _COMPONENT.finditer(token.content):
            self.writer.paragraph(self._text(shown_attribute(component[1])))
        source = _TEMPLATE.sub("", token.content)
        if _TAG.sub("", source).strip():
            html.write(source, self.writer)

    def _open_item(self, token: Token) -> None:
        self.writer.open_item(f"{token.info}{token.markup}" if token.info else "-")

    def _count_quotes(self, change: int) -> None:
        self._quotes += change

    def _open_table(self, _: Token) -> None:
        self._rows = []

    def _open_row(self, _: Token) -> None:
        if self._rows is not None:
            self._rows.append([])

    def _close_table(self, _: Token) -> None:
        self.writer.table(self._rows or [])
        self._rows = None


def _take_out_roles(tokens: Sequence[Token]) -> None:
    for token, following in pairwise(tokens):
        if token.type == "text" and following.type == "code_inline":
            before = without_role(token.content)
            if before != token.content:
                token.content, following.content = before, words_of_role(following.content)


def _seen(token: Token) -> str:
    if token.type == "text":
        return (
            _UNSEEN.sub("", token.content)
            if "{" in token.content or "[" in token.content or ":" in token.content
            else token.content
        )
    if token.type in ("code_inline", "text_special"):
        return token.content
    if token.type == "softbreak":
        return " "
    if token.type == "hardbreak" or (token.type == "html_inline" and _BREAK.fullmatch(token.content)):
        return "\n"
    return ""


_LABELS = frozenset(
    [
        *(
            "abstract",
            "attention",
            "bug",
            "caution",
            "check",
            "danger",
            "details",
            "error",
            "example",
            "failure",
            "faq",
        ),
        *(
            "hint",
            "important",
            "info",
            "note",
            "question",
            "quote",
            "secondary",
            "seealso",
            "success",
            "summary",
            "tip",
        ),
        *("tldr", "todo", "warning"),
    ]
)

_STARTS = frozenset("{-*[:/!?=(")
_NOTHING = re.compile(
    r"\{\*.*\*\}|\{%.*%\}|\{!.*!\}|\{\{.*\}\}|\{:.*\}"  # includes, templates, attributes of the block above
    r"|-+8<-+.*"
    r"|\*\[[^\]]+\]:.*"  # an abbreviation's long form
    r"|\[\[?_?toc_?\]\]?"
    r"|\([\w:.-]+\)=",  # a label of MyST
    re.IGNORECASE,
)
_BETWEEN_MARKS = re.compile(r"(?P<mark>:{3,}|/{3,})[ \t]*(?P<rest>.*)")
_INDENTED = re.compile(r"(?:!!!|\?\?\?\+?|===[+!]*)[ \t]+(?P<rest>.*)")
_FOOTNOTE = re.compile(r"\[\^[^\]\s]+\]:[ \t]*(?P<rest>.*)")
_NAMED = re.compile(r"\{?(?P<kind>[\w-]+)\}?(?:[ \t]*[|\[]|[ \t]+|(?=\{)|$)(?P<title>.*?)\]?(?:\{[^}]*\})?[ \t]*")
_QUOTED = re.compile(r'(?P<kind>[\w -]*?)[ \t]*(?:"(?P<title>.*)")?[ \t]*')


def add_to(parser: MarkdownIt) -> None:
    """Teach a parser the blocks."""
    interrupted = ["paragraph", "reference", "blockquote", "list"]
    parser.block.ruler.before("reference", "published_block", _rule, {"alt": interrupted})


def _rule(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    position = state.bMarks[start] + state.tShift[start]
    if position >= state.eMarks[start] or state.src[position] not in _STARTS or state.is_code_block(start):
        return False
    line = state.src[position : state.eMarks[start]].rstrip()
    if _NOTHING.fullmatch(line):
        if not silent:
            state.line = start + 1
        return True
    for pattern, write in (
        (_BETWEEN_MARKS, _write_between_marks),
        (_INDENTED, _write_indented),
        (_FOOTNOTE, _write_note),
    ):
        match = pattern.fullmatch(line)
        if match:
            if not silent:
                write(state, start, end, match["rest"])
            return True
    return False


def _write_between_marks(state: StateBlock, start: int, end: int, rest: str) -> None:
    """`:::note Title` or `/// note | Title`: the label. What follows is read as if the marks were not there."""
    state.line = _after_indented(state, start + 1, end, blank_lines=False)
    match = _NAMED.fullmatch(rest)
    if match:
        _write_paragraph(state, start, _label(match["kind"], match["title"]))


def _write_indented(state: StateBlock, start: int, end: int, rest: str) -> None:
    """`!!! note "Title"` or `=== "Tab"`: the label, and the text indented below it."""
    match = _QUOTED.fullmatch(rest)
    if match and match["title"] is not None:
        _write_paragraph(state, start, match["title"])
    else:
        _write_paragraph(state, start, _label(rest.partition(" ")[0], ""))
    _write_children(state, start + 1, end)


def _write_note(state: StateBlock, start: int, end: int, rest: str) -> None:
    """`[^1]: text`: the footnote's text, without its mark."""
    last = start + 1
    while last < end and not state.isEmpty(last) and not _FOOTNOTE.match(_line(state, last)):
        rest += "\n" + _line(state, last)
        last += 1
    _write_paragraph(state, start, rest)
    _write_children(state, last, end)


def _write_children(state: StateBlock, start: int, end: int) -> None:
    last = _after_indented(state, start, end, blank_lines=True)
    line_max, state.lineMax = state.lineMax, last
    state.blkIndent += 4
    state.md.block.tokenize(state, start, last)
    state.blkIndent -= 4
    state.lineMax, state.line = line_max, last


def _after_indented(state: StateBlock, start: int, end: int, *, blank_lines: bool) -> int:
    """The first line from `start` on that is not indented like the content of the block above it."""
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


def _line(state: StateBlock, line: int) -> str:
    return state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]


def _label(kind: str, title: str) -> str:
    return title.strip() or (kind.capitalize() if kind.lower() in _LABELS else "")


_DIRECTIVE = re.compile(r"\{(?P<name>[\w:.+-]+)\}[ \t]*(?P<argument>.*)")
_OPTIONS = re.compile(r"---\n(?:[^\n]*\n)*?---(?:\n|$)|(?::[\w-]+:[^\n]*(?:\n|$))+")
_ROLE = re.compile(r"\{[\w:.+-]+\}$")
_TITLED = re.compile(r"([^<]*\S)\s*<[^<>]*>")

_CODE = frozenset(["code", "code-block", "code-cell", "sourcecode"])
_MYST_LABELS = frozenset(
    ["attention", "caution", "danger", "error", "hint", "important", "note", "seealso", "tip", "warning"]
)
_TEXT = _MYST_LABELS | frozenset(
    [
        *(
            "admonition",
            "dropdown",
            "card",
            "margin",
            "sidebar",
            "topic",
            "tab-item",
            "tab-set",
            "grid",
            "grid-item",
            "grid-item-card",
        ),
        *("versionadded", "versionchanged", "deprecated", "epigraph", "exercise", "solution", "prf:theorem"),
    ]
)
_NOT_TEXT = frozenset(
    ["toctree", "include", "literalinclude", "eval-rst", "image", "figure", "index", "contents", "bibliography"]
)


@dataclass(frozen=True, slots=True)
class Directive:
    """A fenced directive: what its fence would be called, and what is between."""

    name: str
    argument: str
    content: str

    @property
    def is_seen(self) -> bool:
        return self.name not in _NOT_TEXT and not self.name.startswith("auto")

    @property
    def is_text(self) -> bool:
        return self.name in _TEXT

    @property
    def label(self) -> str:
        return self.argument or (self.name.capitalize() if self.name in _MYST_LABELS else "")

    @property
    def language(self) -> str:
        """Of a directive that is code; an unknown one is taken for the name of a language, as notebooks write it."""
        return self.argument if self.name in _CODE else self.name


def directive(info: str, content: str) -> Directive | None:
    """The directive that a fence is, if it is one."""
    match = _DIRECTIVE.fullmatch(info)
    if match is None:
        return None
    options = _OPTIONS.match(content)
    return Directive(match["name"], match["argument"], content[options.end() :] if options else content)


def without_role(text: str) -> str:
    """The text before a span of code, without the role that is not seen."""
    return _ROLE.sub("", text)


def words_of_role(code: str) -> str:
    """What a role shows: the title of `title <target>`."""
    titled = _TITLED.fullmatch(code)
    return titled[1] if titled else code
