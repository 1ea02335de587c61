"""Docusaurus projects: versions, translations, slugs and sidebars; and the Markdown that pages import."""

import json
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urljoin

from bythebook.errors import InputError
from bythebook.sources import SkippedPage
from bythebook.sources.folder import module_from_path, walk
from bythebook.sources.projects import NonContent, Outline, ProjectOptions, ProjectPage, Style, exclusions, includes
from bythebook.sources.projects.docusaurus_config import (
    ContentPlugin,
    DocusaurusConfig,
    SidebarBuilder,
    SidebarDocument,
    parse_number_prefix,
    read_config,
    read_sidebars,
)
from bythebook.sources.projects.metadata import DocumentMetadata, MetadataCache, find_markdown_title
from bythebook.sources.projects.navigation import arrange_documents
from bythebook.sources.projects.yaml_files import read_optional_mapping
from bythebook.sources.readers import front_matter
from bythebook.sources.urls import strip_number_prefix

_DOCUMENT_SUFFIXES = frozenset([".md", ".mdx"])
_CURRENT = "current"
_POST = re.compile(r"(?P<folder>.*)(?P<date>\d{4}[-/]\d{1,2}[-/]\d{1,2})[-/]?(?P<text>.*?)(?:/index)?")
_CATEGORY_FILES = ("_category_.json", "_category_.yml", "_category_.yaml")


def parse_metadata(fields: dict[str, Any], text: str, file: Path) -> DocumentMetadata:
    return DocumentMetadata(
        fields,
        str(fields["title"]) if "title" in fields else find_markdown_title(text),
        find_references(text),
        is_sample=exclusions.is_sample(file, text),
    )


def read_outline(
    root: Path, config_file: Path, *, within: Path, options: ProjectOptions, metadata: MetadataCache
) -> Outline:
    """The documents that a Docusaurus project publishes, in the order of its sidebars."""
    config = read_config(config_file)
    locale = _choose_locale(config, options.locale)
    skipped: list[SkippedPage] = []
    pages: list[ProjectPage] = []
    inside = [plugin for plugin in config.plugins if _is_inside(root, plugin, within, skipped)]
    docs = [plugin for plugin in inside if plugin.kind == "docs"]
    _check_version(root, docs, options.version)
    for plugin in docs:
        pages.extend(_Docs(root, config, plugin, locale, options.version, metadata).pages(skipped))
    for plugin in inside:
        if plugin.kind == "blog":
            pages.extend(_list_posts(root, config, plugin, locale, metadata))
        elif plugin.kind == "pages":
            pages.extend(_list_pages(root, config, plugin, locale))
    pages.extend(exclusions.list_repository_files(root, published={page.file.resolve() for page in pages}))
    included = make_include_resolver(root, within=within, metadata=metadata)
    return Outline(
        config.url,
        config.base_path,
        tuple(pages),
        skipped=tuple(skipped),
        prepare=included.prepare,
        included_files=included.included_files,
    )


def _is_inside(root: Path, plugin: ContentPlugin, within: Path, skipped: list[SkippedPage]) -> bool:
    """Whether the folder of the plugin exists inside `within`. A folder outside is added to `skipped`."""
    folder = (root / plugin.path).resolve()
    if not folder.is_dir():
        return False
    if not folder.is_relative_to(within):
        skipped.append(SkippedPage(plugin.path, "the folder is outside the project and its repository"))
        return False
    return True


def _choose_locale(config: DocusaurusConfig, wanted: str) -> str:
    if wanted and wanted not in {*config.locales, config.locale}:
        known = ", ".join(map(repr, config.locales))
        raise InputError(f"the site has no locale {wanted!r}. It has {known}; choose one with --site-locale.")
    return wanted or config.locale


