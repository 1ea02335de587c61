"""The project of a generator as a source of pages: what its site shows, in its order, under its addresses."""

from __future__ import annotations

import asyncio
import hashlib
import json
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from bythebook.errors import ConfigurationError, InputError
from bythebook.sources import LeftOut, Listed, Page, Skipped, Unreadable
from bythebook.sources.folder import Folder
from bythebook.sources.projects import Style, Wish, configuration_in
from bythebook.sources.urls import joined

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from bythebook.sources.projects import Outline, Place, Slugs
    from bythebook.sources.projects.metadata import Glances

    class Reader(Protocol):
        """Reads the configuration of one generator."""

        def __call__(self, root: Path, config: Path, *, within: Path, wish: Wish, glances: Glances) -> Outline: ...


_DEEPEST = 6


class Project:
    """A Docusaurus, MkDocs or Sphinx project, recognised by the configuration in its folder.

    `site_url` is where the site is published; without it the configuration says so, and where that is silent, pages
    are known by their files. The configuration is read anew with every listing.
    """

    def __init__(self, root: str | Path, *, site_url: str = "", wish: Wish | None = None) -> None:
        self._root = Path(root).expanduser().resolve()
        found = configuration_in(self._root)
        if found is None:
            raise InputError(f"there is no configuration of a generator in {str(root)!r}; check the path")
        self._style, self._config = found
        self._site_url = site_url
        self._wish = wish or Wish()
        self._within = _repository(self._root)
        self._glances: Glances | None = None
        self._outline: Outline | None = None
        self._places: dict[str, Place] = {}
        self._files = Folder(self._within, style=self._style, prepare=self._prepared)

    def __reduce__(self) -> tuple[Callable[[Path], Project], tuple[Path]]:
        """What travels to another machine is where the project is: its configuration is read there."""
        return partial(Project, site_url=self._site_url, wish=self._wish), (self._root,)

    @property
    def name(self) -> str:
        return str(self._root)

    async def listing(self) -> AsyncIterator[Listed | Skipped | LeftOut]:
        for item in await asyncio.to_thread(lambda: list(self._listing())):
            yield item

    async def read(self, listed: Listed) -> Page:
        if listed.path not in self._places:
            await asyncio.to_thread(lambda: list(self._listing()))
        place = self._places.get(listed.path)
        if place is None:
            raise Unreadable("it is no page of the site; it was one when the project was listed")
        page = await self._files.read(replace(listed, path=self._inside(place.file)))
        return replace(page, title=place.title or page.title, module_name=place.module, chapter_id=place.chapter)

    def _listing(self) -> Iterator[Listed | Skipped | LeftOut]:
        outline = self._read_configuration()
        self._outline = outline
        site = self._address(outline)
        places: dict[str, Place] = {}
        known: dict[str, str] = {}
        yield from outline.skipped
        for place in outline.places:
            item = self._entry(place, outline, site)
            if isinstance(item, Listed):
                if known.setdefault(item.url, item.path) != item.path:
                    item = Skipped(item.path, f"{known[item.url]!r} is published at the same address, {item.url}")
                else:
                    places[item.path] = place
            if item:
                yield item
        self._places = places

    def _read_configuration(self) -> Outline:
        outline, metadata = _reader(self._style)
        self._glances = self._glances or metadata
        try:
            return outline(self._root, self._config, within=self._within, wish=self._wish, glances=self._glances)
        except OSError as exc:
            raise ConfigurationError(f"{self._config} cannot be read: {exc.strerror or exc}. Check the file.") from exc

    def _entry(self, place: Place, outline: Outline, site: str) -> Listed | Skipped | LeftOut | None:
        path = self._shown(place.file)
        if place.reason and place.aside not in self._wish.include:
            hint = f"; --include {place.aside} takes it in" if place.aside else ""
            return LeftOut(path, place.reason + hint)
        try:
            entry = self._files.entry(PurePosixPath(self._inside(place.file)))
        except ValueError:
            return Skipped(path, "it is outside of the project")
        if not isinstance(entry, Listed):
            return replace(entry, path=path) if entry else None
        url = joined(site, place.route) if site and place.route else entry.url
        return Listed(url, path, f"{entry.stamp}:{_digest(place, outline)}")

    def _address(self, outline: Outline) -> str:
        """The address of the site's first page, without a slash at its end."""
        if not self._site_url:
            return (outline.address + outline.base).rstrip("/") if outline.address else ""
        given = self._site_url.rstrip("/")
        # A host alone is where the site is; on which path of it, the configuration says.
        return given if urlsplit(given).path else (given + outline.base).rstrip("/")

    def _prepared(self, text: str, file: Path) -> tuple[str, Slugs]:
        outline = self._outline or self._read_configuration()
        return outline.prepare(text, file), outline.slugs

    def _inside(self, file: Path) -> str:
        return file.relative_to(self._within).as_posix()

    def _shown(self, file: Path) -> str:
        """A file as the author names it: from the project's folder."""
        home = self._root if file.is_relative_to(self._root) else self._within
        return file.relative_to(home).as_posix() if file.is_relative_to(home) else str(file)


def _digest(place: Place, outline: Outline) -> str:
    """Of everything that a page depends on besides its own file."""
    parts = [(str(part), _stamp(part)) for part in outline.parts(place.file)]
    said = [place.module, place.chapter, place.title, parts, repr(outline.slugs), outline.says]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:16]


def _stamp(file: Path) -> str:
    try:
        stat = file.stat()
    except OSError:
        return ""
    return f"{stat.st_mtime_ns}:{stat.st_size}"


def _repository(root: Path) -> Path:
    """How far a project may reach beyond its own folder: to the repository it is in."""
    above = [root, *list(root.parents)[:_DEEPEST]]
    return next((folder for folder in above if (folder / ".git").exists()), root)


def _reader(style: Style) -> tuple[Reader, Glances]:
    """The module that knows a generator. Each is imported when the first project of its kind is met."""
    from bythebook.sources.projects import docusaurus, metadata, mkdocs, sphinx

    module = {Style.DOCUSAURUS: docusaurus, Style.MKDOCS: mkdocs, Style.SPHINX: sphinx}[style]
    return module.outline, metadata.Glances(module.look)
