"""Styles of a Word file: what a paragraph is, as its style and numbering say."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from xml.etree.ElementTree import Element

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
