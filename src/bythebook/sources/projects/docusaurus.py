"""Docusaurus: versions, translations, slugs, sidebars, and the documents they arrange.

What a Docusaurus page imports and shows as it is: other Markdown, and files of code.
"""

from __future__ import annotations

import json
import posixpath
import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from bythebook.errors import InputError
from bythebook.sources import Skipped
from bythebook.sources.document import fenced
from bythebook.sources.folder import walk
from bythebook.sources.projects import Aside, Outline, Place, Style, exclusions, includes, yaml_files
from bythebook.sources.projects.docusaurus_config import (
    Category,
    Document,
    Plugin,
    Sidebars,
    Site,
    number,
    site,
    spelled_out,
)
from bythebook.sources.projects.exclusions import matches
from bythebook.sources.projects.includes import Inclusion
from bythebook.sources.projects.metadata import Glance, Glances, heading_of_markdown
from bythebook.sources.projects.navigation import Arranged, arranged
from bythebook.sources.readers import front_matter
from bythebook.sources.urls import without_number

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path, PurePosixPath

    from bythebook.sources.projects import Wish
    from bythebook.sources.projects.includes import Load
    from bythebook.sources.projects.metadata import Glances


_WRITTEN = frozenset([".md", ".mdx"])
_CURRENT = "current"
_POST = re.compile(r"(?P<folder>.*)(?P<date>\d{4}[-/]\d{1,2}[-/]\d{1,2})[-/]?(?P<text>.*?)(?:/index)?")
_CATEGORY_FILES = ("_category_.json", "_category_.yml", "_category_.yaml")


def look(fields: dict[str, Any], text: str, file: Path) -> Glance:
    return Glance(
        fields,
        heading_of_markdown(text) if "title" not in fields else str(fields["title"]),
        references(text),
        ("sample",) if exclusions.is_sample(file, text) else (),
    )


def outline(root: Path, config: Path, *, within: Path, wish: Wish, glances: Glances) -> Outline:
    """What a Docusaurus project publishes, as `wish` wants it."""
    said = site(config)
    locale = _locale(said, wish.locale)
    skipped: list[Skipped] = []
    places: list[Place] = []
    inside = [plugin for plugin in said.plugins if _is_inside(root, plugin, within, skipped)]
    docs = [plugin for plugin in inside if plugin.kind == "docs"]
    _check_version(root, docs, wish.version)
    for plugin in docs:
        places.extend(_Docs(root, said, plugin, locale, wish.version, glances).places(skipped))
    for plugin in inside:
        if plugin.kind == "blog":
            places.extend(_posts(root, said, plugin, locale, glances))
        elif plugin.kind == "pages":
            places.extend(_pages(root, said, plugin, locale))
    places.extend(exclusions.of_the_repository(root, published={place.file.resolve() for place in places}))
    included = inclusion(root, within=within, glances=glances)
    return Outline(
        said.url,
        said.base,
        tuple(places),
        skipped=tuple(skipped),
        prepare=included.prepare,
        parts=included.parts,
    )


def _is_inside(root: Path, plugin: Plugin, within: Path, skipped: list[Skipped]) -> bool:
    """Whether there is such a folder. One that is outside of the project is reported."""
    folder = (root / plugin.path).resolve()
    if not folder.is_dir():
        return False
    if not folder.is_relative_to(within):
        skipped.append(Skipped(plugin.path, "the folder is outside of the project, and of the repository it is in"))
        return False
    return True


def _locale(said: Site, wanted: str) -> str:
    if wanted and wanted not in {*said.locales, said.locale}:
        known = ", ".join(map(repr, said.locales))
        raise InputError(f"the site has no locale {wanted!r}. It has {known}; choose one with --site-locale.")
    return wanted or said.locale


@dataclass(frozen=True, slots=True)
class _Version:
    name: str
    path: str
    """Of its pages below the docs; empty for the one readers see first."""


