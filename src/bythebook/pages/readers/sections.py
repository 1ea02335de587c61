"""Breadcrumbs: the sections a published page stands in, as the page itself names them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser

_TRAILS = (
    ".theme-doc-breadcrumbs li",
    "nav[aria-label=breadcrumb i] li",
    "nav[aria-label=breadcrumbs i] li",
    "ul.wy-breadcrumbs li",
    "ol.breadcrumb li",
    "ul.bd-breadcrumbs li",
    ".md-path__item",
)
_HOME = re.compile(r"home|home page|start|docs|documentation|", re.I)
_LONGEST, _MOST = 120, 8


def trail(tree: LexborHTMLParser) -> tuple[str, ...]:
    """The names of the sections from the outermost to the one the page is in, without home and the page itself."""
    for selector in _TRAILS:
        items = tree.css(selector)
        if len(items) > 1:
            names = [" ".join(item.text(separator=" ").split()) for item in items[:-1]]
            return tuple(name for name in names if not _HOME.fullmatch(name) and len(name) <= _LONGEST)[:_MOST]
    return ()
