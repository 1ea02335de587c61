"""PDF: the text of the pages, read with PDFium. The anchor of each part is its page number."""

from __future__ import annotations

import ctypes
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pypdfium2
from pypdfium2 import raw as pdfium

from bythebook.sources import BlockKind, Unreadable
from bythebook.sources.document import ParsedDocument, normalize_text
from bythebook.sources.readers.pdf_layout import LayoutAnalyzer, TextLine, TextRun, group_into_lines, place_run
from bythebook.sources.readers.pdf_outline import OutlineEntry, detect_headings, remove_headers_and_footers

MAX_PAGES = 20_000
_MAX_OUTLINE_DEPTH = 20
_NOT_A_TITLE = re.compile(
    r"(?:untitled.*|microsoft word - .*|.*\.(?:docx?|tex|dvi|pdf|indd|pptx?|html?|md)|\W*)", re.IGNORECASE
)
_SUBSET_PREFIX = re.compile(r"^[A-Z]{6}\+")
_MAX_FONT_NAME = 200
_FIRST_IDEOGRAPH = "\u2e80"
_MIN_LETTERS = 100
_MAX_WORD = 15
"""A page with more letters than this for each space has lost its spaces: the longest average word has half as many."""
_MIN_SPACE = 0.1
"""The least space between words, as a fraction of the font size. Between letters it is at most about 0.03."""


def read(file: Path, *, heartbeat: Callable[[], object] = lambda: None) -> ParsedDocument:
    """The document. Calls `heartbeat` after each page. Raises Unreadable."""
    if not file.stat().st_size:
        raise Unreadable("it is empty")
    try:
        with pypdfium2.PdfDocument(file) as document:
            _check_page_count(len(document))
            lines = [_read_lines(document[number], heartbeat) for number in range(len(document))]
            outline = list(_read_outline(document)) if any(lines) else []
            title = _metadata_title(document)
    except pypdfium2.PdfiumError as exc:
        raise Unreadable(_explain(exc)) from exc
    if not any(lines):
        raise Unreadable("it has no text, only pictures of it; run OCR first")
    text = remove_headers_and_footers(lines)
    parts = tuple(LayoutAnalyzer(text, detect_headings(text, outline)).parts(heartbeat))
    heading = next((part.text for part in parts if part.kind is BlockKind.HEADING and part.level == 1), "")
    return ParsedDocument(title or heading, parts)


def _explain(error: pypdfium2.PdfiumError) -> str:
    if error.err_code == pdfium.FPDF_ERR_PASSWORD:
        return "it is encrypted; save a copy without a password"
    if error.err_code == pdfium.FPDF_ERR_SECURITY:
        return "it is encrypted with an unknown method; save a copy without a password"
    return f"it is damaged, or not a PDF ({error}); print it to a new PDF"


def _check_page_count(count: int) -> None:
    if count > MAX_PAGES:
        raise Unreadable(f"it has {count} pages; at most {MAX_PAGES} are read from one file. Split it")


class _Glyph(NamedTuple):
    """A character of a page with its font and its transformation."""

    char: str
    font: str
    size: float
    matrix: tuple[float, float, float, float]
    x: float
    y: float
    is_gap: bool = False
    """True for the spaces and line breaks that PDFium generates where characters are far apart."""
    number: int = -1
    """Its number on the page, from which PDFium finds its box."""

    def continues(self, other: _Glyph) -> bool:
        """True if both characters are set alike on one baseline, so that they belong to one run."""
        same_style = (self.font, self.size, self.matrix) == (other.font, other.size, other.matrix)
        return same_style and abs(self.y - other.y) < 0.05 and not self.is_gap and not other.is_gap


def _read_lines(page: pypdfium2.PdfPage, heartbeat: Callable[[], object]) -> list[TextLine]:
    textpage = page.get_textpage()
    runs = list(_read_runs(textpage))
    textpage.close()
    page.close()
    heartbeat()
    return group_into_lines(runs)


