"""Content extraction: which part of an HTML page is the content, and which elements of it are not shown to readers.

If no known selector matches, the content is the element with the highest density of text outside of links and menus.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode


_WORDS = json.loads(Path(__file__).with_suffix(".json").read_bytes())
BLOCKS, _IGNORED_TAGS, _IGNORED_CLASSES = (
    frozenset(" ".join(_WORDS[name]).split()) for name in ("blocks", "ignored_tags", "ignored_classes")
)
_IGNORED_ROLES = frozenset(["navigation", "banner", "contentinfo", "search", "dialog", "alertdialog", "tooltip"])
_CONTENT_ASIDE = re.compile(r"admonition|callout|alert|note|tip|warning|caution|danger|topic|aside")
_INVISIBLE_STYLE = re.compile(r"display:none|visibility:hidden|font-size:0(?:[a-z%]*)(?=;|!|$)")
_PERMALINK_SIGNS = frozenset(["", "¶", "#", "§", "🔗", "↩"])
_CONTENT_SELECTORS = (
    *(".theme-doc-markdown", "article.md-content__inner", "article.bd-article", "#furo-main-content", "div.vp-doc"),
    *("[itemprop=articleBody]", "div.body", "article", "main", "[role=main]", ".md-content", "div.document"),
)
_TITLE_SEPARATORS = {"docusaurus": " | ", "mkdocs": " - "}
_LONG_PAGE = 1_000
_PANEL_SELECTOR = "[role=tabpanel], .tabbed-block, .vp-code-group > .blocks > div"
_LANGUAGE = re.compile(r"(?:^|\s)(?:(?:language|lang|highlight)-(?:source-)?|brush:\s*)([\w+#.-]+)")
_NOT_AROUND_CODE = frozenset(["article", "body", "html", "li", "main", "section", "dd"])
_NO_LANGUAGE = frozenset(["default", "none", "text", "plaintext", "undefined", "source"])


def find_content(tree: LexborHTMLParser) -> LexborNode | None:
    """The element that the generator marks as the content, or None if no known selector matches."""
    for selector in _CONTENT_SELECTORS:
        found = tree.css(selector)
        if len(found) == 1 and found[0].text(strip=True) and not _is_teaser(found[0], tree):
            return found[0]
    return None


def _is_teaser(article: LexborNode, tree: LexborHTMLParser) -> bool:
    """Whether an article is only a small part of a long page."""
    main = tree.css_first("main") if article.tag == "article" else None
    words = len(main.text(strip=True)) if main is not None else 0
    return words > _LONG_PAGE and 4 * len(article.text(strip=True)) < words


def document_title(tree: LexborHTMLParser) -> str:
    node = tree.css_first("title")
    return " ".join(node.text().split()) if node is not None else ""


def page_title(tree: LexborHTMLParser) -> str:
    """The page title without the site name, if the generator is known to append the site name.

    It can differ from the top heading, and equals the title of the same page when it is read from its source file.
    """
    generator = tree.css_first("meta[name=generator]")
    name = ((generator.attributes.get("content") or "") if generator is not None else "").lower()
    for known, mark in _TITLE_SEPARATORS.items():
        if name.startswith(known):
            return document_title(tree).rpartition(mark)[0]
    return ""


def is_hidden_or_navigation(node: LexborNode) -> bool:
    """Whether an element is invisible, or repeated on every page of the site."""
    tag, attributes = node.tag or "", node.attributes
    if tag in _IGNORED_TAGS:
        return True
    if not attributes:
        return tag == "aside"
    classes = set((attributes.get("class") or "").split())
    if classes & _IGNORED_CLASSES or "data-footnote-ref" in attributes or attributes.get("role") == "doc-noteref":
        return True
    if attributes.get("role") in _IGNORED_ROLES or "data-copybutton" in attributes:
        return True
    if tag == "aside":
        return not _CONTENT_ASIDE.search(attributes.get("class") or "") and not _is_sphinx_sidebar(node)
    return _is_hidden(attributes) or (tag == "a" and _is_permalink(node, attributes))


def _is_sphinx_sidebar(aside: LexborNode) -> bool:
    """Whether it is a Sphinx sidebar, which is part of the text and has a title."""
    first = aside.css_first("p, div")
    return first is not None and "sidebar-title" in _classes(first)


def _classes(node: LexborNode) -> list[str]:
    return (node.attributes.get("class") or "").split()


def _is_hidden(attributes: dict[str, str | None]) -> bool:
    if "hidden" in attributes:
        # Inactive tab panels are hidden until their tab is clicked, but they are text of the page.
        return attributes.get("role") != "tabpanel"
    style = (attributes.get("style") or "").replace(" ", "").lower()
    return _INVISIBLE_STYLE.search(style) is not None


def _is_permalink(node: LexborNode, attributes: dict[str, str | None]) -> bool:
    """Whether it is a permalink: a sign after a heading that links to the heading."""
    if not (attributes.get("href") or "").startswith("#"):
        return False
    return attributes.get("aria-hidden") == "true" or node.text(strip=True).strip("\u200b") in _PERMALINK_SIGNS


def find_language(pre: LexborNode) -> str:
    """The language in a class of the code element or of an element around it."""
    node: LexborNode | None = pre.css_first("code") or pre
    while node is not None and node.tag not in _NOT_AROUND_CODE:
        match = _LANGUAGE.search(node.attributes.get("class") or "")
        if match and match[1] not in _NO_LANGUAGE:
            return match[1]
        node = node.parent
    return ""


def find_anchor(heading: LexborNode, firsts: dict[int, int]) -> str:
    """The id for links to a heading: its own id, an id inside it, or the id of the section that it begins.

    `firsts` caches the first heading of each section, so that a long section is searched only once.
    """
    if heading.attributes.get("id"):
        return heading.attributes["id"] or ""
    inner = heading.css_first("a[id], span[id], a[name]")
    if inner is not None:
        return inner.attributes.get("id") or inner.attributes.get("name") or ""
    section = _find_section(heading)
    if section is None:
        return ""
    if section.mem_id not in firsts:
        first = section.css_first("h1, h2, h3, h4, h5, h6")
        firsts[section.mem_id] = first.mem_id if first is not None else 0
    return (section.attributes.get("id") or "") if firsts[section.mem_id] == heading.mem_id else ""


def _find_section(heading: LexborNode) -> LexborNode | None:
    parent = heading.parent
    if parent is not None and parent.tag == "header":
        parent = parent.parent
    is_section = parent is not None and (parent.tag == "section" or "section" in _classes(parent))
    return parent if is_section else None


def find_labelled_panels(tabs: LexborNode) -> list[tuple[LexborNode, str]]:
    """The panels of a tab list, each with the label of its tab."""
    labels = [" ".join(node.text().split()) for node in tabs.css("[role=tab], label")]
    around = tabs.parent
    panels: list[LexborNode] = []
    for _ in range(3):
        if around is None or panels:
            break
        panels = [node for node in around.css(_PANEL_SELECTOR) if not _has_outer_panel(node, around)]
        around = around.parent
    return list(zip(panels, labels, strict=False)) if len(panels) == len(labels) else []


def _has_outer_panel(panel: LexborNode, around: LexborNode) -> bool:
    """Whether a panel is inside another panel below `around`."""
    node = panel.parent
    while node is not None and node.mem_id != around.mem_id:
        if node.attributes.get("role") == "tabpanel" or "tabbed-block" in _classes(node):
            return True
        node = node.parent
    return False


def is_tab_list(node: LexborNode) -> bool:
    classes, around = _classes(node), node.parent
    if node.attributes.get("role") == "tablist" or "tabbed-labels" in classes:
        return True
    return "tabs" in classes and around is not None and "vp-code-group" in _classes(around)


_MIN_SHARE = 0.8
"""The share of its parent's words that a child must contain to replace the parent."""
_MIN_WORDS = 20
_BOILERPLATE_NAME = re.compile(
    r"(?:^|[-_\s])(?:header|top|logo|nav|navbar|navigation|menu|sidebar|side-?bar|footer|foot|breadcrumbs?|cookies?|consent|gdpr|banner"
    r"|masthead|toc|pagination|pager|share|sharing|social|comments?|related|advert\w*|ads?|promo|newsletter|subscribe)"
    r"(?:$|[-_\s])",
    re.I,
)
"""Class names and ids of boilerplate elements on handwritten pages."""
_CONTAINERS = frozenset(["div", "section", "td", "center", "article", "table", "tbody", "tr"])
_UNCOUNTED = frozenset(["a", "nav", "footer", "script", "style", "form", "select", "button", "noscript", "template"])
_BOILERPLATE_TAGS = frozenset(["div", "section", "ul", "ol", "aside", "td", "p", "table", "header", "center"])


