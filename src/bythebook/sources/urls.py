"""URLs of published pages: the routes that each generator gives to the files of a book."""

import posixpath
import re
from pathlib import PurePosixPath
from urllib.parse import quote

from bythebook.sources.projects import Style
from bythebook.sources.readers import UrlRule, find_format

_NUMBER_PREFIX = re.compile(r"^\d+\s*[-_.]+\s*(?=[^-_.\s])")
_DATE_OR_VERSION = re.compile(r"\d+[-_.]\d+")
_SAFE_CHARACTERS = "/-._~!$&'()*+,;=:@"


def page_url(path: PurePosixPath, *, site_url: str, style: Style, slug: str = "", name: str = "") -> str:
    """The URL of the page for `path`, a path inside the book.

    `slug` and `name` are the fields `slug` and `id` of the page's front matter.
    """
    return join_url(site_url, _route(path, style, slug, name))


def join_url(site_url: str, route: str) -> str:
    """The URL of a route below the URL of the site."""
    return site_url.rstrip("/") + quote(route, safe=_SAFE_CHARACTERS)


def is_index(path: PurePosixPath) -> bool:
    """Whether the file is the index page of its folder, by its name."""
    return path.stem.lower() in {"index", "readme"}


def strip_number_prefix(name: str) -> str:
    """A file or folder name without its sort number: `01-intro` becomes `intro`. Dates and versions are kept."""
    return name if _DATE_OR_VERSION.match(name) else _NUMBER_PREFIX.sub("", name, count=1)


def _route(path: PurePosixPath, style: Style, slug: str, name: str) -> str:
    document_format = find_format(path.suffix)
    rule = document_format.url_rule if document_format else UrlRule.ROUTE
    if rule is UrlRule.UNCHANGED:
        return f"/{path}"
    if style is Style.MKDOCS:
        folder = path.parent if is_index(path) else path.with_suffix("")
        return _join_path(str(folder)).rstrip("/") + "/"
    if style is Style.SPHINX or (style is Style.PLAIN and rule is UrlRule.HTML_FILE):
        return _join_path(str(path.with_suffix(".html")))
    if style is Style.MDBOOK:
        return _join_path(str(path.with_name("index.html") if path.stem == "README" else path.with_suffix(".html")))
    if style is Style.DOCUSAURUS:
        return _docusaurus_route(path, slug, name)
    return _join_path(str(path.parent if is_index(path) else path.with_suffix("")))


def _docusaurus_route(path: PurePosixPath, slug: str, name: str) -> str:
    folders = [strip_number_prefix(part) for part in path.parent.parts]
    if slug:
        return _join_path(*([] if slug.startswith("/") else folders), slug.strip("/"))
    if is_index(path) or path.stem.lower() == path.parent.name.lower():
        return _join_path(*folders)
    return _join_path(*folders, name or strip_number_prefix(path.stem))


def _join_path(*parts: str) -> str:
    # A slug such as `../elsewhere` must not lead above the root of the site.
    return posixpath.normpath("/" + "/".join(parts)).replace("//", "/")
