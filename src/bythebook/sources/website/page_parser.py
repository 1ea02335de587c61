"""Parses a fetched page: its text, its metadata for crawlers, its links and its breadcrumbs."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import webencodings

from bythebook.sources import Unreadable, readers
from bythebook.sources.projects import DEFAULT_SLUGS, Style
from bythebook.sources.readers.sandbox import Sandbox
from bythebook.sources.website import FetchResponse, PageMetadata
from bythebook.sources.website.urls import RejectedUrl, WebUrl, parse_url

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from bythebook.sources.document import ParsedDocument


PARSER_VERSION = 1
"""Incremented when the same page is parsed in another way than before."""
_META_CHARSET = re.compile(rb"<meta[^>]{0,500}?charset\s*=\s*[\"']?\s*([\w-]{2,40})", re.I)
_REFRESH = re.compile(r"\s*(\d{1,3})(?:\.\d*)?\s*[;,]\s*url\s*=\s*['\"]?\s*([^'\"\s]+)", re.I)
_MAX_REFRESH_SECONDS = 5
"""A page that redirects after more seconds is meant to be read."""


@dataclass(frozen=True, slots=True)
class ParsedPage:
    """A page that was served as HTML or text."""

    document: ParsedDocument
    metadata: PageMetadata
    breadcrumbs: tuple[str, ...] = ()
    """The sections that contain the page, from the outermost, without the page itself."""


class PageParser:
    """Parses the pages of a site in a child process with limits."""

    def __init__(self) -> None:
        self._sandbox = Sandbox()

    def close(self) -> None:
        """End the child process. Safe to call from another thread while a page is being parsed."""
        self._sandbox.stop()

    def parse(self, response: FetchResponse) -> ParsedPage:
        """Parse a response. Raises Unreadable with the reason if it is not a page."""
        document_format = readers.MEDIA_TYPES.get(response.media_type)
        if document_format is None:
            raise Unreadable(f"it is {response.media_type[:60]}, not a page")
        if document_format.module == "html":
            page = self._parse_html(response)
        else:
            page = self._parse_text(response, suffix=document_format.suffixes[0])
        if not page.document.parts and not page.metadata.refresh:
            raise Unreadable("there is no text in it")
        return page

    def _parse_text(self, response: FetchResponse, *, suffix: str) -> ParsedPage:
        text = _decode(response.body, response.charset)
        document = self._sandbox.read_text(text, suffix=suffix, style=Style.PLAIN, slugs=DEFAULT_SLUGS)
        is_noindex = _has_directive(response.robots, "noindex")
        return ParsedPage(document, PageMetadata(_hash_content(document, ()), document.title, noindex=is_noindex))

    def _parse_html(self, response: FetchResponse) -> ParsedPage:
        page = self._sandbox.read_web_page(_decode(response.body, response.charset))
        url = parse_url(response.url)
        base = _resolve_link(page.base, url) or url
        robots = ", ".join([response.robots, *page.robots])
        metadata = PageMetadata(
            _hash_content(page.document, page.breadcrumbs),
            page.document.title,
            canonical=str(_resolve_link(page.canonical, base) or ""),
            refresh=str(_find_refresh(page.refreshes, base) or ""),
            noindex=_has_directive(robots, "noindex"),
            links=() if _has_directive(robots, "nofollow") else tuple(map(str, _resolve_links(page.links, base))),
        )
        return ParsedPage(page.document, metadata, page.breadcrumbs)


def _hash_content(document: ParsedDocument, breadcrumbs: tuple[str, ...]) -> str:
    parts = [[part.kind, part.text, part.level, part.anchor] for part in document.parts]
    content = json.dumps([PARSER_VERSION, document.title, parts, breadcrumbs])
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()


def _decode(body: bytes, charset: str) -> str:
    """Decode a page as a browser does: by its byte order mark, the header, the meta element, or as UTF-8."""
    declared = _META_CHARSET.search(body[:4096])
    names = (charset, declared[1].decode("ascii") if declared else "")
    encoding = next(filter(None, map(webencodings.lookup, names)), webencodings.UTF8)
    text, _ = webencodings.decode(body, encoding)
    if "\x00" in text[:1024]:
        raise Unreadable("it is not text")
    return text.replace("\x00", "\ufffd")


def _has_directive(robots: str, directive: str) -> bool:
    """Whether robots directives contain this one, for all crawlers or for this one."""
    for part in robots.lower().split(","):
        agent, colon, rule = part.strip().rpartition(":")
        if rule.strip() in (directive, "none") and (not colon or agent.strip() == "bythebook"):
            return True
    return False


def _find_refresh(contents: Iterable[str], base: WebUrl) -> WebUrl | None:
    for content in contents:
        match = _REFRESH.match(content)
        if match and int(match[1]) <= _MAX_REFRESH_SECONDS:
            return _resolve_link(match[2], base)
    return None


def _resolve_links(targets: Iterable[str], base: WebUrl) -> Iterator[WebUrl]:
    folder = replace(base, path=base.path.rpartition("/")[0] + "/", query="")
    for target in targets:
        # A target that is only a query depends on the page. Any other depends on the folder, and the same menu is on
        # every page of a folder.
        url = _resolve_link(target, base) if target.startswith("?") else _resolve_cached(target, folder)
        if url:
            yield url


@lru_cache(maxsize=20_000)
def _resolve_cached(target: str, folder: WebUrl) -> WebUrl | None:
    return _resolve_link(target, folder)


def _resolve_link(target: str, base: WebUrl) -> WebUrl | None:
    try:
        return parse_url(target, base=base) if target.strip() else None
    except RejectedUrl:
        return None