def find_densest_element(body: LexborNode) -> LexborNode:
    """The innermost element that contains most of the words outside of links and menus."""
    words_below: dict[int, int] = {}
    _count_words(body, words_below)
    densest = body
    while True:
        heaviest = max(
            (child for child in densest.iter(include_text=False) if child.tag in _CONTAINERS),
            key=lambda child: words_below.get(child.mem_id, 0),
            default=None,
        )
        if heaviest is None or words_below.get(heaviest.mem_id, 0) < max(
            _MIN_WORDS, _MIN_SHARE * words_below.get(densest.mem_id, 0)
        ):
            return densest
        densest = heaviest


def is_boilerplate(node: LexborNode) -> bool:
    """Whether an element has the name of a menu or footer, or consists mostly of links."""
    return _has_boilerplate_name(node) or _is_menu(node)


def _is_menu(node: LexborNode) -> bool:
    links = node.css("a[href]") if node.tag in ("ul", "ol", "div", "p", "td") else []
    if len(links) < 4 or node.css_first("pre, h1, h2, h3") is not None:
        return False
    linked = sum(len(link.text(strip=True)) for link in links)
    return linked > 0.8 * len(node.text(strip=True))


def _count_words(root: LexborNode, words_below: dict[int, int]) -> None:
    """Count the words below each element, except those in links and boilerplate."""
    order: list[LexborNode] = []
    pending = [root]
    while pending:
        node = pending.pop()
        order.append(node)
        for child in node.iter(include_text=True):
            if child.is_text_node:
                words = len((child.text_content or "").split())
                words_below[node.mem_id] = words_below.get(node.mem_id, 0) + words
            elif child.is_element_node and child.tag not in _UNCOUNTED and not _has_boilerplate_name(child):
                pending.append(child)
    for node in reversed(order):
        if node.mem_id != root.mem_id and node.parent is not None:
            words_below[node.parent.mem_id] = words_below.get(node.parent.mem_id, 0) + words_below.get(node.mem_id, 0)


def _has_boilerplate_name(node: LexborNode) -> bool:
    if node.tag not in _BOILERPLATE_TAGS:
        return False
    named = f"{node.attributes.get('id') or ''} {node.attributes.get('class') or ''}"
    return bool(_BOILERPLATE_NAME.search(named)) and node.css_first("h1, pre") is None
