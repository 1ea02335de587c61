"""Styles of a Word file: what a paragraph is, as its style and numbering say.

Word: the text of a .docx file, with its headings, lists, tables, code and footnotes.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bythebook.sources import Kind, Unreadable
from bythebook.sources.document import Draft, Writer, clean
from bythebook.sources.readers.zip_archive import Archive

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from xml.etree.ElementTree import Element

    from bythebook.sources.document import Part


W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_HEADING = re.compile(r"heading ([1-9])")
_CODE = re.compile(r"code|verbatim|preformatted|listing|terminal|source text", re.IGNORECASE)
_MONOSPACED = re.compile(r"courier|consolas|mono|menlo|lucida console|source code|fixed", re.IGNORECASE)
_DEEPEST = 20


@dataclass(frozen=True, slots=True)
class Style:
    """A style of paragraphs. Word keeps the English name of its own ones in every language."""

    name: str = ""
    based_on: str = ""
    outline: int = 0
    """From 1; 0 for a style that is no heading."""
    numbering: tuple[str, int] | None = None

    @property
    def level(self) -> int:
        if self.name == "title":
            return 1
        match = _HEADING.fullmatch(self.name)
        return int(match[1]) if match else self.outline

    @property
    def is_code(self) -> bool:
        return bool(_CODE.search(self.name)) and "comment" not in self.name

    @property
    def is_contents(self) -> bool:
        """Whether it is for the table of contents, an index or a list of figures: they only repeat the text."""
        return self.name.startswith(("toc ", "table of figures", "index ", "table of authorities"))


@dataclass(slots=True)
class Styles:
    """All styles of a document, by their ids."""

    by_id: dict[str, Style] = field(default_factory=dict)

    @classmethod
    def of(cls, root: Element | None) -> Styles:
        found = {}
        for element in root.iter(f"{W}style") if root is not None else ():
            name = value(element.find(f"{W}name")).lower()
            properties = element.find(f"{W}pPr")
            outline = value(_in(properties, "outlineLvl"))
            found[element.get(f"{W}styleId", "")] = Style(
                name,
                based_on=value(element.find(f"{W}basedOn")),
                outline=int(outline) + 1 if outline.isdigit() and int(outline) < 9 else 0,
                numbering=numbering(properties),
            )
        return cls(found)

    def line(self, style_id: str) -> Iterator[Style]:
        """The style, the one it is based on, and so on."""
        for _ in range(_DEEPEST):
            style = self.by_id.get(style_id)
            if style is None:
                return
            yield style
            style_id = style.based_on

    def level(self, style_id: str) -> int:
        return next((style.level for style in self.line(style_id) if style.level), 0)

    def numbering(self, style_id: str) -> tuple[str, int] | None:
        return next((style.numbering for style in self.line(style_id) if style.numbering), None)


class Numbers:
    """Counts the items of the lists of a document, as Word shows them."""

    def __init__(self, root: Element | None) -> None:
        self._counts: Counter[tuple[str, int]] = Counter()
        self._is_bullet: dict[tuple[str, int], bool] = {}
        formats: dict[tuple[str, int], bool] = {}
        for abstract in root.findall(f"{W}abstractNum") if root is not None else ():
            for level in abstract.findall(f"{W}lvl"):
                is_bullet = value(level.find(f"{W}numFmt")) in ("bullet", "none", "")
                formats[abstract.get(f"{W}abstractNumId", ""), _number(level.get(f"{W}ilvl"))] = is_bullet
        for number in root.findall(f"{W}num") if root is not None else ():
            kind = value(number.find(f"{W}abstractNumId"))
            for (abstract_id, depth), is_bullet in formats.items():
                if abstract_id == kind:
                    self._is_bullet[number.get(f"{W}numId", ""), depth] = is_bullet

    def marker(self, numbered: tuple[str, int]) -> str:
        """What stands in front of the next item of this list."""
        list_id, depth = numbered
        if self._is_bullet.get(numbered, True):
            return "-"
        self._counts[numbered] += 1
        for deeper in range(depth + 1, 9):
            self._counts.pop((list_id, deeper), None)
        return f"{self._counts[numbered]}."


def numbering(properties: Element | None) -> tuple[str, int] | None:
    """Which list a paragraph is an item of, and how deep in it."""
    found = _in(properties, "numPr")
    list_id = value(_in(found, "numId"))
    return (list_id, min(_number(value(_in(found, "ilvl"))), 8)) if list_id and list_id != "0" else None


def is_monospaced(run: Element) -> bool:
    fonts = run.find(f"{W}rPr/{W}rFonts")
    return fonts is not None and bool(_MONOSPACED.search(fonts.get(f"{W}ascii", "")))


def value(element: Element | None) -> str:
    return element.get(f"{W}val", "") if element is not None else ""


def _in(element: Element | None, name: str) -> Element | None:
    return element.find(f"{W}{name}") if element is not None else None


def _number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 4 else 0


_DOCUMENT = "word/document.xml"
_MATH_TEXT = "{http://schemas.openxmlformats.org/officeDocument/2006/math}t"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_UNSEEN = frozenset([f"{W}del", f"{W}moveFrom", f"{W}pPr", f"{W}rPr", f"{W}instrText", _FALLBACK, f"{W}pict"])
_SHOWN = {f"{W}tab": "\t", f"{W}br": "\n", f"{W}cr": "\n", f"{W}noBreakHyphen": "\u2011"}
_BOX = f"{W}txbxContent"
_NOTES = {f"{W}footnoteReference": "word/footnotes.xml", f"{W}endnoteReference": "word/endnotes.xml"}
_DEEPEST_TABLE = 10
_NO_TITLE = re.compile(r"(?:microsoft word - .*|untitled.*|document ?\d*|.*\.docx?)?", re.IGNORECASE)


def read(file: Path) -> Draft:
    """The document. Raises Unreadable."""
    with Archive(file) as archive:
        if _DOCUMENT not in archive:
            raise Unreadable("it is no Word file: word/document.xml is missing inside it; save it anew")
        walk = _Walk(archive)
        body = archive.xml(_DOCUMENT).find(f"{W}body")
        if body is not None:
            walk.over(body)
        parts = walk.finish()
        heading = next((part.text for part in parts if part.kind is Kind.HEADING and part.level == 1), "")
        return Draft(walk.title or heading or _said_title(archive), parts)


def _said_title(archive: Archive) -> str:
    """What the file says it is called, unless a program said it."""
    if "docProps/core.xml" not in archive:
        return ""
    title = archive.xml("docProps/core.xml").findtext("{http://purl.org/dc/elements/1.1/}title") or ""
    title = clean(title).replace("\n", " ")
    return "" if _NO_TITLE.fullmatch(title) else title


class _Walk:
    """One pass over the body of a document."""

    def __init__(self, archive: Archive) -> None:
        self.title = ""
        self._writer = Writer()
        self._styles = Styles.of(_part(archive, "word/styles.xml"))
        self._numbers = Numbers(_part(archive, "word/numbering.xml"))
        self._notes = {mark: _notes(_part(archive, name)) for mark, name in _NOTES.items()}
        self._code: list[str] = []
        self._depth = 0
        """How many items of lists are open."""
        self._tables = 0

    def over(self, container: Element) -> None:
        for element in container:
            if element.tag == f"{W}p":
                self._paragraph(element)
            elif element.tag == f"{W}tbl":
                self._end_code()
                self._end_list()
                self._table(element)
            elif element.tag not in _UNSEEN and element.tag != f"{W}sectPr":
                self.over(element)

    def finish(self) -> tuple[Part, ...]:
        self._end_code()
        self._end_list()
        return self._writer.finish()

    def _paragraph(self, paragraph: Element) -> None:
        properties = paragraph.find(f"{W}pPr")
        style_id = value(properties.find(f"{W}pStyle")) if properties is not None else ""
        styles = list(self._styles.line(style_id))
        if styles and styles[0].is_contents:
            return
        text = "".join(_text(paragraph))
        if any(style.is_code for style in styles) or (text.strip() and _is_all_monospaced(paragraph)):
            self._end_list()
            self._code.append(text.replace("\u2011", "-"))
            return
        self._end_code()
        self._write(text, level=self._level(style_id, properties), item=self._item(style_id, properties))
        if styles and styles[0].name == "title":
            self.title = self.title or clean(text).replace("\n", " ")
        self._beside(paragraph)

    def _level(self, style_id: str, properties: Element | None) -> int:
        outline = value(properties.find(f"{W}outlineLvl")) if properties is not None else ""
        return int(outline) + 1 if outline.isdigit() and int(outline) < 9 else self._styles.level(style_id)

    def _item(self, style_id: str, properties: Element | None) -> tuple[str, int] | None:
        return numbering(properties) or self._styles.numbering(style_id)

    def _write(self, text: str, *, level: int, item: tuple[str, int] | None) -> None:
        if level and text.strip():
            self._end_list()
            self._writer.heading(text, level=min(level, 6))
        elif item and text.strip():
            self._open_item(item)
            self._writer.paragraph(text)
        elif text.strip():
            self._end_list()
            self._writer.paragraph(text)

    def _open_item(self, item: tuple[str, int]) -> None:
        while self._depth > item[1]:
            self._writer.close_item()
            self._depth -= 1
        self._writer.open_item(self._numbers.marker(item))
        self._depth += 1

    def _end_list(self) -> None:
        while self._depth:
            self._writer.close_item()
            self._depth -= 1
        self._writer.close_list()

    def _end_code(self) -> None:
        if self._code:
            self._writer.code("\n".join(self._code))
            self._code = []

    def _beside(self, paragraph: Element) -> None:
        """What stands beside a paragraph or at its foot: text boxes and notes."""
        for element in _seen(paragraph):
            if element.tag == _BOX:
                self._end_list()
                self.over(element)
            elif element.tag in _NOTES:
                note = self._notes[element.tag].get(element.get(f"{W}id", ""), "")
                self._writer.paragraph(note)

    def _table(self, table: Element) -> None:
        """A table of words; one that arranges other tables is a layout, and what is in it stands on its own."""
        self._tables += 1
        if self._tables > _DEEPEST_TABLE or table.find(f".//{W}tbl") is None:
            self._writer.table([[_cell_text(cell) for cell in _cells(row)] for row in _rows(table)])
        else:
            for row in _rows(table):
                for cell in _cells(row):
                    self.over(cell)
        self._tables -= 1


def _part(archive: Archive, name: str) -> Element | None:
    return archive.xml(name) if name in archive else None


def _notes(root: Element | None) -> dict[str, str]:
    """The notes by their ids; the lines that separate them from the text are notes too, but not of words."""
    if root is None:
        return {}
    return {note.get(f"{W}id", ""): _cell_text(note) for note in root if note.get(f"{W}type") is None}


def _cell_text(cell: Element) -> str:
    paragraphs = ("".join(_text(paragraph)).strip() for paragraph in cell.iter(f"{W}p"))
    return " ".join(text for text in paragraphs if text)


def _rows(table: Element) -> Iterator[Element]:
    return _nearest(table, f"{W}tr")


def _cells(row: Element) -> Iterator[Element]:
    return _nearest(row, f"{W}tc")


def _nearest(root: Element, tag: str) -> Iterator[Element]:
    """The elements of this kind that are not inside another one of it."""
    waiting = list(reversed(root))
    while waiting:
        element = waiting.pop()
        if element.tag == tag:
            yield element
        elif element.tag not in _UNSEEN:
            waiting.extend(reversed(element))


def _seen(root: Element) -> Iterator[Element]:
    """What is inside an element in its order, without what was deleted, and not what is inside of boxes."""
    waiting = list(reversed(root))
    while waiting:
        element = waiting.pop()
        if element.tag in _UNSEEN or (element.tag == f"{W}r" and element.find(f"{W}rPr/{W}vanish") is not None):
            continue
        yield element
        if element.tag != _BOX:
            waiting.extend(reversed(element))


def _text(paragraph: Element) -> Iterator[str]:
    for element in _seen(paragraph):
        if element.tag in (f"{W}t", _MATH_TEXT):
            yield element.text or ""
        elif element.tag in _SHOWN:
            yield _SHOWN[element.tag]


def _is_all_monospaced(paragraph: Element) -> bool:
    runs = [run for run in _seen(paragraph) if run.tag == f"{W}r" and "".join(_text(run)).strip()]
    return bool(runs) and all(map(is_monospaced, runs))
