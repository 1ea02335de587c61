"""PDF: the text of the pages. The anchor of each part is its page number."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Any

import pypdf
from pypdf.errors import DependencyError, LimitReachedError, PyPdfError

from bythebook.sources import BlockKind, Unreadable
from bythebook.sources.document import ParsedDocument, normalize_text
from bythebook.sources.readers.pdf_layout import LayoutAnalyzer, group_into_lines, multiply_matrices, place_run
from bythebook.sources.readers.pdf_outline import OutlineEntry, detect_headings, remove_headers_and_footers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from bythebook.sources.readers.pdf_layout import TextLine, TextRun

MAX_PAGES = 20_000
_MAX_OUTLINE_DEPTH = 20
_NOT_A_TITLE = re.compile(
    r"(?:untitled.*|microsoft word - .*|.*\.(?:docx?|tex|dvi|pdf|indd|pptx?|html?|md)|\W*)", re.IGNORECASE
)
_SUBSET_PREFIX = re.compile(r"^[A-Z]{6}\+")


def read(file: Path, *, heartbeat: Callable[[], object] = lambda: None) -> ParsedDocument:
    """The document. Calls `heartbeat` after each page. Raises Unreadable."""
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    with file.open("rb") as stream:
        if not stream.read(1):
            raise Unreadable("it is empty")
        try:
            reader = _open(stream)
            found = [_read_lines(page, heartbeat) for page in _iterate_pages(reader)]
            entries = list(_read_outline(reader, reader.outline, level=1)) if any(found) else []
            title = _metadata_title(reader)
        except (PyPdfError, LimitReachedError) as exc:
            raise Unreadable(f"it is damaged, or not a PDF ({exc}); print it to a new PDF") from exc
    if not any(found):
        raise Unreadable("it has no text, only pictures of it; run OCR first")
    text = remove_headers_and_footers(found)
    parts = tuple(LayoutAnalyzer(text, detect_headings(text, entries)).parts(heartbeat))
    heading = next((part.text for part in parts if part.kind is BlockKind.HEADING and part.level == 1), "")
    return ParsedDocument(title or heading, parts)


def _open(stream: Any) -> pypdf.PdfReader:
    reader = pypdf.PdfReader(stream)
    try:
        if reader.is_encrypted and not reader.decrypt(""):
            raise Unreadable("it is encrypted; save a copy without a password")
    except (DependencyError, NotImplementedError) as exc:
        raise Unreadable(f"it is encrypted with an unknown method ({exc}); save a copy without a password") from exc
    return reader


def _iterate_pages(reader: pypdf.PdfReader) -> Iterator[pypdf.PageObject]:
    count = len(reader.pages)
    if count > MAX_PAGES:
        raise Unreadable(f"it has {count} pages; at most {MAX_PAGES} are read from one file. Split it")
    for number in range(count):
        yield reader.pages[number]


def _read_lines(page: pypdf.PageObject, heartbeat: Callable[[], object]) -> list[TextLine]:
    drawn: list[TextRun] = []

    def see(text: str, outer: list[float], inner: list[float], font: dict[str, Any] | None, size: float) -> None:
        if text:
            name = _SUBSET_PREFIX.sub("", str((font or {}).get("/BaseFont", "")).removeprefix("/"))
            drawn.append(place_run(text, multiply_matrices(inner, outer), size=size, font=name))

    page.extract_text(visitor_text=see)
    heartbeat()
    return group_into_lines(drawn)


def _read_outline(reader: pypdf.PdfReader, outline: Any, *, level: int) -> Iterator[OutlineEntry]:
    """The entries of the document's outline that point to a page."""
    for entry in outline:
        if isinstance(entry, list):
            if level < _MAX_OUTLINE_DEPTH:
                yield from _read_outline(reader, entry, level=level + 1)
            continue
        page = reader.get_destination_page_number(entry)
        if page is not None and page >= 0 and entry.title:
            yield OutlineEntry(str(entry.title), page + 1, level)


def _metadata_title(reader: pypdf.PdfReader) -> str:
    """The title in the metadata, unless it is a file name or a placeholder."""
    said = reader.metadata.title if reader.metadata else None
    title = normalize_text(said if isinstance(said, str) else "").replace("\n", " ")
    return "" if _NOT_A_TITLE.fullmatch(title) else title
