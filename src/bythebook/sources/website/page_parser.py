"""A look at a page: what it says about itself, where it leads, and what of it a reader sees.

Breadcrumbs: the sections a published page stands in, as the page itself names them.
"""

from __future__ import annotations

import codecs
import hashlib
import json
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from bythebook.sources import Unreadable
from bythebook.sources.website import Said
from bythebook.sources.website.urls import Location, Refused, locate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from selectolax.lexbor import LexborHTMLParser

    from bythebook.sources.document import Draft


HTML = frozenset(["text/html", "application/xhtml+xml", ""])
TEXT = {"text/plain": ".txt", "text/markdown": ".md", "text/x-markdown": ".md"}

READER = 1
"""Raised when the same page is looked at in another way than before."""
MOST_LINKS = 5_000
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16le"), (codecs.BOM_UTF16_BE, "utf-16be"))
_META_CHARSET = re.compile(rb"<meta[^>]{0,500}?charset\s*=\s*[\"']?\s*([\w-]{2,40})", re.I)
_ENCODING = re.compile(
    r"utf-?8|us-ascii|utf-16(le|be)?|iso-?8859-\d{1,2}|latin-?1|windows-\d{3,4}|cp125\d|koi8-[ru]|shift[_-]jis"
    r"|euc-(jp|kr)|gbk|gb2312|gb18030|big5",
    re.I,
)
_REFRESH = re.compile(r"\s*(\d{1,3})(?:\.\d*)?\s*[;,]\s*url\s*=\s*['\"]?\s*([^'\"\s]+)", re.I)
_LONGEST_REFRESH = 5
"""Seconds after which a page that goes elsewhere by itself was still meant to be read."""
_NO_ADDRESS = ("javascript:", "mailto:", "tel:", "data:", "#", "about:", "blob:")


@dataclass(frozen=True, slots=True)
class Look:
    """What there is to know of a page that came as HTML or text."""

    draft: Draft
    said: Said
    trail: tuple[str, ...] = ()
    """The sections it stands in, as its breadcrumbs name them, without itself."""


def look_at(body: bytes, *, at: Location, media_type: str, charset: str, robots: str) -> Look:
    """Read what came from an address. Raises Unreadable, with the reason, for what is no page."""
    from bythebook.sources import readers
    from bythebook.sources.projects import Style

    if media_type in TEXT:
        draft = readers.read(_decoded(body, charset), suffix=TEXT[media_type], style=Style.PLAIN)
        look = Look(draft, Said(_hashed(draft, ()), draft.title, unlisted=_forbids(robots, "noindex")))
    elif media_type in HTML:
        look = _look_at_html(_decoded(body, charset), at=at, robots=robots)
    else:
        raise Unreadable(f"it is {media_type[:60]}, not a page")
    if not look.draft.parts and not look.said.refresh:
        raise Unreadable("there is no text in it")
    return look


def _look_at_html(text: str, *, at: Location, robots: str) -> Look:
    from bythebook.sources.readers import html, understanding

    with understanding():
        tree = html.parse(text)
        draft = html.draft(tree)
    headings = trail(tree)
    base = _first_location(tree, "base[href]", at) or at
    told = ", ".join([robots, *_metas(tree, "robots"), *_metas(tree, "bythebook")]).lower()
    said = Said(
        _hashed(draft, headings),
        draft.title,
        canonical=str(_first_location(tree, "link[rel~=canonical][href]", base) or ""),
        refresh=str(_refresh(tree, base) or ""),
        unlisted=_forbids(told, "noindex"),
        links=() if _forbids(told, "nofollow") else tuple(map(str, _links(tree, base))),
    )
    return Look(draft, said, headings)


def _hashed(draft: Draft, trail: tuple[str, ...]) -> str:
    parts = [[part.kind, part.text, part.level, part.anchor] for part in draft.parts]
    seen = json.dumps([READER, draft.title, parts, trail])
    return hashlib.sha256(seen.encode("utf-8", "surrogatepass")).hexdigest()


def _decoded(body: bytes, charset: str) -> str:
    """The text of a page as a browser decodes it: by its mark, by what the server or the page says, or as UTF-8."""
    marked = next((name for mark, name in _BOMS if body.startswith(mark)), "")
    written = _META_CHARSET.search(body[:4096])
    named = [marked, charset, written[1].decode("ascii") if written else ""]
    encoding = next((name for name in named if _ENCODING.fullmatch(name)), "utf-8")
    text = body.decode(_as_browsers_do(encoding), "replace").removeprefix("\ufeff")
    if "\x00" in text[:1024]:
        raise Unreadable("it is not text")
    return text.replace("\x00", "\ufffd")


def _as_browsers_do(encoding: str) -> str:
    """Pages said to be Latin-1 have long been written on Windows."""
    try:
        name = codecs.lookup(encoding).name
    except LookupError:
        return "utf-8"
    return "cp1252" if name in ("iso8859-1", "ascii") else name


def _metas(tree: LexborHTMLParser, name: str) -> list[str]:
    return [node.attributes.get("content") or "" for node in tree.css(f'meta[name="{name}" i]')]


def _forbids(said: str, what: str) -> bool:
    """Whether directives for robots, perhaps for one of them by name, forbid this to everybody or to us."""
    for directive in said.lower().split(","):
        agent, colon, rule = directive.strip().rpartition(":")
        if rule.strip() in (what, "none") and (not colon or agent.strip() == "bythebook"):
            return True
    return False


def _refresh(tree: LexborHTMLParser, base: Location) -> Location | None:
    for node in tree.css('meta[http-equiv="refresh" i]'):
        match = _REFRESH.match(node.attributes.get("content") or "")
        if match and int(match[1]) <= _LONGEST_REFRESH:
            return _located(match[2], base)
    return None


def _first_location(tree: LexborHTMLParser, selector: str, base: Location) -> Location | None:
    node = tree.css_first(selector)
    return _located(node.attributes.get("href") or "", base) if node is not None else None


def _located(target: str, base: Location) -> Location | None:
    try:
        return locate(target, base=base) if target.strip() else None
    except Refused:
        return None


def _links(tree: LexborHTMLParser, base: Location) -> Iterator[Location]:
    """Where the page leads, in its own order, each address once."""
    seen: set[str] = set()
    folder = replace(base, path=base.path.rpartition("/")[0] + "/", query="")
    for node in tree.css("a[href], area[href], link[rel~=next][href]"):
        target = (node.attributes.get("href") or "").strip()
        rel = (node.attributes.get("rel") or "").lower().split()
        if target in seen or "nofollow" in rel or target.lower().startswith(_NO_ADDRESS):
            continue
        seen.add(target)
        if len(seen) > MOST_LINKS:
            return
        location = _located(target, base) if target.startswith("?") else _located_from(target, folder)
        if location:
            yield location


@lru_cache(maxsize=20_000)
def _located_from(target: str, folder: Location) -> Location | None:
    """The same menu is on every page of a folder, and its links lead to the same places."""
    return _located(target, folder)


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
