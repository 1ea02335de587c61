"""Sitemaps (sitemaps.org): the pages of a site as its owner lists them."""

from dataclasses import dataclass, field
from xml.etree.ElementTree import ParseError

from bythebook.sources import SkippedPage, Unreadable
from bythebook.sources.website.http_client import SiteClient, decompress_gzip
from bythebook.sources.website.urls import RejectedUrl, WebUrl, parse_url

MAX_BYTES = 50_000_000
"""The maximum size of one decompressed sitemap, from the protocol."""
MAX_SITEMAPS = 500
MAX_ENTRIES = 50_000
"""The maximum number of entries of one sitemap, from the protocol."""
SITEMAP_SECONDS = 120.0

_GZIP = b"\x1f\x8b"
_MAX_DEPTH = 16
_MAX_TEXT = 4_096


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


def parse_sitemap(data: bytes) -> ParsedSitemap:
    """Parse a sitemap: XML, an index of sitemaps, or plain text; compressed or not.

    On a syntax error the entries before it are returned with the error. Raises Unreadable for a forbidden construct.
    """
    from defusedxml import DefusedXmlException
    from defusedxml.ElementTree import XMLParser

    if data.startswith(_GZIP):
        data = decompress_gzip(data, max_bytes=MAX_BYTES)
    if not data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<") and b"\x00" not in data[:4]:
        return _parse_lines(data)
    handler = _SitemapHandler()
    parser = XMLParser(target=handler, forbid_dtd=True, forbid_entities=True, forbid_external=True)
    try:
        for start in range(0, len(data), 65_536):
            parser.feed(data[start : start + 65_536])
        parser.close()
    except DefusedXmlException as exc:
        raise Unreadable("it declares entities or a document type, which sitemaps do not need") from exc
    except _LimitExceeded as exc:
        handler.parsed.error = str(exc)
    except (ParseError, ValueError, LookupError) as exc:
        handler.parsed.error = str(exc)
    return handler.parsed


def _parse_lines(data: bytes) -> ParsedSitemap:
    lines = data.decode("utf-8-sig", "replace").split("\n", MAX_ENTRIES)[:MAX_ENTRIES]
    return ParsedSitemap(
        [SitemapEntry(line.strip()) for line in lines if line.strip().startswith(("http://", "https://"))]
    )


class _LimitExceeded(Exception):
    """The sitemap exceeds a limit."""


class _SitemapHandler:
    """Collects the entries of a sitemap from parser events, without building a tree."""

    def __init__(self) -> None:
        self.parsed = ParsedSitemap()
        self._open: list[str] = []
        self._text: list[str] = []
        self._length = 0
        self._fields: dict[str, str] = {}

    def start(self, tag: str, _attributes: dict[str, str]) -> None:
        self._open.append(tag.rpartition("}")[2])
        self._text, self._length = [], 0
        if len(self._open) > _MAX_DEPTH:
            raise _LimitExceeded(f"its elements are more than {_MAX_DEPTH} deep")

    def data(self, text: str) -> None:
        self._length += len(text)
        if self._length <= _MAX_TEXT:
            self._text.append(text)

    def end(self, _tag: str) -> None:
        name = self._open.pop()
        parent = self._open[-1] if self._open else ""
        if name in ("loc", "lastmod") and parent in ("url", "sitemap"):
            self._fields[name] = "".join(self._text).strip()
        elif name in ("url", "sitemap"):
            self._add(name)
        self._text, self._length = [], 0

    def _add(self, name: str) -> None:
        fields, self._fields = self._fields, {}
        if not fields.get("loc"):
            return
        if len(self.parsed.entries) + len(self.parsed.sitemaps) >= MAX_ENTRIES:
            raise _LimitExceeded(f"it has more than {MAX_ENTRIES} entries")
        if name == "sitemap":
            self.parsed.sitemaps.append(fields["loc"])
        else:
            self.parsed.entries.append(SitemapEntry(fields["loc"], fields.get("lastmod", "")))

    def close(self) -> None:
        """Required by the parser interface."""
