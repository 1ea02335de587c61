"""Markdown, in the dialects of the common documentation generators."""

from __future__ import annotations

import re
import time
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from markdown_it import MarkdownIt

from bythebook.pages import Kind, Unreadable
from bythebook.pages.anchors import Anchors
from bythebook.pages.compose import Draft, Part, Writer
from bythebook.pages.generators import USUAL_SLUGS, Slugs, Style
from bythebook.pages.readers import front_matter, html, markdown_blocks, myst

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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
    markdown_blocks.add_to(parser)
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
        directive = myst.directive(info, code)
        if directive:
            self._directive(directive)
            return
        if not code.strip():
            return
        if self._style is Style.MDBOOK and info.startswith("rust"):
            code = _HIDDEN_RUST.sub("", code)
        title = _CODE_TITLE.search(info)
        if title:
            self.writer.paragraph(title[1] or title[2] or "")
        self.writer.code(code, language="" if "=" in info.split(" ")[0] else info.lstrip("{. "))

    def _directive(self, directive: myst.Directive) -> None:
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
            before = myst.without_role(token.content)
            if before != token.content:
                token.content, following.content = before, myst.words_of_role(following.content)


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
