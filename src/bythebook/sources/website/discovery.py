"""Site discovery: one crawl of a site, from its robots.txt and its sitemaps to its deduplicated pages."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from io import BytesIO
from xml.etree.ElementTree import Element, ParseError

from bythebook.errors import BookError, InputError, Unavailable
from bythebook.sources import SkippedPage, Unreadable
from bythebook.sources.document import DocumentPart
from bythebook.sources.website import CrawlLimits, FetchResponse, PageMetadata, robots
from bythebook.sources.website.cache import CrawlCache
from bythebook.sources.website.crawler import MAX_PAGE_BYTES, CrawlEntry, Crawler, CrawlOutcome
from bythebook.sources.website.deduplicate import SitePages, deduplicate, mark_soft_404s
from bythebook.sources.website.http_client import SiteClient, decompress_gzip
from bythebook.sources.website.page_parser import PageParser
from bythebook.sources.website.urls import RejectedUrl, SiteScope, WebUrl, change_origin, is_same_site, parse_url

MAX_BYTES = 50_000_000
"""The maximum size of one decompressed sitemap, from the protocol."""
MAX_SITEMAPS = 500
MAX_ENTRIES = 50_000
"""The maximum number of entries of one sitemap, from the protocol."""
SITEMAP_SECONDS = 120.0

_GZIP = b"\x1f\x8b"
_MAX_DEPTH = 16
_MAX_ELEMENTS = 1_000_000
"""Twenty for each entry. A sitemap with more is built to be slow."""


@dataclass(frozen=True, slots=True)
class SitemapEntry:
    """A page in a sitemap, with its unparsed `lastmod`."""

    url: str
    lastmod: str = ""


@dataclass(slots=True)
class SitemapListing:
    """The entries of all sitemaps of a site, each URL once, and the sitemaps that could not be read."""

    entries: dict[str, SitemapEntry] = field(default_factory=dict)
    broken: list[SkippedPage] = field(default_factory=list)
    found: int = 0
    """The number of sitemaps that were read."""


async def collect_sitemaps(client: SiteClient, sitemaps: list[WebUrl], *, max_entries: int) -> SitemapListing:
    """Read these sitemaps and those they name, until there are `max_entries` entries. A missing one is ignored.

    A server error for a sitemap is raised: otherwise the pages it lists would appear to be deleted.
    """
    listing = SitemapListing()
    waiting, seen = list(sitemaps), set(map(str, sitemaps))
    while waiting and listing.found < MAX_SITEMAPS and len(listing.entries) <= max_entries:
        at = waiting.pop(0)
        for named in await _read_sitemap(client, at, listing):
            try:
                url = parse_url(named, base=at)
            except RejectedUrl as exc:
                listing.broken.append(SkippedPage(named[:200], str(exc)))
                continue
            if str(url) not in seen:
                seen.add(str(url))
                waiting.append(url)
    return listing


async def _read_sitemap(client: SiteClient, at: WebUrl, listing: SitemapListing) -> list[str]:
    """Add the entries of one sitemap to the listing. Returns the sitemaps it names."""
    try:
        response = await client.get(at, max_bytes=MAX_BYTES, seconds=SITEMAP_SECONDS)
        if response.status != 200 or response.media_type in ("text/html", "application/xhtml+xml"):
            return []
        parsed = parse_sitemap(response.body)
    except (Unreadable, RejectedUrl) as exc:
        listing.broken.append(SkippedPage(str(at), f"this sitemap cannot be read: {exc}"))
        return []
    listing.found += 1
    for entry in parsed.entries:
        listing.entries.setdefault(entry.url, entry)
    if parsed.error:
        listing.broken.append(SkippedPage(str(at), f"this sitemap cannot be read completely: {parsed.error}"))
    return parsed.sitemaps


@dataclass(slots=True)
class ParsedSitemap:
    """One sitemap: its pages, the sitemaps it names if it is an index, and the error that ended parsing."""

    entries: list[SitemapEntry] = field(default_factory=list)
    sitemaps: list[str] = field(default_factory=list)
    error: str = ""

    def add(self, element: Element) -> None:
        """Add a child of the root element. Any but `url` and `sitemap` are ignored."""
        name, url = element.tag.rpartition("}")[2], element.findtext("{*}loc", "").strip()
        if name not in ("url", "sitemap") or not url:
            return
        if len(self.entries) + len(self.sitemaps) >= MAX_ENTRIES:
            raise ValueError(f"it has more than {MAX_ENTRIES} entries")
        if name == "sitemap":
            self.sitemaps.append(url)
        else:
            self.entries.append(SitemapEntry(url, element.findtext("{*}lastmod", "").strip()))


def parse_sitemap(data: bytes) -> ParsedSitemap:
    """Parse a sitemap: XML, an index of sitemaps, or plain text; compressed or not.

    On a syntax error the entries before it are returned with the error. Raises Unreadable for a forbidden construct.
    """
    from defusedxml import DefusedXmlException

    if data.startswith(_GZIP):
        data = decompress_gzip(data, max_bytes=MAX_BYTES)
    if not data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<") and b"\x00" not in data[:4]:
        return _parse_lines(data)
    parsed = ParsedSitemap()
    try:
        for element in _iterate_children(data):
            parsed.add(element)
    except DefusedXmlException as exc:
        raise Unreadable("it declares entities or a document type, which sitemaps do not need") from exc
    except (ParseError, ValueError, LookupError) as exc:
        parsed.error = str(exc)
    return parsed


def _parse_lines(data: bytes) -> ParsedSitemap:
    lines = data.decode("utf-8-sig", "replace").split("\n", MAX_ENTRIES)[:MAX_ENTRIES]
    return ParsedSitemap(
        [SitemapEntry(line.strip()) for line in lines if line.strip().startswith(("http://", "https://"))]
    )


def _iterate_children(data: bytes) -> Iterator[Element]:
    """The children of the root element. Each is removed from the tree afterwards, so that the tree stays small."""
    from defusedxml.ElementTree import iterparse

    around: list[Element] = []
    for number, (event, element) in enumerate(iterparse(BytesIO(data), ("start", "end"), forbid_dtd=True)):
        if event == "start":
            around.append(element)
            if len(around) > _MAX_DEPTH or number > 2 * _MAX_ELEMENTS:
                raise ValueError(f"its elements are more than {_MAX_DEPTH} deep, or over {_MAX_ELEMENTS:,}")
        else:
            around.pop()
            if len(around) == 1:
                yield element
                around[0].clear()


MISSING_PATH = "bythebook-asks-for-a-page-that-is-not-there"
"""A path that no site has. The response shows how the site reports missing pages."""


@dataclass(frozen=True, slots=True)
class SiteDiscovery:
    """One crawl of a site. `site` is the URL given by the user."""

    site: WebUrl
    client: SiteClient
    cache: CrawlCache
    parser: PageParser
    limits: CrawlLimits
    progress: Callable[[str, int, int], None]

    async def run(self, site_url: str) -> SitePages:
        """Crawl the site. `site_url` is where it is published, if it is read from a preview."""
        rules = await self._fetch_rules(self.site)
        start, response = await self._fetch_start()
        if start.origin != self.site.origin:
            rules = await self._fetch_rules(start)
        scope = _choose_scope(self.site, start)
        crawler = Crawler(self.client, self.cache, self.parser, rules, scope, self.limits, self.progress)
        listing = await self._read_sitemaps(rules, scope)
        entries, skipped = self._select_entries(listing, crawler)
        is_complete = len(entries) > 1 and not listing.broken
        if response.is_gone and not is_complete:
            raise _missing_error(start, response)
        if not is_complete or any(entry.url == start for entry in entries):
            first = next((entry for entry in entries if entry.url == start), CrawlEntry(start, listed=True))
            await crawler.add_page(first, response, follow_links=not is_complete)
        if is_complete:
            await crawler.crawl_sitemap_urls(entries)
        else:
            cached = [CrawlEntry(parse_url(url)) for url in self.cache.list_urls()]
            await crawler.crawl([*entries, *(entry for entry in cached if scope.contains(entry.url))])
        # Listed pages have the order of the sitemap, however they were found.
        crawler.entries = {str(e.url): crawler.entries[str(e.url)] for e in entries} | crawler.entries
        pages = await self._deduplicate(crawler, start, site_url)
        crawler.prune_cache()
        pages.entries.extend([*listing.broken, *skipped])
        return pages

    async def _fetch_rules(self, site: WebUrl) -> robots.RobotsRules:
        rules = await robots.fetch_robots(self.client, site)
        self.client.delay = max(self.limits.delay, rules.delay)
        if not rules.is_allowed(site):
            raise InputError(
                f"{parse_url('/robots.txt', base=site)} does not allow {site} to be read. Nothing was changed. If the "
                f"site is yours, allow {robots.ROBOT_NAME!r} there, or ingest the files it is made from."
            )
        return rules

    async def _fetch_start(self) -> tuple[WebUrl, FetchResponse]:
        """The URL of the site after redirects, and its response. Raises InputError if it has moved or is missing."""
        site = self.site
        response = await self.client.get(
            site,
            max_bytes=MAX_PAGE_BYTES,
            validators=lambda at: self.cache.get_validators(str(at)),
            may_follow=is_same_site,
        )
        start = parse_url(response.url)
        if start.origin != site.origin and not is_same_site(site, start):
            raise InputError(
                f"{site} has moved to {start}. Nothing was changed. If that is the site you mean, name it: "
                f"bythebook ingest {start}"
            )
        if response.status not in (200, 304, 404):
            raise _missing_error(start, response)
        return start, response

    async def _read_sitemaps(self, rules: robots.RobotsRules, scope: SiteScope) -> SitemapListing:
        """Read the sitemaps that robots.txt names, else those at the usual paths."""
        own, foreign = [], []
        listing = SitemapListing()
        for named in rules.sitemaps:
            try:
                url = parse_url(named, base=self.site)
            except RejectedUrl as exc:
                listing.broken.append(SkippedPage(named[:200], str(exc)))
                continue
            own.append(url if url.origin == scope.origin else parse_url(change_origin(url, to=scope.origin)))
            foreign += [url] if url.origin != scope.origin else []
        usual = [parse_url(scope.origin + scope.folder + "sitemap.xml"), parse_url(scope.origin + "/sitemap.xml")]
        for urls in (own, *([url] for url in dict.fromkeys(usual)), foreign):
            listing = await self._collect(urls, listing, is_required=urls is not foreign)
            if listing.found:
                break
        return listing

    async def _collect(self, urls: list[WebUrl], previous: SitemapListing, *, is_required: bool) -> SitemapListing:
        try:
            listing = await collect_sitemaps(self.client, urls, max_entries=self.limits.pages)
        except BookError as exc:
            if is_required:
                raise
            listing = SitemapListing(broken=[SkippedPage(str(urls[0]), str(exc))])
        listing.broken[:0] = previous.broken
        return listing

    def _select_entries(self, listing: SitemapListing, crawler: Crawler) -> tuple[list[CrawlEntry], list[SkippedPage]]:
        """The listed pages of the site, and the listed URLs that cannot be pages of it."""
        listed: list[tuple[WebUrl, str]] = []
        skipped: list[SkippedPage] = []
        for item in listing.entries.values():
            try:
                listed.append((parse_url(item.url), item.lastmod))
            except RejectedUrl as exc:
                skipped.append(SkippedPage(item.url[:200], str(exc)))
        origin = parse_url(crawler.scope.origin)
        foreign = {url.origin for url, _ in listed if not is_same_site(url, origin) and not is_same_site(origin, url)}
        if len(foreign) == 1 and all(url.origin in foreign for url, _ in listed):
            # A preview of a site that is published elsewhere: its pages are read from here.
            crawler.published_origin = foreign.pop()
            foreign = set()
        skipped += [
            SkippedPage(str(url), "it is on another host than the site") for url, _ in listed if url.origin in foreign
        ]
        local = ((crawler.local_url(url), lastmod) for url, lastmod in listed if url.origin not in foreign)
        entries = {
            str(url): CrawlEntry(url, lastmod, listed=True) for url, lastmod in local if crawler.scope.contains(url)
        }
        return list(entries.values()), skipped

    async def _deduplicate(self, crawler: Crawler, start: WebUrl, site_url: str) -> SitePages:
        if missing := await self._fetch_missing_page(crawler):
            crawler.entries = mark_soft_404s(crawler.entries, missing, start=str(start))
        if not any(entry.outcome is CrawlOutcome.READ for entry in crawler.entries.values()):
            _raise_failure(crawler.entries.values(), self.site)
        origin = crawler.published_origin
        is_preview = bool(site_url and origin and parse_url(site_url).origin == origin)

        def publish(url: str) -> str:
            return change_origin(parse_url(url), to=origin) if is_preview else url

        return deduplicate(crawler.entries, cache=self.cache, is_similar=self._is_similar, publish=publish)

    async def _fetch_missing_page(self, crawler: Crawler) -> PageMetadata | None:
        """The page that the site shows with status 200 for a missing URL; None if it responds with an error."""
        url = parse_url(crawler.scope.origin + crawler.scope.folder + MISSING_PATH)
        if not crawler.rules.is_allowed(url):
            return None
        try:
            response = await self.client.get(url, max_bytes=MAX_PAGE_BYTES)
            return self.parser.parse(response).metadata if response.status == 200 else None
        except BookError:
            return None

    def _is_similar(self, page: CrawlEntry, original: CrawlEntry) -> bool:
        """Whether two pages have the same title or share at least half of the text of the first."""
        if page.metadata and original.metadata and page.metadata.title == original.metadata.title:
            return True
        mine, its = ({part.text for part in self._parts(entry)} for entry in (page, original))
        return len(mine & its) * 2 >= len(mine)

    def _parts(self, entry: CrawlEntry) -> Iterable[DocumentPart]:
        cached = self.cache.get_response(entry.final_url)
        return self.parser.parse(cached).document.parts if cached else ()


def _missing_error(start: WebUrl, response: FetchResponse) -> InputError:
    return InputError(f"there is no page at {start} (HTTP {response.status}). Nothing was changed.")


def _choose_scope(site: WebUrl, start: WebUrl) -> SiteScope:
    scope = replace(SiteScope.of(site), origin=start.origin)
    return scope if scope.contains(start) else SiteScope.of(start)


def _raise_failure(entries: Iterable[CrawlEntry], site: WebUrl) -> None:
    failed = [entry for entry in entries if entry.outcome is CrawlOutcome.FAILED]
    if failed:
        reasons = "".join(f"\n  {entry.url}: {entry.reason}" for entry in failed[:5])
        raise Unavailable(f"no page of {site} could be read. Nothing was changed.{reasons}")
