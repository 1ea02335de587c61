"""The crawler: fetches the pages of a site within limits, and records the outcome of every URL.

A sitemap's `lastmod` is a claim, not a proof: some generators write the day of the build, some never change it. The
crawler skips a request because of it only where the value can show a change and the site was never wrong before:

- it is the same as at the last fetch, and lies before that time, by a day if it is only a date;
- the page was fetched within the last week;
- a sample of the pages that could be skipped, those with the oldest fetch, is fetched all the same. If one of them
  has changed although its `lastmod` has not, the `lastmod` of this site is never trusted again.
"""

import asyncio
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from bythebook.concurrency import gather
from bythebook.errors import BookError, DeadlineExceeded, RateLimited, Unavailable
from bythebook.sources import Unreadable
from bythebook.sources.website import CrawlLimits, FetchResponse, PageMetadata
from bythebook.sources.website.cache import CrawlCache, FetchRecord
from bythebook.sources.website.http_client import SiteClient
from bythebook.sources.website.page_parser import PageParser
from bythebook.sources.website.robots import RobotsRules
from bythebook.sources.website.urls import SiteScope, WebUrl, is_crawler_trap, is_same_site, parse_url

MAX_PAGE_BYTES = 10_000_000
"""A larger response is not a page."""
MAX_WAIT_SECONDS = 120.0
"""The total time a crawl waits for a site that asks for a pause or does not answer."""
MAX_QUERIES = 20
"""The maximum number of URLs that differ only in their query."""

_NOT_HTML = re.compile(
    r"\.(?:png|jpe?g|gif|svg|webp|ico|bmp|css|m?js|json|xml|rss|atom|pdf|epub|zip|gz|tgz|bz2|xz|7z|rar|tar|exe|dmg"
    r"|mp[34]|webm|ogg|wav|avi|mov|woff2?|ttf|eot|docx?|xlsx?|pptx?|csv|wasm|whl|map|iso|deb|rpm|jar|ics)$",
    re.I,
)


class CrawlOutcome(StrEnum):
    """The outcome of a URL."""

    READ = "read"
    GONE = "gone"
    """It does not exist, or does not exist any more."""
    NOT_A_PAGE = "not a page"
    """It exists and is not a page of the book."""
    FAILED = "failed"
    """Unknown: the book keeps what it has of it."""


@dataclass(frozen=True, slots=True)
class CrawlEntry:
    """A URL of the crawl and its outcome."""

    url: WebUrl
    lastmod: str = ""
    listed: bool = False
    """Whether it is in the sitemap. If not, it was found by a link."""
    outcome: CrawlOutcome = CrawlOutcome.FAILED
    reason: str = ""
    final_url: str = ""
    """The URL after redirects, for a page that was read."""
    metadata: PageMetadata | None = None
    """The metadata of the page without its links, which are followed at once."""


