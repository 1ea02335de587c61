"""Sitemaps: the pages of a site as its owner lists them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from xml.etree.ElementTree import ParseError

from bythebook.sources import Skipped, Unreadable
from bythebook.sources.website.http_client import unpacked
from bythebook.sources.website.urls import Location, Refused, locate

if TYPE_CHECKING:
    from bythebook.sources.website.http_client import Client

LARGEST = 50_000_000
"""Bytes of one sitemap, unpacked: the protocol's own limit."""
MOST_SITEMAPS = 500
MOST_ENTRIES = 50_000
"""Entries of one sitemap: the protocol's own limit."""
SECONDS = 120.0

_GZIP = b"\x1f\x8b"
_DEEPEST = 16
_LONGEST_TEXT = 4_096


@dataclass(frozen=True, slots=True)
class Entry:
    """A page a sitemap lists, with the time it says the page was changed, as it says it."""

    url: str
    lastmod: str = ""


@dataclass(slots=True)
class Listing:
    """What all sitemaps of a site list together, each address once, and what of them could not be read."""

    entries: dict[str, Entry] = field(default_factory=dict)
    broken: list[Skipped] = field(default_factory=list)
    found: int = 0
    """How many sitemaps there were."""


async def collect(client: Client, sitemaps: list[Location], *, most: int) -> Listing:
    """Read these sitemaps and those they name, until there are `most` entries. One that is not there is passed over.

    A sitemap the site fails to send is a failure of the site: what it lists would look deleted.
    """
    listing = Listing()
    waiting, seen = list(sitemaps), set(map(str, sitemaps))
    while waiting and listing.found < MOST_SITEMAPS and len(listing.entries) <= most:
        at = waiting.pop(0)
        for named in await _read_one(client, at, listing):
            try:
                location = locate(named, base=at)
            except Refused as exc:
                listing.broken.append(Skipped(named[:200], str(exc)))
                continue
            if str(location) not in seen:
                seen.add(str(location))
                waiting.append(location)
    return listing


async def _read_one(client: Client, at: Location, listing: Listing) -> list[str]:
    """Add what one sitemap lists. Returns the sitemaps it names."""
    try:
        answer = await client.get(at, most=LARGEST, seconds=SECONDS)
        if answer.status != 200 or answer.media_type in ("text/html", "application/xhtml+xml"):
            return []
        parsed = parse(answer.body)
    except (Unreadable, Refused) as exc:
        listing.broken.append(Skipped(str(at), f"this sitemap cannot be read: {exc}"))
        return []
    listing.found += 1
    for entry in parsed.entries:
        listing.entries.setdefault(entry.url, entry)
    if parsed.wrong:
        listing.broken.append(Skipped(str(at), f"this sitemap cannot be read to its end: {parsed.wrong}"))
    return parsed.sitemaps


@dataclass(slots=True)
class Parsed:
    """One sitemap: its pages, the sitemaps it names if it is an index, and what is wrong with it."""

    entries: list[Entry] = field(default_factory=list)
    sitemaps: list[str] = field(default_factory=list)
    wrong: str = ""


def parse(data: bytes) -> Parsed:
    """What a sitemap lists: XML, an index of others, or plain text, packed or not.

    What stands before an error is kept, and the error is told. Raises Unreadable where nothing can be made of it.
    """
    from defusedxml import DefusedXmlException
    from defusedxml.ElementTree import XMLParser

    if data.startswith(_GZIP):
        data = unpacked(data, most=LARGEST)
    if not data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<") and b"\x00" not in data[:4]:
        return _lines(data)
    collector = _Collector()
    parser = XMLParser(target=collector, forbid_dtd=True, forbid_entities=True, forbid_external=True)
    try:
        for start in range(0, len(data), 65_536):
            parser.feed(data[start : start + 65_536])
        parser.close()
    except DefusedXmlException as exc:
        raise Unreadable("it declares entities or a document type, which a sitemap has no use for") from exc
    except _Enough as exc:
        collector.parsed.wrong = str(exc)
    except (ParseError, ValueError, LookupError) as exc:
        collector.parsed.wrong = str(exc)
    return collector.parsed


def _lines(data: bytes) -> Parsed:
    lines = data.decode("utf-8-sig", "replace").split("\n", MOST_ENTRIES)[:MOST_ENTRIES]
    return Parsed([Entry(line.strip()) for line in lines if line.strip().startswith(("http://", "https://"))])


class _Enough(Exception):
    """More than a sitemap may have."""


class _Collector:
    """Hears the elements of a sitemap as they are parsed, and keeps no tree of them."""

    def __init__(self) -> None:
        self.parsed = Parsed()
        self._open: list[str] = []
        self._text: list[str] = []
        self._length = 0
        self._said: dict[str, str] = {}

    def start(self, tag: str, _attributes: dict[str, str]) -> None:
        self._open.append(tag.rpartition("}")[2])
        self._text, self._length = [], 0
        if len(self._open) > _DEEPEST:
            raise _Enough(f"its elements are more than {_DEEPEST} deep")

    def data(self, text: str) -> None:
        self._length += len(text)
        if self._length <= _LONGEST_TEXT:
            self._text.append(text)

    def end(self, _tag: str) -> None:
        name = self._open.pop()
        parent = self._open[-1] if self._open else ""
        if name in ("loc", "lastmod") and parent in ("url", "sitemap"):
            self._said[name] = "".join(self._text).strip()
        elif name in ("url", "sitemap"):
            self._keep(name)
        self._text, self._length = [], 0

    def _keep(self, name: str) -> None:
        said, self._said = self._said, {}
        if not said.get("loc"):
            return
        if len(self.parsed.entries) + len(self.parsed.sitemaps) >= MOST_ENTRIES:
            raise _Enough(f"it has more than {MOST_ENTRIES} entries")
        if name == "sitemap":
            self.parsed.sitemaps.append(said["loc"])
        else:
            self.parsed.entries.append(Entry(said["loc"], said.get("lastmod", "")))

    def close(self) -> None:
        """Nothing is left to do: everything was kept as it came."""
