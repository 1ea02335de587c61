"""The configuration of a Docusaurus site, as far as it decides where its documents are published.

The sidebars of Docusaurus: spelled out, or made from the folders.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from bythebook.sources.projects.js_literals import exported
from bythebook.sources.projects.navigation import Allowance, Entry, Section
from bythebook.sources.urls import without_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from bythebook.sources.projects.navigation import Item


_PLACEHOLDERS = ("https://your-docusaurus", "https://tutorial.docusaurus.io")


@dataclass(frozen=True, slots=True)
class Plugin:
    """One folder of documents or posts, with its options."""

    kind: str
    """docs, blog or pages."""
    id: str
    path: str
    route: str
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Site:
    """What the configuration says."""

    url: str
    base: str
    trailing_slash: bool | None
    locale: str
    """The one the site itself is in."""
    locales: dict[str, dict[str, Any]]
    """All of them, with what is said about each."""
    translations: str
    """The folder they are in."""
    plugins: tuple[Plugin, ...]


def site(file: Path) -> Site:
    """Read a configuration. What it does not spell out is as Docusaurus has it by default."""
    found = exported(file.read_text(encoding="utf-8", errors="replace"))
    config: dict[str, Any] = found if isinstance(found, dict) else {}
    i18n = _dictionary(config.get("i18n"))
    url = _text(config.get("url"))
    default = _text(i18n.get("defaultLocale")) or "en"
    names = [name for name in _list(i18n.get("locales")) if isinstance(name, str)] or [default]
    trailing = config.get("trailingSlash")
    return Site(
        url="" if url.startswith(_PLACEHOLDERS) else url.rstrip("/"),
        base="/" + f"{_text(config.get('baseUrl')).strip('/')}/".lstrip("/"),
        trailing_slash=trailing if isinstance(trailing, bool) else None,
        locale=default,
        locales={name: _dictionary(_dictionary(i18n.get("localeConfigs")).get(name)) for name in names},
        translations=_text(i18n.get("path")) or "i18n",
        plugins=tuple(_plugins(config)),
    )


def _plugins(config: dict[str, Any]) -> Iterator[Plugin]:
    presets = [_named(item) for item in _list(config.get("presets"))]
    classic = [options for name, options in presets if "classic" in name or not name]
    for options in classic or ([{}] if not _list(config.get("plugins")) else []):
        for kind in ("docs", "blog", "pages"):
            if options.get(kind, {}) is not False:
                yield _plugin(kind, _dictionary(options.get(kind)))
    for name, options in map(_named, _list(config.get("plugins"))):
        kind = next((kind for kind in ("docs", "blog", "pages") if name.endswith(f"content-{kind}")), "")
        if kind:
            yield _plugin(kind, options)


def _plugin(kind: str, options: dict[str, Any]) -> Plugin:
    path = _text(options.get("path")) or ("src/pages" if kind == "pages" else kind)
    route = options.get("routeBasePath")
    usual = "" if kind == "pages" else kind
    route = route if isinstance(route, str) else usual
    return Plugin(kind, _text(options.get("id")) or "default", path, route.strip("/"), options)


def _named(item: Any) -> tuple[str, dict[str, Any]]:
    """A preset or plugin: its name, and its options where it has some."""
    if isinstance(item, list):
        return _text(item[0] if item else ""), _dictionary(item[1] if len(item) > 1 else {})
    return _text(item) or "-", {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _dictionary(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


_DEEPEST = 30
_LAST = float("inf")


@dataclass(frozen=True, slots=True)
class Document:
    """What a sidebar needs to know of a document."""

    id: str
    folder: tuple[str, ...]
    """The folders it is in, as they are named on disk."""
    name: str
    """Of its file."""
    position: float
    title: str
    """What a folder is called that this document stands for."""


@dataclass(frozen=True, slots=True)
class Category:
    """What `_category_.json` says about a folder."""

    label: str = ""
    position: float | None = None
    link: str | None = None
    """The id of the document that stands for it; empty for none; None where the file is silent."""


def spelled_out(file: Path) -> dict[str, Any] | None:
    """The sidebars in a file, by their names. None where it has none that can be read."""
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
        found = json.loads(text) if file.suffix == ".json" else exported(text)
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and found else None


@dataclass(frozen=True, slots=True)
class Sidebars:
    """Turns sidebars into navigation."""

    documents: Sequence[Document]
    category: Callable[[tuple[str, ...]], Category]
    translated: Callable[[str, str], str]
    """The label of a category in another language, by the name of its sidebar."""
    _allowance: Allowance = field(default_factory=Allowance)

    def items(self, sidebars: dict[str, Any]) -> list[Item]:
        """The items of all sidebars, one after the other."""
        return [item for name, content in sidebars.items() for item in self._items(content, name, 0)]

    def _items(self, content: Any, sidebar: str, depth: int) -> Iterator[Item]:
        if depth > _DEEPEST or not self._allowance.take():
            return
        if isinstance(content, dict) and "type" not in content:
            for label, inner in content.items():
                yield self._section(label, self._items(inner, sidebar, depth + 1), sidebar)
        elif isinstance(content, dict):
            yield from self._item(content, sidebar, depth)
        elif isinstance(content, str):
            yield Entry(_unversioned(content))
        elif isinstance(content, list):
            for inner in content:
                yield from self._items(inner, sidebar, depth + 1)

    def _item(self, item: dict[str, Any], sidebar: str, depth: int) -> Iterator[Item]:
        kind = item.get("type")
        if kind == "doc" and isinstance(item.get("id"), str):
            yield Entry(_unversioned(item["id"]))
        elif kind == "autogenerated" and isinstance(item.get("dirName"), str):
            folder = tuple(part for part in item["dirName"].split("/") if part not in ("", "."))
            yield from self.generated(folder, sidebar)
        elif kind == "category" and isinstance(item.get("label"), str):
            link = item.get("link")
            own = link.get("id") if isinstance(link, dict) and link.get("type") == "doc" else None
            lead = [Entry(_unversioned(own))] if isinstance(own, str) else []
            inner = self._items(item.get("items"), sidebar, depth + 1)
            yield self._section(item["label"], [*lead, *inner], sidebar)

    def _section(self, label: str, items: Iterator[Item] | list[Item], sidebar: str) -> Section:
        return Section(self.translated(label, sidebar), tuple(items))

    def generated(self, folder: tuple[str, ...], sidebar: str) -> list[Item]:
        """The documents and folders below a folder: by position, and by name where they have none."""
        return [item for _, _, item in sorted(self._below(folder, sidebar), key=lambda found: found[:2])]

    def _below(self, folder: tuple[str, ...], sidebar: str) -> Iterator[tuple[float, str, Item]]:
        inside = [document for document in self.documents if document.folder[: len(folder)] == folder]
        for document in inside:
            if document.folder == folder:
                yield document.position, document.name, Entry(document.id)
        for name in dict.fromkeys(document.folder[len(folder)] for document in inside if document.folder != folder):
            if len(folder) < _DEEPEST:
                yield self._folder((*folder, name), sidebar)

    def _folder(self, folder: tuple[str, ...], sidebar: str) -> tuple[float, str, Item]:
        said, name = self.category(folder), folder[-1]
        own = self._index(folder, said.link)
        items = [item for item in self.generated(folder, sidebar) if own is None or item != Entry(own.id)]
        label = said.label or (own.title if own else "") or without_number(name)
        position = said.position
        if position is None:
            position = own.position if own and own.position != _LAST else number(name)
        lead = [Entry(own.id)] if own else []
        return position, name, self._section(label, [*lead, *items], sidebar)

    def _index(self, folder: tuple[str, ...], link: str | None) -> Document | None:
        """The document that stands for a folder: the one that is named, or the one with the name of an index."""
        if link is not None:
            wanted = _unversioned(link)
            local = "/".join((*map(without_number, folder), wanted))
            return next((found for found in self.documents if link and found.id in (wanted, local)), None)
        usual = ("index", "readme", folder[-1].lower())
        here = [found for found in self.documents if found.folder == folder]
        return next((found for found in here if PurePosixPath(found.name).stem.lower() in usual), None)


def number(name: str) -> float:
    """The number in front of a name that sorts it; beyond all numbers where there is none."""
    rest = without_number(name)
    digits = name[: len(name) - len(rest)].rstrip("-_. \t")
    return float(digits) if digits.isascii() and digits.isdigit() else _LAST


def _unversioned(document: str) -> str:
    """Old sidebars of a version have it in front of every id."""
    first, slash, rest = document.partition("/")
    return rest if slash and first.startswith("version-") else document
