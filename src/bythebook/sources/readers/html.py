"""HTML: a published page, or an HTML fragment inside Markdown."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from selectolax.lexbor import LexborHTMLParser, LexborNode

from bythebook.sources import BlockKind
from bythebook.sources.document import DocumentWriter, ParsedDocument, mark_code
from bythebook.sources.readers.html_content import (
    BLOCKS,
    document_title,
    find_anchor,
    find_content,
    find_densest_element,
    find_labelled_panels,
    find_language,
    is_boilerplate,
    is_hidden_or_navigation,
    is_tab_list,
    page_title,
)

MAX_DEPTH = 200
"""Nesting depth beyond which only the text of an element is kept, without its structure."""
MAX_LINKS = 5_000
_WHITESPACE = re.compile(r"[ \t\n\r\f]+")
_LINE_BREAK = "\u2028"
_NOT_A_PAGE_LINK = ("javascript:", "mailto:", "tel:", "data:", "#", "about:", "blob:")
_BREADCRUMB_SELECTORS = (
    ".theme-doc-breadcrumbs li",
    "nav[aria-label=breadcrumb i] li",
    "nav[aria-label=breadcrumbs i] li",
    "ul.wy-breadcrumbs li",
    "ol.breadcrumb li",
    "ul.bd-breadcrumbs li",
    ".md-path__item",
)
_HOME = re.compile(r"home|home page|start|docs|documentation|", re.I)
_MAX_BREADCRUMB_LENGTH, _MAX_BREADCRUMBS = 120, 8


@dataclass(frozen=True, slots=True)
class WebPage:
    """A published page: its document, and what its markup says to crawlers. URLs are as written, not resolved."""

    document: ParsedDocument
    base: str = ""
    canonical: str = ""
    robots: tuple[str, ...] = ()
    """The contents of the meta elements for robots, for all of them and for this crawler."""
    refreshes: tuple[str, ...] = ()
    """The contents of the meta elements that redirect the page."""
    links: tuple[str, ...] = ()
    """The distinct targets of the links without `nofollow`, in the order of the page."""
    breadcrumbs: tuple[str, ...] = ()
    """The sections that contain the page, from the outermost, without the home page and the page itself."""


def read(text: str) -> ParsedDocument:
    """The content of a page, without the navigation that the site repeats on every page."""
    return _parse_document(LexborHTMLParser(text))


def read_web_page(text: str) -> WebPage:
    """The content of a crawled page, and what a crawler needs to know about it."""
    tree = LexborHTMLParser(text)
    return WebPage(
        _parse_document(tree),
        base=_first_href(tree, "base[href]"),
        canonical=_first_href(tree, "link[rel~=canonical][href]"),
        robots=tuple(_meta_contents(tree, 'meta[name="robots" i], meta[name="bythebook" i]')),
        refreshes=tuple(_meta_contents(tree, 'meta[http-equiv="refresh" i]')),
        links=tuple(dict.fromkeys(_iterate_links(tree)))[:MAX_LINKS],
        breadcrumbs=_find_breadcrumbs(tree),
    )


def write_fragment(fragment: str, writer: DocumentWriter) -> None:
    """Write the visible text of an HTML fragment."""
    body = LexborHTMLParser(fragment).body
    if body is not None:
        _TreeWalker(writer).walk(body)


def _parse_document(tree: LexborHTMLParser) -> ParsedDocument:
    writer = DocumentWriter()
    root = find_content(tree)
    if root is None and tree.body is not None:
        _TreeWalker(writer, is_ignored=_is_ignored).walk(find_densest_element(tree.body))
    elif root is not None:
        _TreeWalker(writer).walk(root)
    parts = writer.finish()
    heading = next((part.text for part in parts if part.kind is BlockKind.HEADING and part.level == 1), "")
    return ParsedDocument(page_title(tree) or heading or document_title(tree), parts)


def _first_href(tree: LexborHTMLParser, selector: str) -> str:
    node = tree.css_first(selector)
    return (node.attributes.get("href") or "") if node is not None else ""


def _meta_contents(tree: LexborHTMLParser, selector: str) -> list[str]:
    return [node.attributes.get("content") or "" for node in tree.css(selector)]


def _iterate_links(tree: LexborHTMLParser) -> Iterator[str]:
    for node in tree.css("a[href], area[href], link[rel~=next][href]"):
        target = (node.attributes.get("href") or "").strip()
        rel = (node.attributes.get("rel") or "").lower().split()
        if "nofollow" not in rel and not target.lower().startswith(_NOT_A_PAGE_LINK):
            yield target


def _find_breadcrumbs(tree: LexborHTMLParser) -> tuple[str, ...]:
    for selector in _BREADCRUMB_SELECTORS:
        items = tree.css(selector)
        if len(items) > 1:
            names = [" ".join(item.text(separator=" ").split()) for item in items[:-1]]
            found = (name for name in names if not _HOME.fullmatch(name) and len(name) <= _MAX_BREADCRUMB_LENGTH)
            return tuple(found)[:_MAX_BREADCRUMBS]
    return ()


def _is_ignored(node: LexborNode) -> bool:
    return is_hidden_or_navigation(node) or is_boilerplate(node)


class _TreeWalker:
    """Walks over a tree once. The text between two block boundaries becomes one paragraph."""

    def __init__(
        self, writer: DocumentWriter, *, is_ignored: Callable[[LexborNode], bool] = is_hidden_or_navigation
    ) -> None:
        self._writer = writer
        self._is_ignored = is_ignored
        self._texts: list[str] = []
        self._depth = 0
        self._first_headings: dict[int, int] = {}
        self._labels: dict[int, str] = {}

    def walk(self, root: LexborNode) -> None:
        self._walk_child_nodes(root)
        self._end_paragraph()

    def _walk_child_nodes(self, node: LexborNode) -> None:
        self._depth += 1
        for child in node.iter(include_text=True):
            if child.is_text_node:
                self._texts.append(child.text_content or "")
            elif child.is_element_node and not self._is_ignored(child):
                self._walk_element(child, child.tag or "")
        self._depth -= 1

    def _walk_element(self, node: LexborNode, tag: str) -> None:
        if self._depth > MAX_DEPTH:
            self._texts.append(node.text(separator=" "))
        elif tag == "br":
            self._texts.append(_LINE_BREAK)
        elif tag == "code" and node.css_first("p, pre, div, br") is None:
            self._texts.append(mark_code(_collect_text(node, line_break=" ")))
        elif is_tab_list(node) and self._assign_labels(node):
            self._end_paragraph()
        elif tag in _BLOCK_WRITERS:
            self._end_paragraph()
            _BLOCK_WRITERS[tag](self, node)
        elif tag in BLOCKS:
            self._end_paragraph()
            self._writer.paragraph(self._labels.pop(node.mem_id, ""))
            self._walk_child_nodes(node)
            self._end_paragraph()
        else:
            self._walk_child_nodes(node)

    def _assign_labels(self, tabs: LexborNode) -> bool:
        """Assign each tab's label to its panel. Otherwise all labels would precede the first panel."""
        panels = find_labelled_panels(tabs)
        self._labels |= {panel.mem_id: label for panel, label in panels}
        return bool(panels)

    def _end_paragraph(self) -> None:
        if self._texts:
            self._writer.paragraph(_collapse_whitespace("".join(self._texts)))
            self._texts = []

    def _write_heading(self, node: LexborNode) -> None:
        text = inline_text(node)
        self._writer.heading(text, level=int((node.tag or "h1")[1]), anchor=find_anchor(node, self._first_headings))

    def _write_code(self, node: LexborNode) -> None:
        self._writer.code(_collect_text(node, line_break="\n"), language=find_language(node))

    def _write_list(self, node: LexborNode) -> None:
        number = _parse_list_start(node.attributes.get("start")) if node.tag == "ol" else 0
        for child in node.iter(include_text=False):
            if self._is_ignored(child):
                continue
            self._writer.open_item(f"{number}." if node.tag == "ol" else "-")
            self._walk_child_nodes(child)
            self._end_paragraph()
            self._writer.close_item()
            number += 1
        self._writer.close_list()

    def _write_table(self, node: LexborNode) -> None:
        code = node.css_first("td.code pre")
        if code is not None:
            self._write_code(code)
        elif len(node.css("table, pre, ul, ol, h1, h2, h3")) > 1:  # the table itself is one
            # A table with block elements in its cells is a layout table: its content is read as blocks.
            self._walk_child_nodes(node)
            self._end_paragraph()
        else:
            caption = node.css_first("caption")
            if caption is not None:
                self._writer.paragraph(inline_text(caption))
            self._writer.table([[inline_text(cell) for cell in row.css("td, th")] for row in node.css("tr")])

    def _write_header(self, node: LexborNode) -> None:
        """Only the headings of a header are content; the rest is dates, authors and menus."""
        for heading in node.css("h1, h2, h3, h4, h5, h6"):
            self._write_heading(heading)


_BLOCK_WRITERS = {
    **dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), _TreeWalker._write_heading),
    "pre": _TreeWalker._write_code,
    **dict.fromkeys(("ul", "ol", "menu"), _TreeWalker._write_list),
    "table": _TreeWalker._write_table,
    "header": _TreeWalker._write_header,
}


def inline_text(node: LexborNode) -> str:
    """The running text of a node, on one line except for its line breaks."""
    return _collapse_whitespace(_collect_text(node, line_break=_LINE_BREAK))


def _collect_text(root: LexborNode, *, line_break: str) -> str:
    texts: list[str] = []
    pending = [root.first_child]
    while pending:
        node = pending.pop()
        if node is None:
            continue
        pending.append(node.next)
        if node.is_text_node:
            texts.append(node.text_content or "")
        elif node.tag == "br":
            texts.append(line_break)
        elif node.is_element_node and not is_hidden_or_navigation(node):
            pending.append(node.first_child)
    return "".join(texts)


def _collapse_whitespace(text: str) -> str:
    return _WHITESPACE.sub(" ", text).replace(_LINE_BREAK, "\n")


def _parse_list_start(start: str | None) -> int:
    return int(start) if start and start.isascii() and start.isdigit() and len(start) < 10 else 1
