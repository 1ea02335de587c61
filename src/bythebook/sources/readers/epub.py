"""EPUB: a book as a zip of XHTML files. Each file of its reading order is a page of its own."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import unquote

from bythebook.sources import Unreadable
from bythebook.sources.document import Draft, clean
from bythebook.sources.readers import html
from bythebook.sources.readers.zip_archive import Archive

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from xml.etree.ElementTree import Element

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_FONTS_ONLY = frozenset(["http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC"])
_PAGES = frozenset(["application/xhtml+xml", "text/html", "application/x-dtbook+xml", ""])
_HEAD = 100_000
"""Bytes at the beginning of a file in which a page has its first word, or is a picture."""
_EMPTY_ELEMENT = re.compile(r"<([A-Za-z][\w:.-]*)((?:\s[^<>]*?)?)/>")
_TRULY_EMPTY = frozenset(
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
    """What the table of contents calls a file, by its path inside the archive."""


def chapters(file: Path) -> list[str]:
    """The files with text in reading order. Raises Unreadable."""
    with Archive(file) as archive:
        found = [path for path in _book_of(archive).spine if _is_text(archive, path)]
    if not found:
        raise Unreadable("there is no text in it")
    return found


def read(file: Path, *, part: str) -> Draft:
    """One file of the book. Raises Unreadable."""
    with Archive(file) as archive:
        book = _opened(str(file), file.stat().st_mtime_ns)
        source = _decoded(archive.content(part))
    draft = html.read(_as_html(source))
    return Draft(_title(book, part, draft), draft.parts, module_name=book.title)


@lru_cache(maxsize=1)
def _opened(file: str, _modified: int) -> _Book:
    """The book whose chapters are read one after another."""
    from pathlib import Path

    with Archive(Path(file)) as archive:
        return _book_of(archive)


def _title(book: _Book, part: str, draft: Draft) -> str:
    """As the table of contents has it, without the number it may put in front of the page's own heading."""
    named = ""
    for path in book.spine:
        named = book.titles.get(path, named)
        if path == part:
            break
    heading = next((p.text for p in draft.parts if p.level), "")
    return heading if heading and (not named or heading in named) else named or draft.title


def _book_of(archive: Archive) -> _Book:
    if _CONTAINER not in archive:
        raise Unreadable("it is no EPUB: META-INF/container.xml is missing inside it; save it anew")
    _refuse_locked(archive)
    root = next((e.get("full-path") for e in _all(archive.xml(_CONTAINER), "rootfile")), None)
    if not root:
        raise Unreadable("META-INF/container.xml inside it names no book; save it anew")
    package = archive.xml(root)
    items = {item.get("id", ""): item for item in _all(package, "item")}
    spine = tuple(dict.fromkeys(_spine(package, items, root)))
    titles: dict[str, str] = {}
    for path in _tables_of_contents(package, items, root):
        if path in archive:
            titles = _ncx_titles(archive, path) if path.endswith(".ncx") else _nav_titles(archive, path)
            if titles:
                break
    title = next((clean("".join(e.itertext())) for e in _all(package, "title")), "")
    return _Book(title.replace("\n", " "), spine, titles)


def _refuse_locked(archive: Archive) -> None:
    if _ENCRYPTION in archive:
        methods = {e.get("Algorithm") for e in _all(archive.xml(_ENCRYPTION), "EncryptionMethod")}
        if methods - _FONTS_ONLY:
            raise Unreadable("it is locked to a reading program (DRM); ask for a copy that is not")


def _spine(package: Element, items: dict[str, Element], root: str) -> Iterator[str]:
    for reference in _all(package, "itemref"):
        item = items.get(reference.get("idref", ""))
        if item is None or reference.get("linear") == "no" or "nav" in (item.get("properties") or "").split():
            continue
        if item.get("media-type", "") in _PAGES:
            yield _inside(root, item.get("href", ""))


def _tables_of_contents(package: Element, items: dict[str, Element], root: str) -> Iterator[str]:
    """The newer kind first; many books have both."""
    for item in items.values():
        if "nav" in (item.get("properties") or "").split():
            yield _inside(root, item.get("href", ""))
    named = next((spine.get("toc", "") for spine in _all(package, "spine")), "")
    for item in items.values():
        if item.get("id") == named or item.get("media-type") == "application/x-dtbncx+xml":
            yield _inside(root, item.get("href", ""))


def _ncx_titles(archive: Archive, path: str) -> dict[str, str]:
    titles: dict[str, str] = {}
    for point in _all(archive.xml(path), "navPoint"):
        target = next((e.get("src", "") for e in _all(point, "content")), "")
        text = next(("".join(e.itertext()) for e in _all(point, "text")), "")
        _name(titles, _inside(path, target), text)
    return titles


def _nav_titles(archive: Archive, path: str) -> dict[str, str]:
    from selectolax.lexbor import LexborHTMLParser

    titles: dict[str, str] = {}
    tree = LexborHTMLParser(_as_html(_decoded(archive.content(path))))
    # A book may have lists of its pages and of its pictures too; the contents come first.
    nav = tree.css_first("nav[epub\\:type~=toc], nav[role=doc-toc], nav")
    for link in nav.css("a[href]") if nav is not None else []:
        _name(titles, _inside(path, link.attributes.get("href") or ""), link.text())
    return titles


def _name(titles: dict[str, str], path: str, text: str) -> None:
    """The first entry that leads into a file names it; further ones name its sections."""
    text = clean(text).replace("\n", " ")
    if text:
        titles.setdefault(path, text)


def _inside(base: str, href: str) -> str:
    """The path in the archive that `href` leads to from the file `base`; one that leads out of it leads nowhere."""
    path = unquote(href.partition("#")[0])
    return posixpath.normpath(posixpath.join(posixpath.dirname(base), path)).lstrip("/")


def _all(root: Element, name: str) -> Iterator[Element]:
    """The elements of this name, in whichever namespace."""
    return (e for e in root.iter() if isinstance(e.tag, str) and e.tag.rpartition("}")[2] == name)


def _is_text(archive: Archive, path: str) -> bool:
    """Whether there are words on a page, and not only a picture. Reading it will say why it cannot be unpacked."""
    try:
        start = archive.head(path, _HEAD)
        source = _decoded(start)
    except Unreadable:
        return True
    return len(start) == _HEAD or bool(_LETTER.search(_NO_TEXT.sub(" ", source)))


def _decoded(data: bytes) -> str:
    declared = _DECLARED.match(data)
    encoding = declared[1].decode("ascii").lower() if declared else "utf-8"
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        encoding = "utf-16"
    try:
        return data.decode("utf-8-sig" if encoding in ("utf-8", "utf8") else encoding)
    except (UnicodeDecodeError, LookupError) as exc:
        raise Unreadable(f"it is not {encoding.upper()}, as it says; save it as UTF-8") from exc


def _as_html(source: str) -> str:
    """XHTML as a browser reads HTML: there only some elements can be closed where they open."""
    return _EMPTY_ELEMENT.sub(lambda m: m[0] if m[1].lower() in _TRULY_EMPTY else f"<{m[1]}{m[2]}></{m[1]}>", source)
