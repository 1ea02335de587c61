"""Opens page sources: a website for a URL; a project, folder or file for a path."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from bythebook.sources.folder import Folder
from bythebook.sources.projects import NonContent, ProjectOptions, Style, find_configuration
from bythebook.sources.website import CrawlLimits

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import ExitStack

    from bythebook.sources import PageSource
    from bythebook.sources.website.source import Website
    from bythebook.telemetry import Progress


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Options for all page sources."""

    cache_folder: Path
    """The folder in which responses of sites are cached between runs."""
    site_url: str = ""
    style: str = "auto"
    include: tuple[str, ...] = ()
    version: str = ""
    locale: str = ""
    builder: Literal["auto", "html", "dirhtml"] = "auto"
    limits: CrawlLimits = field(default_factory=CrawlLimits)


def open_sources(
    options: SourceOptions,
    given: Sequence[PageSource | Path | str],
    stack: ExitStack,
    *,
    progress: Progress,
    keep: bool,
) -> list[PageSource]:
    """Open each path and URL as a page source and close it with `stack`. Page sources are returned unchanged.

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


def open_source(options: SourceOptions, path: Path | str) -> PageSource:
    """The pages of the project at a path or, if none is recognised, of the folder or file."""
    include = frozenset(NonContent) if "all" in options.include else frozenset(map(NonContent, options.include))
    project_options = ProjectOptions(include, options.version, options.locale, options.builder)
    style = None if options.style == "auto" else Style(options.style)
    return open_path(path, site_url=options.site_url, style=style, project_options=project_options)


def open_path(path: str | Path, *, site_url: str, style: Style | None, project_options: ProjectOptions) -> PageSource:
    """The pages at a path. If `style` differs from the style of the project, it is read as a plain folder."""
    root = Path(path).expanduser()
    found = find_configuration(root)
    if found and style in (None, found[0]):
        from bythebook.sources.projects.project import Project

        return Project(root, site_url=site_url, options=project_options)
    return Folder(root, site_url=site_url, style=style)


def _open_site(options: SourceOptions, url: str, *, progress: Progress, keep: bool) -> Website:
    from bythebook.sources.website.cache import CrawlCache, cache_file_name
    from bythebook.sources.website.source import Website

    path = options.cache_folder / cache_file_name(url)
    open_cache = partial(CrawlCache.open if keep else CrawlCache.copy_of, path)
    return Website(url, open_cache=open_cache, site_url=options.site_url, limits=options.limits, progress=progress)
