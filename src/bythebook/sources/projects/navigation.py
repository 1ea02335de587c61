"""Navigation: the sections and pages of a sidebar, whichever generator it belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@dataclass(frozen=True, slots=True)
class Entry:
    """A document in the navigation, by the generator's name for it."""

    document: str
    title: str = ""
    """What the navigation calls it; empty where it leaves that to the document."""


@dataclass(frozen=True, slots=True)
class Section:
    """Documents under a label."""

    label: str
    items: tuple[Item, ...]


Item: TypeAlias = Entry | Section


@dataclass(frozen=True, slots=True)
class Arranged:
    """A document in its place: what it is called there, and which part of the book it is in."""

    document: str
    title: str
    module: str


@dataclass(slots=True)
class Allowance:
    """How many items a navigation may still have. One that repeats its own parts would have no end."""

    left: int = 50_000

    def take(self) -> bool:
        self.left -= 1
        return self.left >= 0


def arranged(items: Sequence[Item]) -> dict[str, Arranged]:
    """The documents in reading order, each once, at its first place.

    A module is an outermost section. Where there is only one of those, around all others, it is the book itself,
    and the sections in it are the modules.
    """
    outermost = [item for item in items if isinstance(item, Section)]
    around = outermost[0] if len(outermost) == 1 and _has_sections(outermost[0]) else None
    found: dict[str, Arranged] = {}
    for item in items:
        if item is around and around is not None:
            for inner in around.items:
                _add(inner, inner.label if isinstance(inner, Section) else around.label, found)
        else:
            _add(item, item.label if isinstance(item, Section) else "", found)
    return found


def _has_sections(section: Section) -> bool:
    return any(isinstance(item, Section) for item in section.items)


def _add(item: Item, module: str, found: dict[str, Arranged]) -> None:
    for entry in entries(item):
        found.setdefault(entry.document, Arranged(entry.document, entry.title, module))


def entries(item: Item) -> Iterator[Entry]:
    """Every document below an item, in order."""
    if isinstance(item, Entry):
        yield item
    else:
        for inner in item.items:
            yield from entries(inner)