def _versions(root: Path, plugin: Plugin) -> list[_Version]:
    """The versions of these documents, the one readers see first in front."""
    try:
        names = json.loads((root / f"{_prefix(plugin)}versions.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        names = []
    known = [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
    only = plugin.options.get("onlyIncludeVersions")
    if plugin.options.get("includeCurrentVersion") is not False:
        known = [*known, _CURRENT]
    if isinstance(only, list):
        known = [name for name in known if name in only]
    last = plugin.options.get("lastVersion")
    last = last if last in known else next(iter(known), _CURRENT)
    said = plugin.options.get("versions")
    found = [_version(name, last, said if isinstance(said, dict) else {}) for name in known]
    return sorted(found, key=lambda version: version.name != last)


def _version(name: str, last: str, said: dict[str, Any]) -> _Version:
    options = said.get(name)
    path = options.get("path") if isinstance(options, dict) else None
    usual = "" if name == last else ("next" if name == _CURRENT else name)
    return _Version(name, path.strip("/") if isinstance(path, str) else usual)


def _chosen(versions: list[_Version], wanted: str) -> _Version:
    wanted = _CURRENT if wanted == "next" else wanted
    usual = versions[0] if versions else _Version(_CURRENT, "")
    return next((version for version in versions if version.name == wanted), usual)


def _check_version(root: Path, docs: list[Plugin], wanted: str) -> None:
    known = list(dict.fromkeys(version.name for plugin in docs for version in _versions(root, plugin)))
    if wanted and wanted != "next" and wanted not in known:
        raise InputError(
            f"the site has no version {wanted!r}. It has {', '.join(map(repr, known))}; choose one with --site-version."
        )


def _prefix(plugin: Plugin) -> str:
    return "" if plugin.id == "default" else f"{plugin.id}_"


@dataclass(frozen=True)
class _Docs:
    """The documents of one plugin in one version and one language."""

    root: Path
    site: Site
    plugin: Plugin
    locale: str
    wanted: str
    glances: Glances

    @cached_property
    def version(self) -> _Version:
        return _chosen(_versions(self.root, self.plugin), self.wanted)

    @cached_property
    def folders(self) -> tuple[Path, ...]:
        """Where the documents are: the translated ones first."""
        name, prefix = self.version.name, _prefix(self.plugin)
        here = self.plugin.path if name == _CURRENT else f"{prefix}versioned_docs/version-{name}"
        return (self._translated / self._label, (self.root / here).resolve())

    @property
    def _label(self) -> str:
        return _CURRENT if self.version.name == _CURRENT else f"version-{self.version.name}"

    @property
    def _translated(self) -> Path:
        return _translations(self.root, self.site, self.plugin, self.locale)

    def places(self, skipped: list[Skipped]) -> list[Place]:
        found = dict(self._documents(skipped))
        order = arranged(self._items([document for document, _ in found.values()]))
        by_id = {document.id: (file, place) for file, (document, place) in found.items()}
        inside = [_arranged(by_id[name][1], at) for name, at in order.items() if name in by_id]
        return [*inside, *(place for name, (_, place) in by_id.items() if name not in order)]

    def _documents(self, skipped: list[Skipped]) -> Iterator[tuple[str, tuple[Document, Place]]]:
        translated, folder = self.folders
        for path in walk(folder, style=Style.DOCUSAURUS) if folder.is_dir() else ():
            if isinstance(path, Skipped):
                skipped.append(replace(path, path=f"{folder.name}/{path.path}"))
            elif self._is_document(path):
                file = translated / path if (translated / path).is_file() else folder / path
                yield str(path), self._document(file, path)

    def _is_document(self, path: PurePosixPath) -> bool:
        include, exclude = (self.plugin.options.get(name) for name in ("include", "exclude"))
        wanted = [text for text in include if isinstance(text, str)] if isinstance(include, list) else ["**/*.{md,mdx}"]
        unwanted = [text for text in exclude if isinstance(text, str)] if isinstance(exclude, list) else []
        return path.suffix in _WRITTEN and matches(str(path), wanted) and not matches(str(path), unwanted)

    def _document(self, file: Path, path: PurePosixPath) -> tuple[Document, Place]:
        glance = self.glances.of(file)
        plain = glance.fields.get("parse_number_prefixes", self.plugin.options.get("numberPrefixParser")) is False
        bare = str if plain else without_number
        name = glance.word("id") or bare(path.stem)
        folders = [bare(part) for part in path.parent.parts]
        document = "/".join((*folders, name))
        slug = _slug(path, folders, glance.word("slug"), name)
        route = _route(self.site, self.locale, f"{self.plugin.route}/{self.version.path}/{slug}")
        position = glance.number("sidebar_position")
        if position is None:
            position = float("inf") if plain else number(path.stem)
        place = Place(file, route, document, module=_first_folder(path), **_aside(path, glance))
        label = glance.word("sidebar_label") or glance.title
        return Document(document, path.parent.parts, path.name, position, label), place

    def _items(self, documents: list[Document]) -> list[Any]:
        sidebars = Sidebars(documents, self._category, self._labels())
        said = self._sidebars()
        return sidebars.items(said) if said is not None else sidebars.generated((), "defaultSidebar")

    def _sidebars(self) -> dict[str, Any] | None:
        if self.version.name != _CURRENT:
            name = f"{_prefix(self.plugin)}versioned_sidebars/version-{self.version.name}-sidebars.json"
            return spelled_out(self.root / name)
        path = self.plugin.options.get("sidebarPath")
        if path is False:
            return {}
        names = [path] if isinstance(path, str) else ["sidebars.json", "sidebars.js", "sidebars.ts"]
        return next(filter(None, (spelled_out(_inside(self.root, name)) for name in names)), None)

    def _category(self, folder: tuple[str, ...]) -> Category:
        for place in self.folders:
            for name in _CATEGORY_FILES:
                said = yaml_files.mapping(place.joinpath(*folder, name))
                if said is not None:
                    return _category(said)
        return Category()

    def _labels(self) -> Any:
        messages = yaml_files.mapping(self._translated / f"{self._label}.json") or {}

        def translated(label: str, sidebar: str) -> str:
            found = messages.get(f"sidebar.{sidebar}.category.{label}")
            message = found.get("message") if isinstance(found, dict) else None
            return message if isinstance(message, str) and message else label

        return translated


def _arranged(place: Place, at: Arranged) -> Place:
    return replace(place, module=at.module)


def _category(said: dict[str, Any]) -> Category:
    label, position, link = said.get("label"), said.get("position"), said.get("link", ...)
    target: str | None = None
    if link is not ...:
        own = link.get("id") if isinstance(link, dict) and link.get("type") == "doc" else None
        target = own if isinstance(own, str) else ""
    return Category(
        label if isinstance(label, str) else "",
        float(position) if isinstance(position, int | float) else None,
        target,
    )


def _inside(root: Path, name: str) -> Path:
    return root / name.removeprefix("@site/").lstrip("/")


def _first_folder(path: PurePosixPath) -> str:
    from bythebook.sources.folder import humanised

    return humanised(without_number(path.parts[0])) if len(path.parts) > 1 else ""


def _aside(path: PurePosixPath, glance: Glance) -> dict[str, Any]:
    if glance.fields.get("draft") is True:
        return {"reason": "a draft, which is not published"}
    if glance.fields.get("unlisted") is True:
        return {"aside": Aside.UNLISTED, "reason": "unlisted: its author does not want it to be found"}
    if "sample" in glance.contents:
        return {"aside": Aside.STARTER, "reason": "a sample page that comes with Docusaurus"}
    if exclusions.is_changelog(path.stem):
        return {"aside": Aside.CHANGELOG, "reason": "a list of changes"}
    return {}


def _slug(path: PurePosixPath, folders: list[str], slug: str, name: str) -> str:
    """The address of a document below its version. That of an index ends in a slash."""
    here = "/" + "".join(f"{folder}/" for folder in folders)
    if slug.startswith("/"):
        return slug
    parent = path.parent.name.lower()
    if not slug and path.stem.lower() in ("index", "readme", parent):
        return here
    return urljoin(here, (slug or name).replace(":", "%3A")).replace("%3A", ":")


def _route(site: Site, locale: str, path: str) -> str:
    prefix = "" if locale == site.locale else f"{locale}/"
    ends = path.endswith("/")
    route = posixpath.normpath(f"/{prefix}{path}").replace("//", "/")
    if site.trailing_slash is False or route == "/":
        return route
    return route + "/" if ends or site.trailing_slash else route


def _translations(root: Path, site: Site, plugin: Plugin, locale: str) -> Path:
    name = f"docusaurus-plugin-content-{plugin.kind}" + ("" if plugin.id == "default" else f"-{plugin.id}")
    folder = site.locales.get(locale, {}).get("path")
    return root / site.translations / (folder if isinstance(folder, str) else locale) / name


def _posts(root: Path, site: Site, plugin: Plugin, locale: str, glances: Glances) -> Iterator[Place]:
    folder = (root / plugin.path).resolve()
    for path in walk(folder, style=Style.DOCUSAURUS):
        if isinstance(path, Skipped) or path.suffix not in _WRITTEN:
            continue
        translated = _translations(root, site, plugin, locale) / path
        file = translated if translated.is_file() else folder / path
        name = str(path.with_suffix(""))
        dated = _POST.fullmatch(name)
        usual = f"{dated['date'].replace('-', '/')}/{dated['folder']}{dated['text']}" if dated else name
        slug = glances.of(file).word("slug") or usual.removesuffix("/index")
        route = _route(site, locale, f"{plugin.route}/{slug.lstrip('/')}")
        yield Place(file, route, f"{plugin.path}/{name}", module="Blog", aside=Aside.BLOG, reason="a blog post")


def _pages(root: Path, site: Site, plugin: Plugin, locale: str) -> Iterator[Place]:
    folder = (root / plugin.path).resolve()
    for path in walk(folder, style=Style.DOCUSAURUS):
        if isinstance(path, Skipped) or path.suffix not in {*_WRITTEN, ".js", ".jsx", ".ts", ".tsx"}:
            continue
        if any(path.name.endswith(f"{mark}{path.suffix}") for mark in (".d", ".test", ".spec", ".module")):
            continue
        file, name = folder / path, str(path.with_suffix(""))
        if path.suffix not in _WRITTEN:
            yield Place(file, "", name, reason="a page made of components, outside of the docs")
            continue
        home = "" if name == "index" else name.removesuffix("/index")
        route = _route(site, locale, f"{plugin.route}/{home}")
        yield Place(file, route, f"{plugin.path}/{name}", aside=Aside.PAGES, reason="a page outside of the docs")


_RAW = "!!raw-loader!"
_IMPORT = re.compile(
    rf"^import[ \t]+(?P<name>\w+)[ \t]+from[ \t]+(?P<quote>['\"])(?P<path>[^'\"\n]+\.mdx?|{_RAW}[^'\"\n]+)(?P=quote);?",
    re.MULTILINE,
)
_PROPERTY = re.compile(r"(\w+)=(?:\"([^\"]*)\"|'([^']*)'|\{\s*['\"]([^'\"]*)['\"]\s*\})")
_USED = re.compile(r"\{\s*props\.(\w+)\s*\}")
_LANGUAGE = re.compile(r"\blanguage=[\"']([\w+#-]+)[\"']")


def references(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(match["path"] for match in _IMPORT.finditer(text))) if "import" in text else ()


def inclusion(root: Path, *, within: Path, glances: Glances) -> Inclusion:
    def find(reference: str, file: Path) -> Path:
        path = reference.removeprefix(_RAW).partition("?")[0]
        return root / path.removeprefix("@site/") if path.startswith("@site/") else file.parent / path

    return Inclusion(within, glances, find, _insert)


def _insert(text: str, load: Load) -> str:
    for match in list(_IMPORT.finditer(text)):
        content = load(match["path"])
        if content is not None:
            show = _code if match["path"].startswith(_RAW) else _markdown
            text = show(text, match["name"], content)
    return text


def _markdown(text: str, name: str, content: str) -> str:
    """The text with `<Name />` replaced by what was imported under that name."""
    body = front_matter.split(content)[1].strip("\n")
    tag = re.compile(rf"<{name}(?P<given>(?:\s[^<>]*?)?)\s*(?:/>|>\s*</{name}>)")

    def shown(match: re.Match[str]) -> str:
        given = {name: "".join(values) for name, *values in _PROPERTY.findall(match["given"])}
        filled = _USED.sub(lambda used: given.get(used[1], used[0]), body)
        return f"\n\n{filled}\n\n"

    return includes.changed_outside(text, lambda piece: tag.sub(shown, piece))


def _code(text: str, name: str, content: str) -> str:
    """The text with `<CodeBlock>{Name}</CodeBlock>` replaced by a block of that code."""
    block = re.compile(rf"<CodeBlock(?P<given>[^<>]*)>\s*\{{\s*{name}\s*\}}\s*</CodeBlock>")

    def shown(match: re.Match[str]) -> str:
        language = _LANGUAGE.search(match["given"])
        return f"\n\n{fenced(content, language=language[1] if language else '')}\n\n"

    return includes.changed_outside(text, lambda piece: block.sub(shown, piece))