@dataclass(slots=True)
class Crawler:
    """One crawl of a site."""

    client: SiteClient
    cache: CrawlCache
    parser: PageParser
    rules: RobotsRules
    scope: SiteScope
    limits: CrawlLimits
    progress: Callable[[str, int, int], None]
    now: Callable[[], float] = time.time
    entries: dict[str, CrawlEntry] = field(default_factory=dict)
    published_origin: str = ""
    """The origin in the site's own URLs, if it differs from the one it is read from."""
    _links: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _follows_links: bool = False
    _started: int = 0
    _done: int = 0
    _bytes: int = 0
    _waited: float = 0.0
    _queries: dict[str, int] = field(default_factory=dict)
    _stop_reason: str = ""
    """Why no more requests are made."""
    _deadline: float = 0.0

    def __post_init__(self) -> None:
        self._deadline = time.monotonic() + self.limits.minutes * 60

    def prune_cache(self) -> None:
        """Delete pages from the cache that the site no longer has. Pages that failed stay."""
        retained = {entry.final_url for entry in self.entries.values() if entry.final_url}
        for requested, entry in self.entries.items():
            if entry.outcome is not CrawlOutcome.GONE:
                before = self.cache.get_fetch(requested)
                retained |= {requested, before.final_url if before else requested}
        self.cache.retain(retained)

    def local_url(self, url: WebUrl) -> WebUrl:
        """The URL from which a page that the site names is read."""
        here = parse_url(self.scope.origin)
        if url.origin == self.published_origin or is_same_site(url, here) or is_same_site(here, url):
            return replace(here, path=url.path, query=url.query)
        return url

    def _local(self, url: str) -> str:
        return str(self.local_url(parse_url(url))) if url else ""

    async def add_page(self, entry: CrawlEntry, response: FetchResponse, *, follow_links: bool) -> None:
        """Record a page that is already fetched, and crawl the pages it leads to."""
        self._follows_links = follow_links
        if self._admit([entry]):
            self._record(await self._evaluate(entry, response))
            await self._crawl_levels(self._next_entries(self.entries[str(entry.url)]), follow_links=follow_links)

    async def crawl_sitemap_urls(self, entries: Sequence[CrawlEntry]) -> None:
        """Crawl the pages of the sitemap, and the pages they redirect to."""
        skipped = self._unchanged_entries(entries)
        for entry in skipped:
            self._record(entry)
        pending = [entry for entry in entries if str(entry.url) not in self.entries]
        await self._crawl_levels(pending, follow_links=False)
        if self.cache.has_flag(_DISTRUSTED):
            # A `lastmod` turned out to be wrong in this crawl: fetch the skipped pages after all.
            for entry in skipped:
                del self.entries[str(entry.url)]
            retried = [replace(e, outcome=CrawlOutcome.FAILED, final_url="", metadata=None) for e in skipped]
            await self._crawl_levels(retried, follow_links=False)

    async def crawl(self, entries: Sequence[CrawlEntry]) -> None:
        """Crawl these pages, and every page of the site that they link to."""
        await self._crawl_levels(entries, follow_links=True)

    def _unchanged_entries(self, entries: Sequence[CrawlEntry]) -> list[CrawlEntry]:
        """The pages that need no request because their `lastmod` is unchanged, without the sample."""
        if self.cache.has_flag(_DISTRUSTED):
            return []
        unchanged: list[tuple[float, CrawlEntry]] = []
        for entry in entries:
            fetch = self.cache.get_fetch(str(entry.url))
            is_recent = fetch and self.now() - fetch.fetched_at < MAX_AGE.total_seconds()
            if fetch and is_recent and is_unchanged_since(fetch, entry.lastmod):
                metadata = self.cache.get_metadata(fetch.final_url)
                is_new = str(entry.url) not in self.entries and self.rules.is_allowed(entry.url)
                if metadata and not metadata.noindex and is_new:
                    unchanged.append((fetch.fetched_at, self._mark_read(entry, fetch.final_url, metadata)))
        oldest_first = sorted(unchanged, key=lambda pair: pair[0])
        return [entry for _, entry in oldest_first[SAMPLE_SIZE:]]

    async def _crawl_levels(self, entries: Sequence[CrawlEntry], *, follow_links: bool) -> None:
        """Crawl level by level, so that the order of pages does not depend on the order of responses."""
        self._follows_links = follow_links
        level = self._admit(entries)
        for _depth in range(self.limits.depth + 1):
            if not level:
                return
            await self._fetch_all(level)
            following = [self._next_entries(self.entries[str(entry.url)]) for entry in level]
            level = self._admit([entry for found in following for entry in found])
        for entry in level:
            self._record(replace(entry, reason=f"it is more than {self.limits.depth} links away (site_depth)"))

    def _admit(self, entries: Sequence[CrawlEntry]) -> list[CrawlEntry]:
        """Record the entries that are new. Returns those that robots.txt allows."""
        admitted: list[CrawlEntry] = []
        for entry in entries:
            if str(entry.url) in self.entries:
                continue
            self._record(entry)
            if not self.rules.is_allowed(entry.url):
                reason = "robots.txt does not allow it to be read"
                self._record(replace(entry, outcome=CrawlOutcome.NOT_A_PAGE, reason=reason))
            else:
                admitted.append(entry)
        return admitted

    def _record(self, entry: CrawlEntry) -> None:
        self.entries[str(entry.url)] = entry

    async def _fetch_all(self, level: Sequence[CrawlEntry]) -> None:
        slots = asyncio.Semaphore(self.limits.max_concurrency)

        async def fetch(entry: CrawlEntry) -> None:
            async with slots:
                self._record(await self._fetch_entry(entry))
                self._done += 1
                self.progress("fetching", self._done, len(self.entries))

        # The oldest fetch first: if the time runs out, the next crawl continues from there.
        await gather(*(fetch(entry) for entry in sorted(level, key=self._last_fetch_time)))

    def _last_fetch_time(self, entry: CrawlEntry) -> float:
        fetch = self.cache.get_fetch(str(entry.url))
        return fetch.fetched_at if fetch else 0.0

    async def _fetch_entry(self, entry: CrawlEntry) -> CrawlEntry:
        if reason := self._limit_message():
            return replace(entry, reason=reason)
        self._started += 1
        try:
            response = await self._fetch(entry.url)
        except (BookError, TimeoutError) as exc:
            return replace(entry, reason=str(exc))
        return await self._evaluate(entry, response)

    def _limit_message(self) -> str:
        """Why no more requests may be made; empty if they may."""
        if self._started >= self.limits.pages:
            return f"the site has more than {self.limits.pages} pages (site_pages)"
        if self._bytes > self.limits.megabytes * 1_000_000:
            return f"the site has more than {self.limits.megabytes} MB (site_megabytes)"
        if time.monotonic() > self._deadline:
            return f"the site took longer than {self.limits.minutes:g} minutes (site_minutes)"
        return self._stop_reason

    async def _fetch(self, url: WebUrl) -> FetchResponse:
        """Fetch a URL. Waits as long as the site asks for, up to the total of `MAX_WAIT_SECONDS`."""
        while True:
            try:
                response = await self.client.get(
                    url,
                    max_bytes=MAX_PAGE_BYTES,
                    validators=lambda at: self.cache.get_validators(str(at)),
                    may_follow=is_same_site,
                )
            except (RateLimited, Unavailable, DeadlineExceeded) as exc:
                pause = exc.retry_after
                if pause is None:
                    raise
                if self._waited + pause > MAX_WAIT_SECONDS or time.monotonic() + pause > self._deadline:
                    self._stop_reason = f"the site stopped answering ({exc})"
                    raise
                self._waited += pause
                await asyncio.sleep(pause)
            else:
                self._bytes += len(response.body)
                return response

    async def _evaluate(self, entry: CrawlEntry, response: FetchResponse) -> CrawlEntry:
        if rejected := self._reject(entry, response):
            return rejected
        if response.is_unchanged and (metadata := self.cache.get_metadata(response.url)):
            self.cache.put_fetch(str(entry.url), FetchRecord(response.url, self.now(), entry.lastmod))
            return self._mark_read(entry, response.url, metadata)
        if response.is_unchanged and (cached := self.cache.get_response(response.url)):
            return await self._parse(entry, cached)
        if response.status != 200:
            return replace(entry, reason=f"the site does not show it (HTTP {response.status})")
        return await self._parse(entry, response)

    def _reject(self, entry: CrawlEntry, response: FetchResponse) -> CrawlEntry | None:
        """The outcome of a URL that is gone or leads out of the site."""
        final = parse_url(response.url)
        if response.is_gone:
            return replace(entry, outcome=CrawlOutcome.GONE, reason=f"it is not there (HTTP {response.status})")
        if not self.scope.contains(final):
            outcome = CrawlOutcome.GONE if response.permanent else CrawlOutcome.FAILED
            return replace(entry, outcome=outcome, reason=f"it leads to {final}, which is not part of the site")
        if not self.rules.is_allowed(final):
            reason = f"it leads to {final}, which robots.txt does not allow"
            return replace(entry, outcome=CrawlOutcome.NOT_A_PAGE, reason=reason)
        return None

    async def _parse(self, entry: CrawlEntry, response: FetchResponse) -> CrawlEntry:
        """Parse a page and store it in the cache."""
        try:
            page = await asyncio.to_thread(self.parser.parse, response)
        except Unreadable as exc:
            # A URL that was a page before may be one again at the next crawl.
            was_page = self.cache.get_fetch(str(entry.url)) is not None
            outcome = CrawlOutcome.FAILED if was_page else CrawlOutcome.NOT_A_PAGE
            return replace(entry, outcome=outcome, reason=str(exc))
        fetch, cached = self.cache.get_fetch(str(entry.url)), self.cache.get_metadata(response.url)
        claims_unchanged = is_unchanged_since(fetch, entry.lastmod)
        if claims_unchanged and cached and cached.content_hash != page.metadata.content_hash:
            self.cache.set_flag(_DISTRUSTED)
        self.cache.put_response(response, page.metadata)
        self.cache.put_fetch(str(entry.url), FetchRecord(response.url, self.now(), entry.lastmod))
        return self._mark_read(entry, response.url, page.metadata)

    def _mark_read(self, entry: CrawlEntry, final_url: str, metadata: PageMetadata) -> CrawlEntry:
        self._links[str(entry.url)] = metadata.links if self._follows_links else ()
        metadata = replace(
            metadata, links=(), canonical=self._local(metadata.canonical), refresh=self._local(metadata.refresh)
        )
        read = replace(entry, outcome=CrawlOutcome.READ, final_url=final_url, metadata=metadata)
        if metadata.noindex:
            return replace(read, outcome=CrawlOutcome.NOT_A_PAGE, reason="it asks not to be indexed (noindex)")
        return read

    def _next_entries(self, entry: CrawlEntry) -> list[CrawlEntry]:
        """The entries that a page leads to: its refresh and canonical URLs, and its links if they are followed."""
        links = self._links.pop(str(entry.url), ())
        if entry.metadata is None:
            return []
        named = [url for url in (entry.metadata.refresh, entry.metadata.canonical) if url]
        found = dict.fromkeys(self.local_url(parse_url(url)) for url in [*named, *links])
        return [CrawlEntry(url) for url in found if self._should_visit(url)]

    def _should_visit(self, url: WebUrl) -> bool:
        if not self.scope.contains(url) or _NOT_HTML.search(url.path) or is_crawler_trap(url):
            return False
        if not url.query or str(url) in self.entries:
            return True
        self._queries[url.path] = self._queries.get(url.path, 0) + 1
        return self._queries[url.path] <= MAX_QUERIES


MAX_AGE = timedelta(days=7)
"""A page is fetched at least this often, regardless of its `lastmod`."""
SAMPLE_SIZE = 5
"""How many of the pages that could be skipped are fetched in every crawl."""

_DISTRUSTED = "lastmod is not trusted"
"""Set in the cache of a site whose `lastmod` was wrong once."""


def is_unchanged_since(fetch: FetchRecord | None, lastmod: str) -> bool:
    """Whether `lastmod` claims that the page has not changed since it was fetched."""
    latest = parse_lastmod(lastmod)
    return bool(fetch and latest and fetch.lastmod == lastmod and latest.timestamp() < fetch.fetched_at)


def parse_lastmod(lastmod: str) -> datetime | None:
    """The latest time that a `lastmod` can mean; None if it is not a date or time."""
    try:
        parsed = datetime.fromisoformat(lastmod)
    except ValueError:
        return None
    if "T" not in lastmod.upper() and " " not in lastmod:
        # The time zone of a date is unknown: the day may end 14 hours later than in UTC.
        return parsed.replace(tzinfo=UTC) + timedelta(days=1, hours=14)
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC) + timedelta(hours=14)
