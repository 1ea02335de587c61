"""Addresses: where a file of the book can be opened, once it is published."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING
from urllib.parse import quote

from bythebook.sources.projects import Style

if TYPE_CHECKING:
    from pathlib import PurePosixPath

_NUMBERED = re.compile(r"^\d+\s*[-_.]+\s*(?=[^-_.\s])")
_DATE_OR_VERSION = re.compile(r"\d+[-_.]\d+")
_PUBLISHED_AS_THEY_ARE = frozenset([".html", ".htm", ".pdf", ".epub", ".docx"])
_ASCIIDOC = frozenset([".adoc", ".asciidoc"])
_UNESCAPED = "/-._~!$&'()*+,;=:@"


def address(path: PurePosixPath, *, site_url: str, style: Style, slug: str = "", name: str = "") -> str:
    """The URL of the page made from `path`, a path inside the book.

    `slug` and `name` are what the page says about itself in its front matter (`slug` and `id`).
    """
    return joined(site_url, _route(path, style, slug, name))


def joined(site_url: str, route: str) -> str:
    """The URL of a route of a site."""
    return site_url.rstrip("/") + quote(route, safe=_UNESCAPED)


def is_index(path: PurePosixPath) -> bool:
    """Whether a file stands for its folder by its name alone."""
    return path.stem.lower() in {"index", "readme"}


def without_number(name: str) -> str:
    """A file or folder name without the number that only sorts it: `01-intro` is `intro`; a date stays."""
    return name if _DATE_OR_VERSION.match(name) else _NUMBERED.sub("", name, count=1)


def _route(path: PurePosixPath, style: Style, slug: str, name: str) -> str:
    if path.suffix.lower() in _PUBLISHED_AS_THEY_ARE:
        return f"/{path}"
    if style is Style.MKDOCS:
        folder = path.parent if is_index(path) else path.with_suffix("")
        return _joined(str(folder)).rstrip("/") + "/"
    if style is Style.SPHINX or (style is Style.PLAIN and path.suffix.lower() in _ASCIIDOC):
        return _joined(str(path.with_suffix(".html")))
    if style is Style.MDBOOK:
        return _joined(str(path.with_name("index.html") if path.stem == "README" else path.with_suffix(".html")))
    if style is Style.DOCUSAURUS:
        return _docusaurus_route(path, slug, name)
    return _joined(str(path.parent if is_index(path) else path.with_suffix("")))


def _docusaurus_route(path: PurePosixPath, slug: str, name: str) -> str:
    folders = [without_number(part) for part in path.parent.parts]
    stem = without_number(path.stem)
    own_folder = bool(folders) and path.stem.lower() == path.parent.name.lower()
    if slug:
        return _joined(*([] if slug.startswith("/") else folders), slug.strip("/"))
    if is_index(path) or own_folder:
        return _joined(*folders)
    return _joined(*folders, name or stem)


def _joined(*parts: str) -> str:
    # A slug may say `../elsewhere`; it never climbs above the site.
    return posixpath.normpath("/" + "/".join(parts)).replace("//", "/")
