"""HTML: a page as its generator published it, or a piece of one inside Markdown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from selectolax.lexbor import LexborHTMLParser

from bythebook.sources import Kind
from bythebook.sources.document import Draft, Writer
from bythebook.sources.readers.html_content import (
    BLOCKS,
    anchor_of,
    content,
    densest,
    document_title,
    is_furniture,
    is_row_of_tabs,
    is_surrounding,
    labelled_panels,
    language_of,
    own_title,
)
from bythebook.sources.readers.html_guard import check

if TYPE_CHECKING:
    from collections.abc import Callable

    from selectolax.lexbor import LexborNode

DEEPEST = 200
"""Elements inside each other beyond which text is no longer told apart, only kept."""
_SPACE = re.compile(r"[ \t\n\r\f]+")
_BREAK = "\u2028"


def read(text: str) -> Draft:
    """The content of a page, without what surrounds it on every page of its site."""
    return draft(parse(text))


def draft(tree: LexborHTMLParser) -> Draft:
    """The content of a page that is parsed."""
    writer = Writer()
    root = content(tree)
    if root is None and tree.body is not None:
        _Walk(writer, leaving_out=_is_surrounding).over(densest(tree.body))
    elif root is not None:
        _Walk(writer).over(root)
    parts = writer.finish()
    heading = next((part.text for part in parts if part.kind is Kind.HEADING and part.level == 1), "")
    return Draft(own_title(tree) or heading or document_title(tree), parts)


def write(fragment: str, writer: Writer) -> None:
    """Write what a piece of HTML shows."""
    body = parse(fragment).body
    if body is not None:
        _Walk(writer).over(body)


def parse(text: str) -> LexborHTMLParser:
    """The parsed page. Raises Unreadable for one that was made to be slow."""
    check(text)
    return LexborHTMLParser(text)


def _is_surrounding(node: LexborNode) -> bool:
    return is_furniture(node) or is_surrounding(node)


class _Walk:
    """One pass over a tree. Text gathers until a block begins or ends, and is then one paragraph."""

    def __init__(self, writer: Writer, *, leaving_out: Callable[[LexborNode], bool] = is_furniture) -> None:
        self._writer = writer
        self._leaving_out = leaving_out
        self._gathered: list[str] = []
        self._depth = 0
        self._firsts: dict[int, int] = {}
        self._labels: dict[int, str] = {}

    def over(self, root: LexborNode) -> None:
        self._children(root)
        self._paragraph()

    def _children(self, node: LexborNode) -> None:
        self._depth += 1
        for child in node.iter(include_text=True):
            if child.is_text_node:
                self._gathered.append(child.text_content or "")
            elif child.is_element_node and not self._leaving_out(child):
                self._element(child, child.tag or "")
        self._depth -= 1

    def _element(self, node: LexborNode, tag: str) -> None:
        if self._depth > DEEPEST:
            self._gathered.append(node.text(separator=" "))
        elif tag == "br":
            self._gathered.append(_BREAK)
        elif is_row_of_tabs(node) and self._keep_labels(node):
            self._paragraph()
        elif tag in _BLOCK_WRITERS:
            self._paragraph()
            _BLOCK_WRITERS[tag](self, node)
        elif tag in BLOCKS:
            self._paragraph()
            self._writer.paragraph(self._labels.pop(node.mem_id, ""))
            self._children(node)
            self._paragraph()
        else:
            self._children(node)

    def _keep_labels(self, tabs: LexborNode) -> bool:
        """Let each panel have the words on its tab, which would otherwise all stand in front of the first."""
        panels = labelled_panels(tabs)
        self._labels |= {panel.mem_id: label for panel, label in panels}
        return bool(panels)

    def _paragraph(self) -> None:
        if self._gathered:
            self._writer.paragraph(_collapsed("".join(self._gathered)))
            self._gathered = []

    def _heading(self, node: LexborNode) -> None:
        text = inline(node)
        self._writer.heading(text, level=int((node.tag or "h1")[1]), anchor=anchor_of(node, self._firsts))

    def _code(self, node: LexborNode) -> None:
        self._writer.code(_verbatim(node), language=language_of(node))

    def _list(self, node: LexborNode) -> None:
        number = _number(node.attributes.get("start")) if node.tag == "ol" else 0
        for child in node.iter(include_text=False):
            if self._leaving_out(child):
                continue
            self._writer.open_item(f"{number}." if node.tag == "ol" else "-")
            self._children(child)
            self._paragraph()
            self._writer.close_item()
            number += 1
        self._writer.close_list()

    def _table(self, node: LexborNode) -> None:
        code = node.css_first("td.code pre")
        if code is not None:
            self._code(code)
        elif len(node.css("table, pre, ul, ol, h1, h2, h3")) > 1:  # the table itself is one
            # A table that arranges more than words is a layout: what is in it stands on its own.
            self._children(node)
            self._paragraph()
        else:
            caption = node.css_first("caption")
            if caption is not None:
                self._writer.paragraph(inline(caption))
            self._writer.table([[inline(cell) for cell in row.css("td, th")] for row in node.css("tr")])

    def _header(self, node: LexborNode) -> None:
        """The top of a page or article keeps its headings; the rest of it is dates, authors and menus."""
        for heading in node.css("h1, h2, h3, h4, h5, h6"):
            self._heading(heading)


_BLOCK_WRITERS = {
    **dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), _Walk._heading),
    "pre": _Walk._code,
    "ul": _Walk._list,
    "ol": _Walk._list,
    "menu": _Walk._list,
    "table": _Walk._table,
    "header": _Walk._header,
}


def inline(node: LexborNode) -> str:
    """The running text of a node, on one line but for its breaks."""
    return _collapsed(_gathered(node, line_break=_BREAK))


def _verbatim(pre: LexborNode) -> str:
    return _gathered(pre, line_break="\n")


def _gathered(root: LexborNode, *, line_break: str) -> str:
    texts: list[str] = []
    waiting = [root.first_child]
    while waiting:
        node = waiting.pop()
        if node is None:
            continue
        waiting.append(node.next)
        if node.is_text_node:
            texts.append(node.text_content or "")
        elif node.tag == "br":
            texts.append(line_break)
        elif node.is_element_node and not is_furniture(node):
            waiting.append(node.first_child)
    return "".join(texts)


def _collapsed(text: str) -> str:
    return _SPACE.sub(" ", text).replace(_BREAK, "\n")


def _number(start: str | None) -> int:
    return int(start) if start and start.isascii() and start.isdigit() and len(start) < 10 else 1
