"""The navigation of a site, for every generator: sections and documents, flattened into reading order."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class NavEntry:
    """A document in the navigation, by the generator's name for it."""

    document: str
    title: str = ""
    """The title in the navigation; empty where the document's own title is used."""


@dataclass(frozen=True, slots=True)
class NavSection:
    """Documents under a label."""

    label: str
    items: tuple["NavItem", ...]


NavItem: TypeAlias = NavEntry | NavSection


@dataclass(frozen=True, slots=True)
class NavPosition:
    """Where the navigation puts a document: under which title, in which part of the book."""

    document: str
    title: str
    module: str


def make_budget() -> Iterator[int]:
    """One number for each item that a navigation may have. One that contains itself would otherwise be endless."""
    return iter(range(50_000))


def arrange_documents(items: Sequence[NavItem], modules: Mapping[str, str]) -> list[NavPosition]:
    """All documents of `modules` in reading order, each once, at its first position.

    A module is an outermost section. A single section around all others is the book itself: then the sections in it
    are the modules. Documents outside of the navigation come last, each in its module of `modules`.
    """
    outermost = [item for item in items if isinstance(item, NavSection)]
    inner = outermost[0].items if len(outermost) == 1 else ()
    around = outermost[0] if any(isinstance(item, NavSection) for item in inner) else None
    found: dict[str, NavPosition] = {}
    for item in items:
        if item is around and around is not None:
            for below in around.items:
                _add_entries(below, below.label if isinstance(below, NavSection) else around.label, found)
        else:
            _add_entries(item, item.label if isinstance(item, NavSection) else "", found)
    rest = [NavPosition(document, "", module) for document, module in modules.items() if document not in found]
    return [*(at for at in found.values() if at.document in modules), *rest]


def _add_entries(item: NavItem, module: str, found: dict[str, NavPosition]) -> None:
    for entry in iterate_entries(item):
        found.setdefault(entry.document, NavPosition(entry.document, entry.title, module))


def iterate_entries(item: NavItem) -> Iterator[NavEntry]:
    """Every document below an item, in order."""
    if isinstance(item, NavEntry):
        yield item
    else:
        for inner in item.items:
            yield from iterate_entries(inner)
