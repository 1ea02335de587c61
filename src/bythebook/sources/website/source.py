"""A published site as a page source."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from datetime import UTC
from email.utils import parsedate_to_datetime
from urllib.parse import unquote

from bythebook.sources import ListedPage, Page, SkippedPage, Unreadable
from bythebook.sources.document import compose
from bythebook.sources.folder import title_from_name
from bythebook.sources.website import CrawlLimits, FetchResponse
from bythebook.sources.website.cache import CrawlCache
from bythebook.sources.website.deduplicate import SitePages
from bythebook.sources.website.discovery import SiteDiscovery
from bythebook.sources.website.http_client import SiteClient
from bythebook.sources.website.page_parser import PageParser
from bythebook.sources.website.ssrf import Resolver, resolve
from bythebook.sources.website.urls import SiteScope, WebUrl, parse_url


def _ignore_progress(_stage: str, _done: int, _total: int) -> None:
    """The default for `progress`."""


class Website:
    """The pages of a site below a URL, from its sitemap or by following its links.

    Listing crawls the site: it fetches the pages that may have changed and stores them in the cache that `open_cache`
    opens. Pages are then read from the cache. `site_url` is where the pages are published, if they are read from a
    preview whose sitemap contains those URLs. Call `close` at the end.
    """

    def __init__(
        self,
        url: str,
        *,
        open_cache: Callable[[], CrawlCache] = CrawlCache.temporary,
        site_url: str = "",
        limits: CrawlLimits = CrawlLimits(),  # noqa: B008 - it is frozen
        progress: Callable[[str, int, int], None] = _ignore_progress,
        resolver: Resolver = resolve,
    ) -> None:
        self._url = parse_url(url)
        self._open_cache = open_cache
        self._site_url = site_url
        self._limits = limits
        self._progress = progress
        self._resolver = resolver
        self._opened_cache: CrawlCache | None = None
        self._parser = PageParser()
        self._pages = SitePages()
        self.requests = 0
        """The number of requests of the last listing."""

    @property
    def name(self) -> str:
        return str(self._url)

    @property
    def _cache(self) -> CrawlCache:
        self._opened_cache = self._opened_cache or self._open_cache()
        return self._opened_cache

    def close(self) -> None:
        self._parser.close()
        if self._opened_cache:
            self._opened_cache.close()
            self._opened_cache = None

    async def listing(self) -> AsyncIterator[ListedPage | SkippedPage]:
        client = SiteClient(
            self._url,
            allow_private=self._limits.private,
            delay=self._limits.delay,
            max_connections=self._limits.max_concurrency,
            resolver=self._resolver,
        )
        async with client:
            try:
                discovery = SiteDiscovery(self._url, client, self._cache, self._parser, self._limits, self._progress)
                self._pages = await discovery.run(self._site_url)
            finally:
                self.requests = client.requests
        for entry in self._pages.entries:
            yield entry

    async def read(self, listed: ListedPage) -> Page:
        if reason := self._pages.failures.get(listed.url):
            raise Unreadable(reason)
        cached = self._cache.get_response(self._pages.cached_urls.get(listed.url, listed.url))
        if cached is None:
            raise Unreadable("it is not a page of this site")
        return await asyncio.to_thread(self._make_page, cached, url=listed.url)

    def _make_page(self, cached: FetchResponse, *, url: str) -> Page:
        location = parse_url(cached.url)
        parsed = self._parser.parse(cached)
        text, blocks = compose(parsed.document.parts)
        chapter = _chapter_id(location, SiteScope.of(self._url).folder)
        parts = chapter.split("/")
        folder_title = title_from_name(parts[0]) if len(parts) > 1 else ""
        return Page(
            url=url,
            title=" ".join((parsed.document.title or title_from_name(parts[-1]) or location.host).split()),
            text=text,
            blocks=blocks,
            module_name=parsed.breadcrumbs[0] if parsed.breadcrumbs else folder_title,
            chapter_id=chapter,
            modified_at=_to_iso(cached.validators.last_modified),
        )


def _chapter_id(url: WebUrl, folder: str) -> str:
    """The path of a page below the folder of the site, without a suffix."""
    path = unquote(url.path.removeprefix(folder)).strip("/")
    return re.sub(r"(?:^|/)index$", "", re.sub(r"\.(?:html?|xhtml|php|aspx?)$", "", path, flags=re.I)) or "index"


def _to_iso(http_date: str) -> str:
    try:
        return parsedate_to_datetime(http_date).astimezone(UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError):
        return ""
