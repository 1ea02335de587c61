"""A site as a source of pages."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING
from urllib.parse import unquote

from bythebook.sources import Listed, Page, Skipped, Unreadable
from bythebook.sources.document import compose
from bythebook.sources.folder import humanised
from bythebook.sources.website import Limits
from bythebook.sources.website.cache import Archive
from bythebook.sources.website.deduplicate import Sorted
from bythebook.sources.website.discovery import Tour, look_again
from bythebook.sources.website.http_client import Client
from bythebook.sources.website.ssrf import resolve
from bythebook.sources.website.urls import Location, Scope, locate

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from bythebook.sources.website.cache import Kept
    from bythebook.sources.website.ssrf import Resolver


def _unseen(_stage: str, _done: int, _total: int) -> None:
    """Progress for callers who do not watch."""


class Site:
    """The pages below an address, as its sitemap lists them, or as they lead to each other.

    Listing visits the site: what may have changed is asked for, and what comes is put into the archive that `archive`
    opens, from which pages are then read. `site_url` is where the pages are published, if they are read from a preview
    whose sitemap names that address. Close it when you are done.
    """

    def __init__(
        self,
        url: str,
        *,
        archive: Callable[[], Archive] = Archive.for_once,
        site_url: str = "",
        limits: Limits = Limits(),  # noqa: B008 - it is frozen
        progress: Callable[[str, int, int], None] = _unseen,
        resolver: Resolver = resolve,
    ) -> None:
        self._named = locate(url)
        self._open_archive = archive
        self._site_url = site_url
        self._limits = limits
        self._progress = progress
        self._resolver = resolver
        self._opened: Archive | None = None
        self._sorted = Sorted()
        self.requests = 0
        """How many requests the last listing made."""

    @property
    def name(self) -> str:
        return str(self._named)

    @property
    def _archive(self) -> Archive:
        self._opened = self._opened or self._open_archive()
        return self._opened

    def close(self) -> None:
        if self._opened:
            self._opened.close()
            self._opened = None

    async def listing(self) -> AsyncIterator[Listed | Skipped]:
        client = Client(
            self._named,
            allow_private=self._limits.private,
            delay=self._limits.delay,
            at_once=self._limits.at_once,
            resolver=self._resolver,
        )
        async with client:
            try:
                self._sorted = await Tour(self._named, client, self._archive, self._limits, self._progress).go(
                    self._site_url
                )
            finally:
                self.requests = client.requests
        for entry in self._sorted.entries:
            yield entry

    async def read(self, listed: Listed) -> Page:
        if reason := self._sorted.troubles.get(listed.url):
            raise Unreadable(reason)
        kept = self._archive.kept(self._sorted.homes.get(listed.url, listed.url))
        if kept is None:
            raise Unreadable("it is no page of this site")
        return await asyncio.to_thread(_page, kept, url=listed.url, below=Scope.of(self._named).folder)


def _page(kept: Kept, *, url: str, below: str) -> Page:
    at = locate(kept.url)
    look = look_again(kept)
    text, blocks = compose(look.draft.parts)
    chapter = _chapter(at, below)
    parts = chapter.split("/")
    return Page(
        url=url,
        title=look.draft.title or humanised(parts[-1]) or at.host,
        text=text,
        blocks=blocks,
        module_name=look.trail[0] if look.trail else humanised(parts[0]) if len(parts) > 1 else "",
        chapter_id=chapter,
        modified_at=_iso(kept.validators.last_modified),
    )


def _chapter(at: Location, below: str) -> str:
    """The place of a page inside the site, as a person would write it."""
    path = unquote(at.path.removeprefix(below)).strip("/")
    return re.sub(r"(?:^|/)index$", "", re.sub(r"\.(?:html?|xhtml|php|aspx?)$", "", path, flags=re.I)) or "index"


def _iso(http_date: str) -> str:
    try:
        return parsedate_to_datetime(http_date).astimezone(UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError):
        return ""