def _list_versions(root: Path, plugin: ContentPlugin) -> dict[str, str]:
    """The path of the pages of each version below the docs. The default version is first."""
    try:
        names = json.loads((root / f"{_prefix(plugin)}versions.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        names = []
    known = [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
    only, last, versions = map(plugin.options.get, ("onlyIncludeVersions", "lastVersion", "versions"))
    if plugin.options.get("includeCurrentVersion") is not False:
        known = [*known, _CURRENT]
    if isinstance(only, list):
        known = [name for name in known if name in only]
    last = last if last in known else next(iter(known), _CURRENT)
    paths: dict[str, str] = {}
    for name in sorted(known, key=lambda name: name != last):
        options = versions.get(name) if isinstance(versions, dict) else None
        path = options.get("path") if isinstance(options, dict) else None
        usual = "" if name == last else ("next" if name == _CURRENT else name)
        paths[name] = path.strip("/") if isinstance(path, str) else usual
    return paths


def _check_version(root: Path, docs: list[ContentPlugin], wanted: str) -> None:
    known = list(dict.fromkeys(version for plugin in docs for version in _list_versions(root, plugin)))
    if wanted and wanted != "next" and wanted not in known:
        raise InputError(
            f"the site has no version {wanted!r}. It has {', '.join(map(repr, known))}; choose one with --site-version."
        )


def _prefix(plugin: ContentPlugin) -> str:
    return "" if plugin.id == "default" else f"{plugin.id}_"


@dataclass(frozen=True)
class _Docs:
    """The documents of one plugin in one version and one language."""

    root: Path
    config: DocusaurusConfig
    plugin: ContentPlugin
    locale: str
    wanted: str
    metadata: MetadataCache

    @cached_property
    def version(self) -> tuple[str, str]:
        """The name of the version, and the path of its pages below the docs."""
        versions = _list_versions(self.root, self.plugin)
        wanted = _CURRENT if self.wanted == "next" else self.wanted
        name = wanted if wanted in versions else next(iter(versions), _CURRENT)
        return name, versions.get(name, "")

    @cached_property
    def folders(self) -> tuple[Path, ...]:
        """The folders of the documents, with the translations first."""
        name, prefix = self.version[0], _prefix(self.plugin)
        here = self.plugin.path if name == _CURRENT else f"{prefix}versioned_docs/version-{name}"
        return (self._translations / self._label, (self.root / here).resolve())

    @property
    def _label(self) -> str:
        name = self.version[0]
        return name if name == _CURRENT else f"version-{name}"

    @property
    def _translations(self) -> Path:
        return _translation_folder(self.root, self.config, self.plugin, self.locale)

    def pages(self, skipped: list[SkippedPage]) -> list[ProjectPage]:
        found = list(self._documents(skipped))
        items = self._items([document for document, _ in found])
        pages = {page.chapter: page for _, page in found}
        order = arrange_documents(items, {name: page.module for name, page in pages.items()})
        return [replace(pages[at.document], module=at.module) for at in order]

    def _documents(self, skipped: list[SkippedPage]) -> Iterator[tuple[SidebarDocument, ProjectPage]]:
        translated, folder = self.folders
        for path in walk(folder, style=Style.DOCUSAURUS) if folder.is_dir() else ():
            if isinstance(path, SkippedPage):
                skipped.append(replace(path, path=f"{folder.name}/{path.path}"))
            elif self._is_document(path):
                file = translated / path if (translated / path).is_file() else folder / path
                yield self._document(file, path)

    def _is_document(self, path: PurePosixPath) -> bool:
        include, exclude = (self.plugin.options.get(name) for name in ("include", "exclude"))
        wanted = [text for text in include if isinstance(text, str)] if isinstance(include, list) else ["**/*.{md,mdx}"]
        unwanted = [text for text in exclude if isinstance(text, str)] if isinstance(exclude, list) else []
        return (
            path.suffix in _DOCUMENT_SUFFIXES
            and exclusions.matches_glob(str(path), wanted)
            and not exclusions.matches_glob(str(path), unwanted)
        )

    def _document(self, file: Path, path: PurePosixPath) -> tuple[SidebarDocument, ProjectPage]:
        metadata = self.metadata.get(file)
        plain = metadata.fields.get("parse_number_prefixes", self.plugin.options.get("numberPrefixParser")) is False
        bare = str if plain else strip_number_prefix
        name = metadata.get_text("id") or bare(path.stem)
        folders = [bare(part) for part in path.parent.parts]
        document = "/".join((*folders, name))
        slug = _document_slug(path, folders, metadata.get_text("slug"), name)
        route = _route(self.config, self.locale, f"{self.plugin.route}/{self.version[1]}/{slug}")
        position = metadata.get_number("sidebar_position")
        if position is None:
            position = float("inf") if plain else parse_number_prefix(path.stem)
        page = ProjectPage(
            file,
            route,
            document,
            module=module_from_path(PurePosixPath(*folders, name)),
            **_classify_page(path, metadata),
        )
        label = metadata.get_text("sidebar_label") or metadata.title
        return SidebarDocument(document, path.parent.parts, path.name, position, label), page

    def _items(self, documents: list[SidebarDocument]) -> list[Any]:
        sidebars = SidebarBuilder(documents, self._category, self._labels())
        content = self._sidebars()
        return sidebars.items(content) if content is not None else sidebars.generate((), "defaultSidebar")

    def _sidebars(self) -> dict[str, Any] | None:
        if self.version[0] != _CURRENT:
            return read_sidebars(self.root / f"{_prefix(self.plugin)}versioned_sidebars/{self._label}-sidebars.json")
        path = self.plugin.options.get("sidebarPath")
        if path is False:
            return {}
        names = [path] if isinstance(path, str) else ["sidebars.json", "sidebars.js", "sidebars.ts"]
        found = (read_sidebars(self.root / name.removeprefix("@site/").lstrip("/")) for name in names)
        return next(filter(None, found), None)

    def _category(self, folder: tuple[str, ...]) -> dict[str, Any]:
        for parent in self.folders:
            for name in _CATEGORY_FILES:
                fields = read_optional_mapping(parent.joinpath(*folder, name))
                if fields is not None:
                    return fields
        return {}

    def _labels(self) -> Any:
        messages = read_optional_mapping(self._translations / f"{self._label}.json") or {}

        def translate(label: str, sidebar: str) -> str:
            found = messages.get(f"sidebar.{sidebar}.category.{label}")
            message = found.get("message") if isinstance(found, dict) else None
            return message if isinstance(message, str) and message else label

        return translate


def _classify_page(path: PurePosixPath, metadata: DocumentMetadata) -> dict[str, Any]:
    if metadata.fields.get("draft") is True:
        return {"reason": "a draft, which is not published"}
    if metadata.fields.get("unlisted") is True:
        return {"category": NonContent.UNLISTED, "reason": "unlisted: its author does not want it to be found"}
    if metadata.is_sample:
        return {"category": NonContent.STARTER, "reason": "a sample page that comes with Docusaurus"}
    if exclusions.is_changelog(path.stem):
        return {"category": NonContent.CHANGELOG, "reason": "a list of changes"}
    return {}


def _document_slug(path: PurePosixPath, folders: list[str], slug: str, name: str) -> str:
    """The path of a document below its version. The path of an index ends in a slash."""
    here = "/" + "".join(f"{folder}/" for folder in folders)
    if slug.startswith("/"):
        return slug
    parent = path.parent.name.lower()
    if not slug and path.stem.lower() in ("index", "readme", parent):
        return here
    return urljoin(here, (slug or name).replace(":", "%3A")).replace("%3A", ":")


def _route(site: DocusaurusConfig, locale: str, path: str) -> str:
    prefix = "" if locale == site.locale else f"{locale}/"
    ends = path.endswith("/")
    route = posixpath.normpath(f"/{prefix}{path}").replace("//", "/")
    if site.trailing_slash is False or route == "/":
        return route
    return route + "/" if ends or site.trailing_slash else route


def _translation_folder(root: Path, site: DocusaurusConfig, plugin: ContentPlugin, locale: str) -> Path:
    name = f"docusaurus-plugin-content-{plugin.kind}" + ("" if plugin.id == "default" else f"-{plugin.id}")
    folder = site.locales.get(locale, {}).get("path")
    return root / site.translations / (folder if isinstance(folder, str) else locale) / name


def _list_posts(
    root: Path, site: DocusaurusConfig, plugin: ContentPlugin, locale: str, metadata: MetadataCache
) -> Iterator[ProjectPage]:
    folder = (root / plugin.path).resolve()
    for path in walk(folder, style=Style.DOCUSAURUS):
        if isinstance(path, SkippedPage) or path.suffix not in _DOCUMENT_SUFFIXES:
            continue
        translated = _translation_folder(root, site, plugin, locale) / path
        file = translated if translated.is_file() else folder / path
        name = str(path.with_suffix(""))
        dated = _POST.fullmatch(name)
        usual = f"{dated['date'].replace('-', '/')}/{dated['folder']}{dated['text']}" if dated else name
        slug = metadata.get(file).get_text("slug") or usual.removesuffix("/index")
        route = _route(site, locale, f"{plugin.route}/{slug.lstrip('/')}")
        yield ProjectPage(
            file, route, f"{plugin.path}/{name}", module="Blog", category=NonContent.BLOG, reason="a blog post"
        )


def _list_pages(root: Path, site: DocusaurusConfig, plugin: ContentPlugin, locale: str) -> Iterator[ProjectPage]:
    folder = (root / plugin.path).resolve()
    for path in walk(folder, style=Style.DOCUSAURUS):
        if isinstance(path, SkippedPage) or path.suffix not in {*_DOCUMENT_SUFFIXES, ".js", ".jsx", ".ts", ".tsx"}:
            continue
        if any(path.name.endswith(f"{mark}{path.suffix}") for mark in (".d", ".test", ".spec", ".module")):
            continue
        file, name = folder / path, str(path.with_suffix(""))
        if path.suffix not in _DOCUMENT_SUFFIXES:
            yield ProjectPage(file, "", name, reason="a page made of components, outside of the docs")
            continue
        home = "" if name == "index" else name.removesuffix("/index")
        route = _route(site, locale, f"{plugin.route}/{home}")
        yield ProjectPage(
            file, route, f"{plugin.path}/{name}", category=NonContent.PAGES, reason="a page outside of the docs"
        )


_IMPORT = re.compile(
    r"^import[ \t]+(?P<name>\w+)[ \t]+from[ \t]+(?P<quote>['\"])(?P<path>[^'\"\n]+\.mdx?)(?P=quote);?", re.MULTILINE
)
_PROPERTY = re.compile(r"(\w+)=(?:\"([^\"]*)\"|'([^']*)'|\{\s*['\"]([^'\"]*)['\"]\s*\})")
_PROPERTY_USE = re.compile(r"\{\s*props\.(\w+)\s*\}")


def find_references(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(match["path"] for match in _IMPORT.finditer(text))) if "import" in text else ()


def make_include_resolver(root: Path, *, within: Path, metadata: MetadataCache) -> includes.IncludeResolver:
    def find(reference: str, file: Path) -> Path:
        inside = reference.removeprefix("@site/")
        return root / inside if inside != reference else file.parent / reference

    return includes.IncludeResolver(within, metadata, find, _insert_imports)


def _insert_imports(text: str, load: includes.Load) -> str:
    for match in list(_IMPORT.finditer(text)):
        content = load(match["path"])
        if content is not None:
            text = _insert_markdown(text, match["name"], content)
    return text


def _insert_markdown(text: str, name: str, content: str) -> str:
    """Replace `<Name />` by the Markdown imported under that name."""
    body = front_matter.parse_front_matter(content)[1].strip("\n")
    tag = re.compile(rf"<{name}(?P<given>(?:\s[^<>]*?)?)\s*(?:/>|>\s*</{name}>)")

    def replacement(match: re.Match[str]) -> str:
        given = {name: "".join(values) for name, *values in _PROPERTY.findall(match["given"])}
        filled = _PROPERTY_USE.sub(lambda used: given.get(used[1], used[0]), body)
        return f"\n\n{filled}\n\n"

    return includes.replace_outside_code(text, lambda part: tag.sub(replacement, part))
