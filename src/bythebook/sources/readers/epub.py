"""EPUB: a zip archive of XHTML files. Each file in the reading order is one page."""

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote
from xml.etree.ElementTree import Element

from bythebook.sources import Unreadable
from bythebook.sources.document import ParsedDocument, normalize_text
from bythebook.sources.readers import html
from bythebook.sources.readers.zip_archive import ZipArchive

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_FONTS_ONLY = frozenset(["http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC"])
_PAGE_MEDIA_TYPES = frozenset(["application/xhtml+xml", "text/html", "application/x-dtbook+xml", ""])
_HEAD_BYTES = 100_000
"""Bytes in which the first word of a page must occur. Otherwise the page is only an image."""
_SELF_CLOSING = re.compile(r"<([A-Za-z][\w:.-]*)((?:\s[^<>]*?)?)/>")
_VOID_ELEMENTS = frozenset(
    "area base br col embed hr img input link meta param source track wbr".split(),
)
_NO_TEXT = re.compile(
    r"<head\b.*?</head\s*>|<(script|style)\b.*?</\1\s*>|<!--.*?-->|<[^>]*>", re.DOTALL | re.IGNORECASE
)
_LETTER = re.compile(r"[^\W_]")
_DECLARED = re.compile(rb"""^\s*<\?xml[^>]*?encoding\s*=\s*["']([A-Za-z0-9._-]+)""")


@dataclass(frozen=True, slots=True)
class _Book:
    title: str
    spine: tuple[str, ...]
    titles: dict[str, str]
    """The titles in the table of contents, by the path inside the archive."""


def list_chapters(file: Path) -> list[str]:
    """The paths of the files with text, in reading order. Raises Unreadable."""
    with ZipArchive(file) as archive:
        found = [path for path in _parse_book(archive).spine if _has_text(archive, path)]
    if not found:
        raise Unreadable("there is no text in it")
    return found


def read(file: Path, *, part: str) -> ParsedDocument:
    """One file of the book. Raises Unreadable."""
    with ZipArchive(file) as archive:
        book = _open_book(str(file), file.stat().st_mtime_ns)
        source = _decode(archive.content(part))
    draft = html.read(_xhtml_to_html(source))
    return ParsedDocument(_find_title(book, part, draft), draft.parts, module_name=book.title)


@lru_cache(maxsize=1)
def _open_book(file: str, _modified: int) -> _Book:
    """The parsed book. Chapters of one book are read in sequence, so one entry is enough."""
    with ZipArchive(Path(file)) as archive:
        return _parse_book(archive)


def _find_title(book: _Book, part: str, draft: ParsedDocument) -> str:
    """The title in the table of contents, or the page's heading if that title only adds a number to it."""
    named = ""
    for path in book.spine:
        named = book.titles.get(path, named)
        if path == part:
            break
    heading = next((p.text for p in draft.parts if p.level), "")
    return heading if heading and (not named or heading in named) else named or draft.title


def _parse_book(archive: ZipArchive) -> _Book:
    if _CONTAINER not in archive:
        raise Unreadable("it is not an EPUB: META-INF/container.xml is missing inside it; save it again")
    _check_encryption(archive)
    root = next((e.get("full-path") for e in _iterate_by_name(archive.xml(_CONTAINER), "rootfile")), None)
    if not root:
        raise Unreadable("META-INF/container.xml inside it names no book; save it again")
    package = archive.xml(root)
    items = {item.get("id", ""): item for item in _iterate_by_name(package, "item")}
    spine = tuple(dict.fromkeys(_parse_spine(package, items, root)))
    titles: dict[str, str] = {}
    for path in _find_tables_of_contents(package, items, root):
        if path in archive:
            for target, text in _parse_ncx(archive, path) if path.endswith(".ncx") else _parse_nav(archive, path):
                # Only the first entry for a file is its title; later ones are titles of its sections.
                if name := normalize_text(text).replace("\n", " "):
                    titles.setdefault(_resolve_path(path, target), name)
            if titles:
                break
    title = next((normalize_text("".join(e.itertext())) for e in _iterate_by_name(package, "title")), "")
    return _Book(title.replace("\n", " "), spine, titles)


