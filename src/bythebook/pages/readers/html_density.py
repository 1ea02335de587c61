"""Density: where the words of a page are, if it does not mark its content in any way we know."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

_SHARE = 0.8
"""The part of the running text that an element must hold to be taken for its parent."""
_FEWEST_WORDS = 20
_NAMES = re.compile(
    r"(?:^|[-_\s])(?:header|top|logo|nav|navbar|navigation|menu|sidebar|side-?bar|footer|foot|breadcrumbs?|cookies?|consent|gdpr|banner"
    r"|masthead|toc|pagination|pager|share|sharing|social|comments?|related|advert\w*|ads?|promo|newsletter|subscribe)"
    r"(?:$|[-_\s])",
    re.I,
)
"""How people who write their own pages call what surrounds the text."""
_CONTAINERS = frozenset(["div", "section", "td", "center", "article", "table", "tbody", "tr"])
_WEIGHTLESS = frozenset(["a", "nav", "footer", "script", "style", "form", "select", "button", "noscript", "template"])
_SURROUNDINGS = frozenset(["div", "section", "ul", "ol", "aside", "td", "p", "table", "header", "center"])


def densest(body: LexborNode) -> LexborNode:
    """The innermost element that holds most of the running text: text that is not a link and not in a menu."""
    weights: dict[int, int] = {}
    _weigh(body, weights)
    here = body
    while True:
        heaviest = max(
            (child for child in here.iter(include_text=False) if child.tag in _CONTAINERS),
            key=lambda child: weights.get(child.mem_id, 0),
            default=None,
        )
        if heaviest is None or weights.get(heaviest.mem_id, 0) < max(
            _FEWEST_WORDS, _SHARE * weights.get(here.mem_id, 0)
        ):
            return here
        here = heaviest


def is_surrounding(node: LexborNode) -> bool:
    """Whether an element is named like a menu or a footer, or consists of little but links."""
    if node.tag not in _SURROUNDINGS:
        return False
    if _is_named_so(node):
        return True
    return node.tag in ("ul", "ol", "div", "p", "td") and _is_menu(node)


def _is_menu(node: LexborNode) -> bool:
    links = node.css("a[href]")
    if len(links) < 4 or node.css_first("pre, h1, h2, h3") is not None:
        return False
    linked = sum(len(link.text(strip=True)) for link in links)
    return linked > 0.8 * len(node.text(strip=True))


def _weigh(root: LexborNode, weights: dict[int, int]) -> None:
    """Count the words below each element, but for those of links and of what is named like a menu."""
    order: list[LexborNode] = []
    waiting = [root]
    while waiting:
        node = waiting.pop()
        order.append(node)
        for child in node.iter(include_text=True):
            if child.is_text_node:
                words = len((child.text_content or "").split())
                weights[node.mem_id] = weights.get(node.mem_id, 0) + words
            elif child.is_element_node and child.tag not in _WEIGHTLESS and not _is_named_so(child):
                waiting.append(child)
    for node in reversed(order):
        if node.mem_id != root.mem_id and node.parent is not None:
            weights[node.parent.mem_id] = weights.get(node.parent.mem_id, 0) + weights.get(node.mem_id, 0)


def _is_named_so(node: LexborNode) -> bool:
    if node.tag not in _SURROUNDINGS:
        return False
    named = f"{node.attributes.get('id') or ''} {node.attributes.get('class') or ''}"
    return bool(_NAMES.search(named)) and node.css_first("h1, pre") is None
