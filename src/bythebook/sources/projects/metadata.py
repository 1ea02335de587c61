"""Glances: what a generator must know of a document before it can be given its place."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bythebook.sources import Unreadable
from bythebook.sources.folder import decode
from bythebook.sources.projects import includes
from bythebook.sources.readers import front_matter

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_LARGEST = 20_000_000
_HEADING = re.compile(r"^ {0,3}#[ \t]+(?P<atx>.+?)[ \t]*#*[ \t]*$|^(?P<setext>\S.*)\n=+[ \t]*$", re.MULTILINE)
_UNDERLINED = re.compile(
    r"^(?:(?P<over>([!-/:-@\[-`{-~])\2+)[ \t]*\n)?[ \t]*(?P<title>\S.*)\n(?P<under>([!-/:-@\[-`{-~])\5+)[ \t]*$",
    re.MULTILINE,
)
_ID = re.compile(r"[ \t]*\{[:/*\s]*#[^{}]*\}[ \t]*$")
_MARKUP = re.compile(r"\[([^\]]*)\]\([^()]*\)|[`*]+|<[^<>]+>|:[\w:]+:(?=`)")


@dataclass(frozen=True, slots=True)
class Glance:
    """The fields above a document, what it calls itself, and what it takes in from elsewhere."""

    fields: dict[str, Any] = field(default_factory=dict)
    title: str = ""
    references: tuple[str, ...] = ()
    """Other files, as the document names them."""
    contents: tuple[Any, ...] = ()
    """What a document that is itself part of the navigation says about it."""

    def word(self, name: str) -> str:
        """A field that is a word or a number; empty for anything else."""
        value = self.fields.get(name)
        return str(value).strip() if isinstance(value, str | int | float) and not isinstance(value, bool) else ""

    def number(self, name: str) -> float | None:
        value = self.fields.get(name)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


class Glances:
    """Remembers documents as long as their files look the same, so that looking again costs nothing."""

    def __init__(self, look: Callable[[dict[str, Any], str, Path], Glance]) -> None:
        self._look = look
        self._known: dict[Path, tuple[tuple[int, int], Glance]] = {}

    def of(self, file: Path) -> Glance:
        """What the file says; nothing where it cannot be read, which reading the page will explain."""
        try:
            stat = file.stat()
        except OSError:
            return Glance()
        stamp = (stat.st_mtime_ns, stat.st_size)
        known = self._known.get(file)
        if known is None or known[0] != stamp:
            known = self._known[file] = (stamp, self._glance(file) if stat.st_size <= _LARGEST else Glance())
        return known[1]

    def _glance(self, file: Path) -> Glance:
        try:
            text = decode(file.read_bytes())
        except (OSError, Unreadable):
            return Glance()
        try:
            fields, body = front_matter.fields(text)
        except Unreadable:
            return self._look({}, text, file)
        return self._look({str(name): value for name, value in fields.items()}, body, file)


def heading_of_markdown(text: str) -> str:
    """The first top heading, as it reads."""
    match = _HEADING.search(includes.prose(text))
    return _plain(match["atx"] or match["setext"]) if match else ""


def heading_of_restructured(text: str) -> str:
    """The first heading, as it reads."""
    matches = _UNDERLINED.finditer(text)
    return next((_plain(match["title"]) for match in matches if len(match["under"]) >= 3), "")


def _plain(heading: str) -> str:
    return _MARKUP.sub(lambda match: match[1] or "", _ID.sub("", heading)).strip()
