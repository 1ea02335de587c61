"""Sources: what a person names becomes pages. A path is the folder, file or project there, an address a site."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import ExitStack

    from bythebook.ingest import Progress
    from bythebook.pages import PageSource
    from bythebook.pages.site.source import Site
    from bythebook.settings import Settings


def open_sources(
    settings: Settings, given: Sequence[PageSource | Path | str], stack: ExitStack, *, progress: Progress, keep: bool
) -> list[PageSource]:
    """The sources that are given as such, and those that are named, until the stack is closed.

    What a site sends is remembered for the next time if it is to `keep`.
    """
    sources: list[PageSource] = []
    for source in given:
        if isinstance(source, str) and "://" in source:
            site = _open_site(settings, source, progress=progress, keep=keep)
            stack.callback(site.close)
            sources.append(site)
        elif isinstance(source, (str, Path)):
            sources.append(open_source(settings, source))
        else:
            sources.append(source)
    return sources


def _open_site(settings: Settings, url: str, *, progress: Progress, keep: bool) -> Site:
    from bythebook.pages.site import Limits
    from bythebook.pages.site.archive import Archive, file_name
    from bythebook.pages.site.source import Site

    limits = Limits(
        pages=settings.site_pages,
        depth=settings.site_depth,
        megabytes=settings.site_megabytes,
        minutes=settings.site_minutes,
        delay=settings.site_delay,
        private=settings.allow_private == "on",
    )
    path = settings.data_dir / "sites" / file_name(url)
    archive = partial(Archive.open if keep else Archive.copy_of, path)
    return Site(url, archive=archive, site_url=settings.site_url, limits=limits, progress=progress)


def open_source(settings: Settings, path: Path | str) -> PageSource:
    """The pages at a path, as the settings want them read."""
    from bythebook.pages.generators import Aside, Style, Wish
    from bythebook.pages.opening import open_path

    style = settings.site_style
    wish = Wish(
        frozenset(Aside) if "all" in settings.site_include else frozenset(map(Aside, settings.site_include)),
        settings.site_version,
        settings.site_locale,
        settings.site_builder,
    )
    return open_path(path, site_url=settings.site_url, style=None if style == "auto" else Style(style), wish=wish)
