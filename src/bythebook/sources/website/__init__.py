"""Published sites, read over HTTP.

`urls` normalizes URLs and decides which belong to the site; `ssrf` restricts the addresses that may be connected to;
`http_client` fetches one URL; `robots` and `sitemap` read what the site's owner publishes for crawlers; `crawler`
fetches the pages, `page_parser` parses them and `cache` stores them; `deduplicate` gives each page one URL; `discovery`
runs all of this once, and `source` is the page source.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CrawlLimits:
    """How much of a site is read, and how fast."""

    pages: int = 5_000
    depth: int = 20
    """The maximum number of links between the first page and another, where there is no sitemap."""
    megabytes: int = 1_000
    """The size of all bodies together, decompressed."""
    minutes: float = 60.0
    delay: float = 0.1
    """The minimum seconds between two requests. `Crawl-delay` in robots.txt may demand more."""
    max_concurrency: int = 4
    """The maximum number of concurrent requests."""
    private: bool = False
    """Whether the host given by the user may be on a private network."""


@dataclass(frozen=True, slots=True)
class Validators:
    """The validators of a response (RFC 9110), sent with the next conditional request."""

    etag: str = ""
    last_modified: str = ""

    def __bool__(self) -> bool:
        return bool(self.etag or self.last_modified)


@dataclass(frozen=True, slots=True)
class FetchResponse:
    """The response for a URL, at the end of its redirects."""

    url: str
    """The URL that served it, after redirects."""
    status: int
    body: bytes = b""
    media_type: str = ""
    charset: str = ""
    validators: Validators = Validators()
    robots: str = ""
    """The `X-Robots-Tag` header."""
    permanent: bool = False
    """Whether all redirects were permanent."""

    @property
    def is_unchanged(self) -> bool:
        return self.status == 304

    @property
    def is_gone(self) -> bool:
        return self.status in (404, 410)


@dataclass(frozen=True, slots=True)
class PageMetadata:
    """What a page declares about itself, and where it links to. URLs are absolute."""

    content_hash: str
    """A hash of what a reader sees of the page."""
    title: str = ""
    canonical: str = ""
    refresh: str = ""
    """The target of a meta refresh."""
    noindex: bool = False
    """Whether the page asks not to be indexed."""
    links: tuple[str, ...] = ()
