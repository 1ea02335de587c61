"""Cached document metadata (front matter, title, includes), from which a generator's navigation is built."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bythebook.sources import Unreadable
from bythebook.sources.folder import decode_text
from bythebook.sources.projects import includes
from bythebook.sources.readers import front_matter

_MAX_BYTES = 20_000_000
_HEADING = re.compile(r"^ {0,3}#[ \t]+(?P<atx>.+?)[ \t]*#*[ \t]*$|^(?P<setext>\S.*)\n=+[ \t]*$", re.MULTILINE)
_UNDERLINED = re.compile(
    r"^(?:(?P<over>([!-/:-@\[-`{-~])\2+)[ \t]*\n)?[ \t]*(?P<title>\S.*)\n(?P<under>([!-/:-@\[-`{-~])\5+)[ \t]*$",
    re.MULTILINE,
)
_ID = re.compile(r"[ \t]*\{[:/*\s]*#[^{}]*\}[ \t]*$")
_MARKUP = re.compile(r"\[([^\]]*)\]\([^()]*\)|[`*]+|<[^<>]+>|:[\w:]+:(?=`)")


@dataclass(frozen=True, slots=True)
class DocumentMetadata:
    """The front matter of a document, its title, and what it refers to."""

    fields: dict[str, Any] = field(default_factory=dict)
    title: str = ""
    references: tuple[str, ...] = ()
    """The files it includes, as the document names them."""
    toctrees: tuple[Any, ...] = ()
    """The parts of the navigation that the document defines. Only Sphinx documents do."""
    labels: tuple[tuple[str, str], ...] = ()
    """The labels before its headings, each with the heading. Only Sphinx documents have them."""
    is_sample: bool = False
    """Whether the generator itself put it into the project."""

    def get_text(self, name: str) -> str:
        """A field that is a string or a number; empty for any other value."""
        value = self.fields.get(name)
        return str(value).strip() if isinstance(value, str | int | float) and not isinstance(value, bool) else ""

    def get_number(self, name: str) -> float | None:
        value = self.fields.get(name)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


class MetadataCache:
    """Parses documents, and caches the result until the size or the modification time of a file changes."""

    def __init__(self, parse: Callable[[dict[str, Any], str, Path], DocumentMetadata]) -> None:
        self._parse = parse
        self._cache: dict[Path, tuple[tuple[int, int], DocumentMetadata]] = {}

    def get(self, file: Path) -> DocumentMetadata:
        """The metadata of the file. Empty if it cannot be read: reading the page will report the reason."""
        try:
            stat = file.stat()
        except OSError:
            return DocumentMetadata()
        stamp = (stat.st_mtime_ns, stat.st_size)
        cached = self._cache.get(file)
        if cached is None or cached[0] != stamp:
            metadata = self._read(file) if stat.st_size <= _MAX_BYTES else DocumentMetadata()
            cached = self._cache[file] = (stamp, metadata)
        return cached[1]

    def _read(self, file: Path) -> DocumentMetadata:
        try:
            text = decode_text(file.read_bytes())
        except (OSError, Unreadable):
            return DocumentMetadata()
        try:
            fields, body = front_matter.parse_fields(text)
        except Unreadable:
            return self._parse({}, text, file)
        return self._parse({str(name): value for name, value in fields.items()}, body, file)


def find_markdown_title(text: str) -> str:
    """The first heading of level 1, without markup."""
    match = _HEADING.search(includes.strip_code(text))
    return strip_markup(match["atx"] or match["setext"]) if match else ""


def find_rst_title(text: str) -> str:
    """The first heading, without markup."""
    matches = _UNDERLINED.finditer(text)
    return next((strip_markup(match["title"]) for match in matches if len(match["under"]) >= 3), "")


def strip_markup(heading: str) -> str:
    """The visible text of a heading."""
    return _MARKUP.sub(lambda match: match[1] or "", _ID.sub("", heading)).strip()
