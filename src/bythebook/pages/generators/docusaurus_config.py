"""The configuration of a Docusaurus site, as far as it decides where its documents are published."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bythebook.pages.generators.literals import exported

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

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
