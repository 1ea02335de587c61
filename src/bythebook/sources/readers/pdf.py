"""PDF: the text of its pages, each part with the page it stands on."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Any

import pypdf
from pypdf.errors import DependencyError, LimitReachedError, PyPdfError

from bythebook.sources import Kind, Unreadable
from bythebook.sources.document import Draft, clean
from bythebook.sources.readers.pdf_layout import Flow, lines, matrix, piece
from bythebook.sources.readers.pdf_outline import Entry, headings, without_furniture

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from bythebook.sources.readers.pdf_layout import Line, Piece

MOST_PAGES = 20_000
_DEEPEST_ENTRY = 20
_NO_TITLE = re.compile(
    r"(?:untitled.*|microsoft word - .*|.*\.(?:docx?|tex|dvi|pdf|indd|pptx?|html?|md)|\W*)", re.IGNORECASE
)
_NO_FONT = re.compile(r"^[A-Z]{6}\+")


def read(file: Path, *, sign: Callable[[], object] = lambda: None) -> Draft:
    """The document. Gives a sign after each page. Raises Unreadable."""
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    with file.open("rb") as stream:
        if not stream.read(1):
            raise Unreadable("it is empty")
        try:
            reader = _opened(stream)
            found = [_lines(page, sign) for page in _pages(reader)]
            entries = list(_entries(reader, reader.outline, level=1)) if any(found) else []
            title = _said_title(reader)
        except (PyPdfError, LimitReachedError) as exc:
            raise Unreadable(f"it is damaged, or not a PDF ({exc}); print it to a new PDF") from exc
    if not any(found):
        raise Unreadable("it has no text, only pictures of it; run OCR first")
    text = without_furniture(found)
    parts = tuple(Flow(text, headings(text, entries)).parts(sign))
    heading = next((part.text for part in parts if part.kind is Kind.HEADING and part.level == 1), "")
    return Draft(title or heading, parts)


def _opened(stream: Any) -> pypdf.PdfReader:
    reader = pypdf.PdfReader(stream)
    try:
        if reader.is_encrypted and not reader.decrypt(""):
            raise Unreadable("it is encrypted; save a copy without a password")
    except (DependencyError, NotImplementedError) as exc:
        raise Unreadable(f"it is encrypted in a way that is not known here ({exc}); save a copy without") from exc
    return reader


def _pages(reader: pypdf.PdfReader) -> Iterator[pypdf.PageObject]:
    count = len(reader.pages)
    if count > MOST_PAGES:
        raise Unreadable(f"it has {count} pages; at most {MOST_PAGES} are read from one file. Split it")
    for number in range(count):
        yield reader.pages[number]


def _lines(page: pypdf.PageObject, sign: Callable[[], object]) -> list[Line]:
    drawn: list[Piece] = []

    def see(text: str, outer: list[float], inner: list[float], font: dict[str, Any] | None, size: float) -> None:
        if text:
            name = _NO_FONT.sub("", str((font or {}).get("/BaseFont", "")).removeprefix("/"))
            drawn.append(piece(text, matrix(inner, outer), size=size, font=name))

    page.extract_text(visitor_text=see)
    sign()
    return lines(drawn)


def _entries(reader: pypdf.PdfReader, outline: Any, *, level: int) -> Iterator[Entry]:
    """The lines of the document's outline that lead to a page."""
    for entry in outline:
        if isinstance(entry, list):
            if level < _DEEPEST_ENTRY:
                yield from _entries(reader, entry, level=level + 1)
            continue
        page = reader.get_destination_page_number(entry)
        if page is not None and page >= 0 and entry.title:
            yield Entry(str(entry.title), page + 1, level)


def _said_title(reader: pypdf.PdfReader) -> str:
    """What the file says it is called, unless that is only a file's name."""
    said = reader.metadata.title if reader.metadata else None
    title = clean(said if isinstance(said, str) else "").replace("\n", " ")
    return "" if _NO_TITLE.fullmatch(title) else title
