"""A project of a documentation generator as a page source, with the order and the URLs of its published site."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Protocol
from urllib.parse import urlsplit

from bythebook.errors import ConfigurationError, InputError
from bythebook.sources import ExcludedPage, ListedPage, Page, SkippedPage, Unreadable, projects
from bythebook.sources.folder import Folder, skip_duplicate
from bythebook.sources.projects import DEFAULT_OPTIONS, Outline, ProjectOptions, ProjectPage, SlugOptions, Style
from bythebook.sources.projects.metadata import MetadataCache
from bythebook.sources.urls import join_url


class OutlineReader(Protocol):
    """Reads the outline of a project of one generator."""

    def __call__(
        self, root: Path, config_file: Path, *, within: Path, options: ProjectOptions, metadata: MetadataCache
    ) -> Outline: ...


_MAX_PARENTS = 6


class Project:
    """A Docusaurus, MkDocs or Sphinx project, recognised by the configuration in its folder.

    `site_url` is where the site is published. The default is the URL in the configuration; if there is none, pages
    have `file:` URLs. Every listing reads the configuration again.
    """

    def __init__(self, root: str | Path, *, site_url: str = "", options: ProjectOptions = DEFAULT_OPTIONS) -> None:
        self._root = Path(root).expanduser().resolve()
        found = projects.find_configuration(self._root)
        if found is None:
            raise InputError(f"there is no configuration of a generator in {str(root)!r}; check the path")
        self._style, self._config = found
        self._site_url = site_url
        self._options = options
        self._within = _find_repository(self._root)
        self._metadata: MetadataCache | None = None
        self._outline: Outline | None = None
        self._pages: dict[str, ProjectPage] = {}
        self._files = Folder(self._within, style=self._style, preprocess=self._prepare)

    def __reduce__(self) -> tuple[Callable[[Path], "Project"], tuple[Path]]:
        """Pickle the location and the options only. A worker reads the configuration again."""
        return partial(Project, site_url=self._site_url, options=self._options), (self._root,)

    @property
    def name(self) -> str:
        return str(self._root)

    def describe(self) -> str:
        """The generator, the configuration, and what the last listing found, on one line."""
        generator = {Style.MKDOCS: "MkDocs", Style.MDBOOK: "mdBook"}.get(self._style, self._style.capitalize())
        site = self._site(self._outline) if self._outline else ""
        published = f", published at {site}" if site else ""
        return f"{generator} project {self._display_path(self._config)}, {len(self._pages)} pages{published}"

    async def listing(self) -> AsyncIterator[ListedPage | SkippedPage | ExcludedPage]:
        for item in await asyncio.to_thread(lambda: list(self._listing())):
            yield item

    async def read(self, listed: ListedPage) -> Page:
        if listed.path not in self._pages:
            await asyncio.to_thread(lambda: list(self._listing()))
        project_page = self._pages.get(listed.path)
        if project_page is None:
            raise Unreadable("it is not a page of the site any more; it was one when the project was listed")
        page = await self._files.read(replace(listed, path=self._path_within(project_page.file)))
        return replace(
            page,
            title=project_page.title or page.title,
            module_name=project_page.module,
            chapter_id=project_page.chapter,
        )

    def _listing(self) -> Iterator[ListedPage | SkippedPage | ExcludedPage]:
        outline = self._read_configuration()
        self._outline = outline
        site = self._site(outline)
        pages: dict[str, ProjectPage] = {}
        known: dict[str, str] = {}
        yield from outline.skipped
        for page in outline.pages:
            item = skip_duplicate(self._entry(page, outline, site), known)
            if isinstance(item, ListedPage):
                pages[item.path] = page
            if item:
                yield item
        self._pages = pages

    def _read_configuration(self) -> Outline:
        read_outline, metadata = _load_generator(self._style)
        self._metadata = self._metadata or metadata
        try:
            return read_outline(
                self._root, self._config, within=self._within, options=self._options, metadata=self._metadata
            )
        except OSError as exc:
            raise ConfigurationError(f"{self._config} cannot be read: {exc.strerror or exc}. Check the file.") from exc

    def _entry(self, page: ProjectPage, outline: Outline, site: str) -> ListedPage | SkippedPage | ExcludedPage | None:
        path = self._display_path(page.file)
        if page.reason and page.category not in self._options.include:
            hint = f"; --include {page.category} adds it" if page.category else ""
            return ExcludedPage(path, page.reason + hint)
        try:
            entry = self._files.list_file(PurePosixPath(self._path_within(page.file)))
        except ValueError:
            return SkippedPage(path, "it is outside the project")
        if not isinstance(entry, ListedPage):
            return replace(entry, path=path) if entry else None
        url = join_url(site, page.route) if site and page.route else entry.url
        return ListedPage(url, path, f"{entry.stamp}:{_page_digest(page, outline)}")

    def _site(self, outline: Outline) -> str:
        """The URL of the site, without a trailing slash; empty if it is unknown."""
        if not self._site_url:
            return (outline.site_url + outline.base_path).rstrip("/") if outline.site_url else ""
        given = self._site_url.rstrip("/")
        # A URL without a path gets the base path of the configuration.
        return given if urlsplit(given).path else (given + outline.base_path).rstrip("/")

    def _prepare(self, text: str, file: Path) -> tuple[str, SlugOptions]:
        outline = self._outline or self._read_configuration()
        return outline.prepare(text, file), outline.slugs

    def _path_within(self, file: Path) -> str:
        return file.relative_to(self._within).as_posix()

    def _display_path(self, file: Path) -> str:
        """The path of a file relative to the project, for reports."""
        home = self._root if file.is_relative_to(self._root) else self._within
        return file.relative_to(home).as_posix() if file.is_relative_to(home) else str(file)


def _page_digest(page: ProjectPage, outline: Outline) -> str:
    """A hash of everything that a page depends on except its own file."""
    included = [(str(file), _file_stamp(file)) for file in outline.included_files(page.file)]
    content = [page.module, page.chapter, page.title, included, repr(outline.slugs), outline.definitions]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


def _file_stamp(file: Path) -> str:
    try:
        stat = file.stat()
    except OSError:
        return ""
    return f"{stat.st_mtime_ns}:{stat.st_size}"


def _find_repository(root: Path) -> Path:
    """The root of the repository the project is in. Files outside it are never read."""
    above = [root, *list(root.parents)[:_MAX_PARENTS]]
    return next((folder for folder in above if (folder / ".git").exists()), root)


def _load_generator(style: Style) -> tuple[OutlineReader, MetadataCache]:
    """The outline reader and the metadata cache of a generator, imported when the first project needs them."""
    from bythebook.sources.projects import docusaurus, metadata, mkdocs, sphinx

    module = {Style.DOCUSAURUS: docusaurus, Style.MKDOCS: mkdocs, Style.SPHINX: sphinx}[style]
    return module.read_outline, metadata.MetadataCache(module.parse_metadata)