def _read_runs(textpage: pypdfium2.PdfTextPage) -> Iterator[TextRun]:
    run: list[_Glyph] = []
    glyphs = list(_read_glyphs(textpage))
    for glyph in _restore_spaces(textpage, glyphs) if _lacks_spaces(glyphs) else glyphs:
        if run and not glyph.continues(run[-1]):
            yield _to_run(run)
            run = []
        run.append(glyph)
    if run:
        yield _to_run(run)


def _to_run(glyphs: list[_Glyph]) -> TextRun:
    first = glyphs[0]
    text = "".join(glyph.char for glyph in glyphs)
    return place_run(text, (*first.matrix, first.x, first.y), size=first.size, font=first.font)


def _read_glyphs(textpage: pypdfium2.PdfTextPage) -> Iterator[_Glyph]:
    page, matrix, x, y = textpage.raw, pdfium.FS_MATRIX(), ctypes.c_double(), ctypes.c_double()
    font, flags = ctypes.create_string_buffer(_MAX_FONT_NAME), ctypes.c_int()
    last: _Glyph | None = None
    for index in range(pdfium.FPDFText_CountChars(page)):
        char = chr(pdfium.FPDFText_GetUnicode(page, index))
        if char in "\r\n" or pdfium.FPDFText_IsGenerated(page, index) == 1:
            if last is not None:
                yield last._replace(char=char.strip("\r\n"), is_gap=True)
            continue
        pdfium.FPDFText_GetMatrix(page, index, matrix)
        pdfium.FPDFText_GetCharOrigin(page, index, x, y)
        pdfium.FPDFText_GetFontInfo(page, index, font, _MAX_FONT_NAME, flags)
        last = _Glyph(
            # PDFium reports a hyphen at the end of a line as a control character.
            "-" if pdfium.FPDFText_IsHyphen(page, index) == 1 else char,
            _SUBSET_PREFIX.sub("", font.value.decode("utf-8", "replace")),
            pdfium.FPDFText_GetFontSize(page, index),
            (matrix.a, matrix.b, matrix.c, matrix.d),
            x.value,
            y.value,
            number=index,
        )
        yield last


def _lacks_spaces(glyphs: Sequence[_Glyph]) -> bool:
    """Whether a page of an alphabetic script has nearly no spaces. LaTeX sets words apart by their position only."""
    letters = sum(glyph.char.isalpha() and glyph.char < _FIRST_IDEOGRAPH for glyph in glyphs)
    spaces = sum(glyph.is_gap or glyph.char == " " for glyph in glyphs)
    return letters > _MIN_LETTERS and letters > _MAX_WORD * spaces


def _restore_spaces(textpage: pypdfium2.PdfTextPage, glyphs: Iterable[_Glyph]) -> Iterator[_Glyph]:
    """The characters of a page with a space wherever one does not begin near the end of the one before."""
    box, last = pdfium.FS_RECTF(), None
    for glyph in glyphs:
        if last is not None and glyph.continues(last) and max(glyph.char, last.char) < _FIRST_IDEOGRAPH:
            pdfium.FPDFText_GetLooseCharBox(textpage.raw, last.number, box)
            if glyph.x - box.right > _MIN_SPACE * glyph.size * math.hypot(*glyph.matrix[2:]):
                yield last._replace(char=" ", is_gap=True)
        yield glyph
        last = glyph


def _read_outline(document: pypdfium2.PdfDocument) -> Iterator[OutlineEntry]:
    """The entries of the document's outline that point to a page."""
    for entry in document.get_toc(max_depth=_MAX_OUTLINE_DEPTH):
        target = entry.get_dest()
        page = target.get_index() if target else None
        if page is not None and page >= 0 and (title := entry.get_title()):
            yield OutlineEntry(title, page + 1, entry.level + 1)


def _metadata_title(document: pypdfium2.PdfDocument) -> str:
    """The title in the metadata, unless it is a file name or a placeholder."""
    title = normalize_text(document.get_metadata_value("Title")).replace("\n", " ")
    return "" if _NOT_A_TITLE.fullmatch(title) else title
