"""The configuration of a Docusaurus site: its content plugins, its locales, and its sidebars.

Sidebars are written out in a file or generated from the folders.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from bythebook.sources.projects.javascript import parse_export
from bythebook.sources.projects.navigation import NavEntry, NavItem, NavSection, make_budget
from bythebook.sources.urls import strip_number_prefix

_PLACEHOLDERS = ("https://your-docusaurus", "https://tutorial.docusaurus.io")


@dataclass(frozen=True, slots=True)
class ContentPlugin:
    """One folder of documents or posts, with its options."""

    kind: str
    """docs, blog or pages."""
    id: str
    path: str
    route: str
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DocusaurusConfig:
    """The parts of the configuration that determine where documents are published."""

    url: str
    base_path: str
    """The path of the site on its host, with a slash at both ends."""
    trailing_slash: bool | None
    locale: str
    """The default locale."""
    locales: dict[str, dict[str, Any]]
    """All locales with their options."""
    translations: str
    """The folder of the translations."""
    plugins: tuple[ContentPlugin, ...]


def read_config(file: Path) -> DocusaurusConfig:
    """Read a configuration. Values that are not literals get the defaults of Docusaurus."""
    found = parse_export(file.read_text(encoding="utf-8", errors="replace"))
    config: dict[str, Any] = found if isinstance(found, dict) else {}
    i18n = _dictionary(config.get("i18n"))
    url = _text(config.get("url"))
    default = _text(i18n.get("defaultLocale")) or "en"
    names = [name for name in _list(i18n.get("locales")) if isinstance(name, str)] or [default]
    trailing = config.get("trailingSlash")
    return DocusaurusConfig(
        url="" if url.startswith(_PLACEHOLDERS) else url.rstrip("/"),
        base_path="/" + f"{_text(config.get('baseUrl')).strip('/')}/".lstrip("/"),
        trailing_slash=trailing if isinstance(trailing, bool) else None,
        locale=default,
        locales={name: _dictionary(_dictionary(i18n.get("localeConfigs")).get(name)) for name in names},
        translations=_text(i18n.get("path")) or "i18n",
        plugins=tuple(_list_plugins(config)),
    )


def _list_plugins(config: dict[str, Any]) -> Iterator[ContentPlugin]:
    presets = [_parse_plugin_item(item) for item in _list(config.get("presets"))]
    classic = [options for name, options in presets if "classic" in name or not name]
    for options in classic or ([{}] if not _list(config.get("plugins")) else []):
        for kind in ("docs", "blog", "pages"):
            if options.get(kind, {}) is not False:
                yield _make_plugin(kind, _dictionary(options.get(kind)))
    for name, options in map(_parse_plugin_item, _list(config.get("plugins"))):
        kind = next((kind for kind in ("docs", "blog", "pages") if name.endswith(f"content-{kind}")), "")
        if kind:
            yield _make_plugin(kind, options)


def _make_plugin(kind: str, options: dict[str, Any]) -> ContentPlugin:
    path = _text(options.get("path")) or ("src/pages" if kind == "pages" else kind)
    route = options.get("routeBasePath")
    usual = "" if kind == "pages" else kind
    route = route if isinstance(route, str) else usual
    return ContentPlugin(kind, _text(options.get("id")) or "default", path, route.strip("/"), options)


def _parse_plugin_item(item: Any) -> tuple[str, dict[str, Any]]:
    """The name and the options of a preset or plugin."""
    if isinstance(item, list):
        return _text(item[0] if item else ""), _dictionary(item[1] if len(item) > 1 else {})
    return _text(item) or "-", {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _dictionary(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


_MAX_DEPTH = 30
_UNNUMBERED = float("inf")


@dataclass(frozen=True, slots=True)
class SidebarDocument:
    """The metadata of a document from which a sidebar is generated."""

    id: str
    folder: tuple[str, ...]
    """The names of its folders on disk."""
    name: str
    """The name of its file."""
    position: float
    title: str
    """The label of a folder whose index is this document."""


def read_sidebars(file: Path) -> dict[str, Any] | None:
    """The sidebars in a file, by name. None if the file has none or cannot be parsed."""
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
        found = json.loads(text) if file.suffix == ".json" else parse_export(text)
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and found else None


@dataclass(frozen=True, slots=True)
class SidebarBuilder:
    """Converts sidebars to navigation items."""

    documents: Sequence[SidebarDocument]
    category: Callable[[tuple[str, ...]], dict[str, Any]]
    """The fields of the `_category_.json` of a folder."""
    translate: Callable[[str, str], str]
    """Translates the label of a category. The second argument is the name of the sidebar."""
    _budget: Iterator[int] = field(default_factory=make_budget)

    def items(self, sidebars: dict[str, Any]) -> list[NavItem]:
        """The items of all sidebars in order."""
        return [item for name, content in sidebars.items() for item in self._items(content, name, 0)]

    def _items(self, content: Any, sidebar: str, depth: int) -> Iterator[NavItem]:
        if depth > _MAX_DEPTH or next(self._budget, None) is None:
            return
        if isinstance(content, dict) and "type" not in content:
            for label, inner in content.items():
                yield self._section(label, self._items(inner, sidebar, depth + 1), sidebar)
        elif isinstance(content, dict):
            yield from self._item(content, sidebar, depth)
        elif isinstance(content, str):
            yield NavEntry(content)
        elif isinstance(content, list):
            for inner in content:
                yield from self._items(inner, sidebar, depth + 1)

    def _item(self, item: dict[str, Any], sidebar: str, depth: int) -> Iterator[NavItem]:
        kind = item.get("type")
        if kind == "doc" and isinstance(item.get("id"), str):
            yield NavEntry(item["id"])
        elif kind == "autogenerated" and isinstance(item.get("dirName"), str):
            folder = tuple(part for part in item["dirName"].split("/") if part not in ("", "."))
            yield from self.generate(folder, sidebar)
        elif kind == "category" and isinstance(item.get("label"), str):
            own = _linked_document(item)
            lead = [NavEntry(own)] if own else []
            inner = self._items(item.get("items"), sidebar, depth + 1)
            yield self._section(item["label"], [*lead, *inner], sidebar)

    def _section(self, label: str, items: Iterator[NavItem] | list[NavItem], sidebar: str) -> NavSection:
        return NavSection(self.translate(label, sidebar), tuple(items))

    def generate(self, folder: tuple[str, ...], sidebar: str) -> list[NavItem]:
        """The documents and folders below a folder, sorted by position, then by name."""
        return [item for _, _, item in sorted(self._below(folder, sidebar), key=lambda found: found[:2])]

    def _below(self, folder: tuple[str, ...], sidebar: str) -> Iterator[tuple[float, str, NavItem]]:
        inside = [document for document in self.documents if document.folder[: len(folder)] == folder]
        for document in inside:
            if document.folder == folder:
                yield document.position, document.name, NavEntry(document.id)
        for name in dict.fromkeys(document.folder[len(folder)] for document in inside if document.folder != folder):
            if len(folder) < _MAX_DEPTH:
                yield self._folder((*folder, name), sidebar)

    def _folder(self, folder: tuple[str, ...], sidebar: str) -> tuple[float, str, NavItem]:
        category, name = self.category(folder), folder[-1]
        own = self._index(folder, category)
        items = [item for item in self.generate(folder, sidebar) if own is None or item != NavEntry(own.id)]
        label = _text(category.get("label")) or (own.title if own else "") or strip_number_prefix(name)
        position = category.get("position")
        if not isinstance(position, int | float):
            position = own.position if own and own.position != _UNNUMBERED else parse_number_prefix(name)
        lead = [NavEntry(own.id)] if own else []
        return float(position), name, self._section(label, [*lead, *items], sidebar)

    def _index(self, folder: tuple[str, ...], category: dict[str, Any]) -> SidebarDocument | None:
        """The index document of a folder: the one its category links to, or the one with the file name of an index."""
        if "link" in category:
            link = _linked_document(category)
            local = "/".join((*map(strip_number_prefix, folder), link))
            return next((found for found in self.documents if link and found.id in (link, local)), None)
        usual = ("index", "readme", folder[-1].lower())
        here = [found for found in self.documents if found.folder == folder]
        return next((found for found in here if PurePosixPath(found.name).stem.lower() in usual), None)


def _linked_document(category: dict[str, Any]) -> str:
    """The id of the document that a category links to; empty if it links to none."""
    link = _dictionary(category.get("link"))
    return _text(link.get("id")) if link.get("type") == "doc" else ""


def parse_number_prefix(name: str) -> float:
    """The number prefix of a name. Infinity if it has none, so that it is sorted last."""
    rest = strip_number_prefix(name)
    digits = name[: len(name) - len(rest)].rstrip("-_. \t")
    return float(digits) if digits.isascii() and digits.isdigit() else _UNNUMBERED
