"""Word (.docx): headings, lists, tables, code and footnotes. Styles and numbering determine the kind of a paragraph."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from xml.etree.ElementTree import Element

from bythebook.sources import BlockKind, Unreadable
from bythebook.sources.document import DocumentPart, DocumentWriter, ParsedDocument, normalize_text
from bythebook.sources.readers.zip_archive import ZipArchive

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_HEADING_STYLE = re.compile(r"heading ([1-9])")
_CODE_STYLE = re.compile(r"code|verbatim|preformatted|listing|terminal|source text", re.IGNORECASE)
_MONOSPACED_FONT = re.compile(r"courier|consolas|mono|menlo|lucida console|source code|fixed", re.IGNORECASE)
_MAX_STYLE_DEPTH = 20


@dataclass(frozen=True, slots=True)
class ParagraphStyle:
    """A paragraph style. Word keeps the English names of its built-in styles in every language."""

    name: str = ""
    based_on: str = ""
    outline: int = 0
    """The heading level from 1; 0 for a style that is not a heading."""
    numbering: tuple[str, int] | None = None

    @property
    def level(self) -> int:
        if self.name == "title":
            return 1
        match = _HEADING_STYLE.fullmatch(self.name)
        return int(match[1]) if match else self.outline

    @property
    def is_code(self) -> bool:
        return bool(_CODE_STYLE.search(self.name)) and "comment" not in self.name

    @property
    def is_contents(self) -> bool:
        """Whether it formats a table of contents, an index or a list of figures. These only repeat the text."""
        return self.name.startswith(("toc ", "table of figures", "index ", "table of authorities"))


def parse_styles(root: Element | None) -> dict[str, ParagraphStyle]:
    """All styles of a document, by their ids."""
    found = {}
    for element in root.iter(f"{W}style") if root is not None else ():
        properties = element.find(f"{W}pPr")
        found[element.get(f"{W}styleId", "")] = ParagraphStyle(
            name=attribute_value(element, "name").lower(),
            based_on=attribute_value(element, "basedOn"),
            outline=find_outline_level(properties),
            numbering=find_numbering(properties),
        )
    return found


class ListNumbering:
    """Counts the items of the lists of a document, as Word shows them."""

    def __init__(self, root: Element | None) -> None:
        self._counts: Counter[tuple[str, int]] = Counter()
        self._is_bullet: dict[tuple[str, int], bool] = {}
        formats: dict[tuple[str, int], bool] = {}
        for abstract in root.findall(f"{W}abstractNum") if root is not None else ():
            for level in abstract.findall(f"{W}lvl"):
                is_bullet = attribute_value(level, "numFmt") in ("bullet", "none", "")
                formats[abstract.get(f"{W}abstractNumId", ""), _parse_number(level.get(f"{W}ilvl"))] = is_bullet
        for number in root.findall(f"{W}num") if root is not None else ():
            kind = attribute_value(number, "abstractNumId")
            for (abstract_id, depth), is_bullet in formats.items():
                if abstract_id == kind:
                    self._is_bullet[number.get(f"{W}numId", ""), depth] = is_bullet

    def marker(self, numbered: tuple[str, int]) -> str:
        """The bullet or number of the next item of this list."""
        list_id, depth = numbered
        if self._is_bullet.get(numbered, True):
            return "-"
        self._counts[numbered] += 1
        for deeper in range(depth + 1, 9):
            self._counts.pop((list_id, deeper), None)
        return f"{self._counts[numbered]}."


def find_numbering(properties: Element | None) -> tuple[str, int] | None:
    """The list that contains a paragraph, and its nesting level. None outside of lists."""
    list_id = attribute_value(properties, "numPr", "numId")
    depth = min(_parse_number(attribute_value(properties, "numPr", "ilvl")), 8)
    return (list_id, depth) if list_id not in ("", "0") else None


def find_outline_level(properties: Element | None) -> int:
    """The heading level from 1 that a paragraph or a style sets by itself. 0 if it sets none."""
    outline = attribute_value(properties, "outlineLvl")
    return int(outline) + 1 if outline.isdigit() and int(outline) < 9 else 0


def is_monospaced(run: Element) -> bool:
    fonts = run.find(f"{W}rPr/{W}rFonts")
    return fonts is not None and bool(_MONOSPACED_FONT.search(fonts.get(f"{W}ascii", "")))


def attribute_value(element: Element | None, *path: str) -> str:
    """The value of the element at `path` below this one; empty if there is none."""
    found = element.find("/".join(f"{W}{name}" for name in path)) if element is not None else None
    return found.get(f"{W}val", "") if found is not None else ""


def _parse_number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 4 else 0


_DOCUMENT = "word/document.xml"
_MATH_TEXT = "{http://schemas.openxmlformats.org/officeDocument/2006/math}t"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_INVISIBLE = frozenset([f"{W}del", f"{W}moveFrom", f"{W}pPr", f"{W}rPr", f"{W}instrText", _FALLBACK, f"{W}pict"])
_CHARACTERS = {f"{W}tab": "\t", f"{W}br": "\n", f"{W}cr": "\n", f"{W}noBreakHyphen": "\u2011"}
_TEXT_BOX = f"{W}txbxContent"
_NOTES = {f"{W}footnoteReference": "word/footnotes.xml", f"{W}endnoteReference": "word/endnotes.xml"}
_MAX_TABLE_DEPTH = 10
_NOT_A_TITLE = re.compile(r"(?:microsoft word - .*|untitled.*|document ?\d*|.*\.docx?)?", re.IGNORECASE)


def read(file: Path) -> ParsedDocument:
    """The document. Raises Unreadable."""
    with ZipArchive(file) as archive:
        if _DOCUMENT not in archive:
            raise Unreadable("it is not a Word file: word/document.xml is missing inside it; save it again")
        walker = _BodyWalker(archive)
        body = archive.xml(_DOCUMENT).find(f"{W}body")
        if body is not None:
            walker.walk(body)
        parts = walker.finish()
        heading = next((part.text for part in parts if part.kind is BlockKind.HEADING and part.level == 1), "")
        return ParsedDocument(walker.title or heading or _metadata_title(archive), parts)


def _metadata_title(archive: ZipArchive) -> str:
    """The title in the metadata, unless it is a placeholder that a program inserted."""
    if "docProps/core.xml" not in archive:
        return ""
    title = archive.xml("docProps/core.xml").findtext("{http://purl.org/dc/elements/1.1/}title") or ""
    title = normalize_text(title).replace("\n", " ")
    return "" if _NOT_A_TITLE.fullmatch(title) else title


class _BodyWalker:
    """Walks over the body of a document once and writes its parts."""

    def __init__(self, archive: ZipArchive) -> None:
        self.title = ""
        self._writer = DocumentWriter()
        self._styles = parse_styles(_parse_part(archive, "word/styles.xml"))
        self._numbers = ListNumbering(_parse_part(archive, "word/numbering.xml"))
        self._notes = {mark: _parse_notes(_parse_part(archive, name)) for mark, name in _NOTES.items()}
        self._code: list[str] = []
        self._depth = 0
        """How many list items are open."""
        self._table_depth = 0

    def walk(self, container: Element) -> None:
        for element in container:
            if element.tag == f"{W}p":
                self._write_paragraph(element)
            elif element.tag == f"{W}tbl":
                self._end_code()
                self._end_list()
                self._write_table(element)
            elif element.tag not in _INVISIBLE and element.tag != f"{W}sectPr":
                self.walk(element)

    def finish(self) -> tuple[DocumentPart, ...]:
        self._end_code()
        self._end_list()
        return self._writer.finish()

    def _write_paragraph(self, paragraph: Element) -> None:
        properties = paragraph.find(f"{W}pPr")
        styles = list(self._iterate_styles(attribute_value(properties, "pStyle")))
        if styles and styles[0].is_contents:
            return
        text = "".join(_iterate_text(paragraph))
        if any(style.is_code for style in styles) or (text.strip() and _has_only_monospaced_text(paragraph)):
            self._end_list()
            self._code.append(text.replace("\u2011", "-"))
            return
        self._end_code()
        level = find_outline_level(properties) or next(filter(None, (style.level for style in styles)), 0)
        item = find_numbering(properties) or next(filter(None, (style.numbering for style in styles)), None)
        self._write(text, level=level, item=item)
        if styles and styles[0].name == "title":
            self.title = self.title or normalize_text(text).replace("\n", " ")
        self._write_anchored_objects(paragraph)

    def _iterate_styles(self, style_id: str) -> Iterator[ParagraphStyle]:
        """The style, the style it is based on, and so on."""
        for _ in range(_MAX_STYLE_DEPTH):
            style = self._styles.get(style_id)
            if style is None:
                return
            yield style
            style_id = style.based_on

    def _write(self, text: str, *, level: int, item: tuple[str, int] | None) -> None:
        if level and text.strip():
            self._end_list()
            self._writer.heading(text, level=min(level, 6))
        elif item and text.strip():
            self._close_items(item[1])
            self._writer.open_item(self._numbers.marker(item))
            self._depth += 1
            self._writer.paragraph(text)
        elif text.strip():
            self._end_list()
            self._writer.paragraph(text)

    def _close_items(self, depth: int) -> None:
        """Close the items that are nested deeper than `depth`."""
        while self._depth > depth:
            self._writer.close_item()
            self._depth -= 1

    def _end_list(self) -> None:
        self._close_items(0)
        self._writer.close_list()

    def _end_code(self) -> None:
        if self._code:
            self._writer.code("\n".join(self._code))
            self._code = []

    def _write_anchored_objects(self, paragraph: Element) -> None:
        """Write the text boxes and notes that are anchored in a paragraph."""
        for element in _iterate_visible(paragraph):
            if element.tag == _TEXT_BOX:
                self._end_list()
                self.walk(element)
            elif element.tag in _NOTES:
                note = self._notes[element.tag].get(element.get(f"{W}id", ""), "")
                self._writer.paragraph(note)

    def _write_table(self, table: Element) -> None:
        """Write a table. A table that contains tables is a layout table: its content is written as blocks."""
        self._table_depth += 1
        if self._table_depth > _MAX_TABLE_DEPTH or table.find(f".//{W}tbl") is None:
            self._writer.table([[_cell_text(cell) for cell in row] for row in _find_cells(table)])
        else:
            for cell in chain.from_iterable(_find_cells(table)):
                self.walk(cell)
        self._table_depth -= 1


def _parse_part(archive: ZipArchive, name: str) -> Element | None:
    return archive.xml(name) if name in archive else None


def _parse_notes(root: Element | None) -> dict[str, str]:
    """The notes by their ids, without the separator lines, which Word also stores as notes."""
    if root is None:
        return {}
    return {note.get(f"{W}id", ""): _cell_text(note) for note in root if note.get(f"{W}type") is None}


def _cell_text(cell: Element) -> str:
    paragraphs = ("".join(_iterate_text(paragraph)).strip() for paragraph in cell.iter(f"{W}p"))
    return " ".join(text for text in paragraphs if text)


def _find_cells(table: Element) -> list[list[Element]]:
    return [list(_iterate_outermost(row, f"{W}tc")) for row in _iterate_outermost(table, f"{W}tr")]


def _iterate_outermost(root: Element, tag: str) -> Iterator[Element]:
    """The elements with this tag that are not nested in each other."""
    pending = list(reversed(root))
    while pending:
        element = pending.pop()
        if element.tag == tag:
            yield element
        elif element.tag not in _INVISIBLE:
            pending.extend(reversed(element))


def _iterate_visible(root: Element) -> Iterator[Element]:
    """The descendants of an element in order, without deleted text and the content of text boxes."""
    pending = list(reversed(root))
    while pending:
        element = pending.pop()
        if element.tag in _INVISIBLE or (element.tag == f"{W}r" and element.find(f"{W}rPr/{W}vanish") is not None):
            continue
        yield element
        if element.tag != _TEXT_BOX:
            pending.extend(reversed(element))


def _iterate_text(paragraph: Element) -> Iterator[str]:
    for element in _iterate_visible(paragraph):
        if element.tag in (f"{W}t", _MATH_TEXT):
            yield element.text or ""
        elif element.tag in _CHARACTERS:
            yield _CHARACTERS[element.tag]


def _has_only_monospaced_text(paragraph: Element) -> bool:
    runs = [run for run in _iterate_visible(paragraph) if run.tag == f"{W}r" and "".join(_iterate_text(run)).strip()]
    return bool(runs) and all(map(is_monospaced, runs))
