"""Opening a path: the project of a generator, or a folder of documents.

Sources: what a person names becomes pages. A path is the folder, file or project there, an address a site.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from bythebook.sources.folder import Folder
from bythebook.sources.projects import Aside, Style, Wish, configuration_in
from bythebook.sources.website import Limits

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import ExitStack

    from bythebook.sources import PageSource
    from bythebook.sources.website.source import Site
    from bythebook.telemetry import Progress


def open_path(path: str | Path, *, site_url: str, style: Style | None, wish: Wish) -> PageSource:
    """The pages at this path. A `style` that is not the project's own makes it a folder like any other."""
    root = Path(path).expanduser()
    found = configuration_in(root)
    if found and style in (None, found[0]):
        from bythebook.sources.projects.project import Project

        return Project(root, site_url=site_url, wish=wish)
    return Folder(root, site_url=site_url, style=style)


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """How sources are read."""

    cache_folder: Path
    """Where the responses of sites are cached between runs."""
    site_url: str = ""
    style: str = "auto"
    include: tuple[str, ...] = ()
    version: str = ""
    locale: str = ""
    builder: Literal["auto", "html", "dirhtml"] = "auto"
    limits: Limits = field(default_factory=Limits)


def open_sources(
    options: SourceOptions,
    given: Sequence[PageSource | Path | str],
    stack: ExitStack,
    *,
    progress: Progress,
    keep: bool,
) -> list[PageSource]:
    """Open each path and URL as a page source, until `stack` closes. Page sources are returned as they are.

    With `keep`, the responses of a site are cached for the next run.
    """
    sources: list[PageSource] = []
    for source in given:
        if isinstance(source, str) and "://" in source:
            site = _open_site(options, source, progress=progress, keep=keep)
            stack.callback(site.close)
            sources.append(site)
        elif isinstance(source, (str, Path)):
            sources.append(open_source(options, source))
        else:
            sources.append(source)
    return sources


def _open_site(options: SourceOptions, url: str, *, progress: Progress, keep: bool) -> Site:
    from bythebook.sources.website.cache import Archive, file_name
    from bythebook.sources.website.source import Site

    path = options.cache_folder / file_name(url)
    archive = partial(Archive.open if keep else Archive.copy_of, path)
    return Site(url, archive=archive, site_url=options.site_url, limits=options.limits, progress=progress)


def open_source(options: SourceOptions, path: Path | str) -> PageSource:
    """The pages at a path: of a project where one is recognised, else of a folder or file."""
    include = frozenset(Aside) if "all" in options.include else frozenset(map(Aside, options.include))
    wish = Wish(include, options.version, options.locale, options.builder)
    style = None if options.style == "auto" else Style(options.style)
    return open_path(path, site_url=options.site_url, style=style, wish=wish)