def _check_encryption(archive: ZipArchive) -> None:
    if _ENCRYPTION in archive:
        methods = {e.get("Algorithm") for e in _iterate_by_name(archive.xml(_ENCRYPTION), "EncryptionMethod")}
        if methods - _FONTS_ONLY:
            raise Unreadable("it is locked to a reading program (DRM); ask for a copy that is not")


def _parse_spine(package: Element, items: dict[str, Element], root: str) -> Iterator[str]:
    for reference in _iterate_by_name(package, "itemref"):
        item = items.get(reference.get("idref", ""))
        if item is None or reference.get("linear") == "no" or "nav" in (item.get("properties") or "").split():
            continue
        if item.get("media-type", "") in _PAGE_MEDIA_TYPES:
            yield _resolve_path(root, item.get("href", ""))


def _find_tables_of_contents(package: Element, items: dict[str, Element], root: str) -> Iterator[str]:
    """Paths of the tables of contents: EPUB 3 first, then NCX. Many books have both."""
    for item in items.values():
        if "nav" in (item.get("properties") or "").split():
            yield _resolve_path(root, item.get("href", ""))
    named = next((spine.get("toc", "") for spine in _iterate_by_name(package, "spine")), "")
    for item in items.values():
        if item.get("id") == named or item.get("media-type") == "application/x-dtbncx+xml":
            yield _resolve_path(root, item.get("href", ""))


def _parse_ncx(archive: ZipArchive, path: str) -> Iterator[tuple[str, str]]:
    """The target and the text of each entry."""
    for point in _iterate_by_name(archive.xml(path), "navPoint"):
        target = next((e.get("src", "") for e in _iterate_by_name(point, "content")), "")
        yield target, next(("".join(e.itertext()) for e in _iterate_by_name(point, "text")), "")


def _parse_nav(archive: ZipArchive, path: str) -> Iterator[tuple[str, str]]:
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(_xhtml_to_html(_decode(archive.content(path))))
    # A navigation document may also list pages and images. The table of contents comes first.
    nav = tree.css_first("nav[epub\\:type~=toc], nav[role=doc-toc], nav")
    for link in nav.css("a[href]") if nav is not None else []:
        yield link.attributes.get("href") or "", link.text()


def _resolve_path(base: str, href: str) -> str:
    """The path of `href` in the archive, relative to the file `base`. It cannot leave the archive."""
    path = unquote(href.partition("#")[0])
    return posixpath.normpath(posixpath.join(posixpath.dirname(base), path)).lstrip("/")


def _iterate_by_name(root: Element, name: str) -> Iterator[Element]:
    """The elements with this local name, in any namespace."""
    return (e for e in root.iter() if isinstance(e.tag, str) and e.tag.rpartition("}")[2] == name)


def _has_text(archive: ZipArchive, path: str) -> bool:
    """Whether a page has words and not only an image. True if it cannot be unpacked: reading it reports the reason."""
    try:
        start = archive.head(path, _HEAD_BYTES)
        source = _decode(start)
    except Unreadable:
        return True
    return len(start) == _HEAD_BYTES or bool(_LETTER.search(_NO_TEXT.sub(" ", source)))


def _decode(data: bytes) -> str:
    declared = _DECLARED.match(data)
    encoding = declared[1].decode("ascii").lower() if declared else "utf-8"
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        encoding = "utf-16"
    try:
        return data.decode("utf-8-sig" if encoding in ("utf-8", "utf8") else encoding)
    except (UnicodeDecodeError, LookupError) as exc:
        raise Unreadable(f"it is not {encoding.upper()}, as it says; save it as UTF-8") from exc


def _xhtml_to_html(source: str) -> str:
    """Expand self-closing elements. An HTML parser honours self-closing syntax only for void elements."""
    return _SELF_CLOSING.sub(lambda m: m[0] if m[1].lower() in _VOID_ELEMENTS else f"<{m[1]}{m[2]}></{m[1]}>", source)
