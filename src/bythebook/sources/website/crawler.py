"""A visit: going through a site, politely and within limits, and writing down what becomes of every address.

Trust: when a page need not be asked for, because the site says that it has not changed.

A sitemap's `lastmod` is a statement, not a proof: some generators write the day of the build, some never change it.
It spares a request only where it could show a change, and only as long as the site has never been caught out:

- it is the same as when the page was last asked for, and lies before that time, by a day if it is no more than a date;
- the page was asked for within the last week;
- a few of the pages that would be spared, those not asked for the longest, are asked for all the same. When one of
  them has changed although its `lastmod` has not, the site's `lastmod` is never believed again.
"""

from __future__ import annotations

import asyncio
import re
import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from bythebook.concurrency import together
from bythebook.errors import BookError, DeadlineExceeded, RateLimited, Unavailable
from bythebook.sources import Unreadable
from bythebook.sources.website.cache import Asked, Kept
from bythebook.sources.website.page_parser import look_at
from bythebook.sources.website.urls import Location, Scope, is_same_site, leads_in_circles, locate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bythebook.sources.website import Answer, Limits, Said
    from bythebook.sources.website.cache import Archive
    from bythebook.sources.website.http_client import Client
    from bythebook.sources.website.robots import Rules


LARGEST = 10_000_000
"""Bytes beyond which something is not a page."""
PATIENCE = 120.0
"""Seconds a visit waits in all for a site that asks for a pause or does not answer."""
MOST_QUERIES = 20
"""Addresses of one path that differ in their query only."""

_NO_PAGE = re.compile(
    r"\.(?:png|jpe?g|gif|svg|webp|ico|bmp|css|m?js|json|xml|rss|atom|pdf|epub|zip|gz|tgz|bz2|xz|7z|rar|tar|exe|dmg"
    r"|mp[34]|webm|ogg|wav|avi|mov|woff2?|ttf|eot|docx?|xlsx?|pptx?|csv|wasm|whl|map|iso|deb|rpm|jar|ics)$",
    re.I,
)


class Fate(StrEnum):
    """What became of an address."""

    READ = "read"
    GONE = "gone"
    """It is not there, or not any more."""
    NOT_A_PAGE = "not a page"
    """It is there, and no page of the book."""
    FAILED = "failed"
    """Nobody knows: what is known of it stays."""


@dataclass(frozen=True, slots=True)
class Stop:
    """One address of the visit, and what became of it."""

    location: Location
    lastmod: str = ""
    listed: bool = False
    """Whether the site's owner lists it; if not, it was found by a link."""
    fate: Fate = Fate.FAILED
    reason: str = ""
    url: str = ""
    """Where it led, for a page that was read."""
    said: Said | None = None
    """What the page says, without its links: those are followed at once."""


@dataclass(slots=True)
class Visit:
    """One visit to a site."""

    client: Client
    archive: Archive
    rules: Rules
    scope: Scope
    limits: Limits
    progress: Callable[[str, int, int], None]
    now: Callable[[], float] = time.time
    stops: dict[str, Stop] = field(default_factory=dict)
    published: str = ""
    """The origin the site names its pages under, where that is not the one it is read from."""
    _links: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _following: bool = False
    _begun: int = 0
    _done: int = 0
    _bytes: int = 0
    _waited: float = 0.0
    _queries: dict[str, int] = field(default_factory=dict)
    _spent: str = ""
    """Why nothing more is asked for."""
    _until: float = 0.0

    def __post_init__(self) -> None:
        self._until = time.monotonic() + self.limits.minutes * 60

    def end(self) -> None:
        """Forget what the site no longer has. What could not be asked for is kept."""
        staying = {stop.url for stop in self.stops.values() if stop.url}
        for asked_for, stop in self.stops.items():
            if stop.fate is not Fate.GONE:
                before = self.archive.asked(asked_for)
                staying |= {asked_for, before.led_to if before else asked_for}
        self.archive.forget_all_but(staying)

    def own(self, location: Location) -> Location:
        """Where a page that the site names is read from."""
        here = locate(self.scope.origin)
        if location.origin == self.published or is_same_site(location, here) or is_same_site(here, location):
            return replace(here, path=location.path, query=location.query)
        return location

    def _as_ours(self, url: str) -> str:
        return str(self.own(locate(url))) if url else ""

    async def take(self, stop: Stop, answer: Answer, *, following: bool) -> None:
        """Write down a page that has come already, and go on from it."""
        self._following = following
        if self._admitted([stop]):
            self._write(await self._judged(stop, answer))
            await self._through(self._onward(self.stops[str(stop.location)]), following=following)

    async def listed(self, stops: Sequence[Stop]) -> None:
        """Visit what the site lists, and where those pages say they have gone to."""
        spared = self._spared(stops)
        for stop in spared:
            self.stops[str(stop.location)] = stop
        await self._through([stop for stop in stops if str(stop.location) not in self.stops], following=False)
        if not is_believed(self.archive):
            # The site was caught out on the way: what was spared is asked for after all.
            for stop in spared:
                del self.stops[str(stop.location)]
            asked_for = [replace(stop, fate=Fate.FAILED, url="", said=None) for stop in spared]
            await self._through(asked_for, following=False)

    async def crawl(self, stops: Sequence[Stop]) -> None:
        """Visit these, and everything of the site they lead to."""
        await self._through(stops, following=True)

    def _spared(self, stops: Sequence[Stop]) -> list[Stop]:
        """What need not be asked for, as nothing has changed by the site's own account."""
        if not is_believed(self.archive):
            return []
        unchanged: list[tuple[float, Stop]] = []
        for stop in stops:
            asked = self.archive.asked(str(stop.location))
            if asked and says_unchanged(asked, stop.lastmod) and is_recent(asked, self.now()):
                said = self.archive.said(asked.led_to)
                here = str(stop.location) not in self.stops and self.rules.allow(stop.location)
                if said and not said.unlisted and here:
                    unchanged.append((asked.at, self._read(stop, asked.led_to, said)))
        oldest_first = sorted(unchanged, key=lambda pair: pair[0])
        return [stop for _, stop in oldest_first[TRIED:]]

    async def _through(self, stops: Sequence[Stop], *, following: bool) -> None:
        """Visit level by level, so that the order of pages does not depend on which of them comes first."""
        self._following = following
        level = self._admitted(stops)
        for _depth in range(self.limits.depth + 1):
            if not level:
                return
            await self._all(level)
            onward = [self._onward(self.stops[str(stop.location)]) for stop in level]
            level = self._admitted([stop for leading in onward for stop in leading])
        for stop in level:
            self._write(replace(stop, reason=f"it is more than {self.limits.depth} links away (site_depth)"))

    def _admitted(self, stops: Sequence[Stop]) -> list[Stop]:
        """Those not seen before that the site's owner lets us read. They are written down at once."""
        fresh: list[Stop] = []
        for stop in stops:
            if str(stop.location) in self.stops:
                continue
            self._write(stop)
            if not self.rules.allow(stop.location):
                self._write(replace(stop, fate=Fate.NOT_A_PAGE, reason="robots.txt does not allow it to be read"))
            else:
                fresh.append(stop)
        return fresh

    def _write(self, stop: Stop) -> None:
        self.stops[str(stop.location)] = stop

    async def _all(self, level: Sequence[Stop]) -> None:
        places = asyncio.Semaphore(self.limits.at_once)

        async def one(stop: Stop) -> None:
            async with places:
                self._write(await self._one(stop))
                self._done += 1
                self.progress("fetching", self._done, len(self.stops))

        # What was not asked for the longest comes first: should the time run out, the next visit goes on from there.
        await together(*(one(stop) for stop in sorted(level, key=self._last_asked)))

    def _last_asked(self, stop: Stop) -> float:
        asked = self.archive.asked(str(stop.location))
        return asked.at if asked else 0.0

    async def _one(self, stop: Stop) -> Stop:
        if reason := self._why_not():
            return replace(stop, reason=reason)
        self._begun += 1
        try:
            answer = await self._fetched(stop.location)
        except (BookError, TimeoutError) as exc:
            return replace(stop, reason=str(exc))
        return await self._judged(stop, answer)

    def _why_not(self) -> str:
        """Why nothing more is asked for; empty as long as there is no reason."""
        if self._begun >= self.limits.pages:
            return f"the site has more than {self.limits.pages} pages (site_pages)"
        if self._bytes > self.limits.megabytes * 1_000_000:
            return f"the site has more than {self.limits.megabytes} MB (site_megabytes)"
        if time.monotonic() > self._until:
            return f"the site took longer than {self.limits.minutes:g} minutes (site_minutes)"
        return self._spent

    async def _fetched(self, location: Location) -> Answer:
        """What is there. A site that asks for a pause gets it, as long as there is patience."""
        while True:
            try:
                answer = await self.client.get(
                    location,
                    most=LARGEST,
                    known=lambda at: self.archive.validators(str(at)),
                    may_follow=is_same_site,
                )
            except (RateLimited, Unavailable, DeadlineExceeded) as exc:
                pause = exc.retry_after
                if pause is None:
                    raise
                if self._waited + pause > PATIENCE or time.monotonic() + pause > self._until:
                    self._spent = f"the site stopped answering ({exc})"
                    raise
                self._waited += pause
                await asyncio.sleep(pause)
            else:
                self._bytes += len(answer.body)
                return answer

    async def _judged(self, stop: Stop, answer: Answer) -> Stop:
        if refused := self._refusal(stop, answer):
            return refused
        if answer.is_unchanged and (said := self.archive.said(answer.url)):
            self.archive.note(str(stop.location), Asked(answer.url, self.now(), stop.lastmod))
            return self._read(stop, answer.url, said)
        if answer.is_unchanged and (known := self.archive.kept(answer.url)):
            return await self._looked(stop, known)
        if answer.status != 200:
            return replace(stop, reason=f"the site does not show it (HTTP {answer.status})")
        page = Kept(answer.url, answer.body, answer.media_type, answer.charset, answer.robots, answer.validators)
        return await self._looked(stop, page)

    def _refusal(self, stop: Stop, answer: Answer) -> Stop | None:
        """What becomes of an address that is gone or leads out of the site."""
        final = locate(answer.url)
        if answer.is_gone:
            return replace(stop, fate=Fate.GONE, reason=f"it is not there (HTTP {answer.status})")
        if not self.scope.holds(final):
            fate = Fate.GONE if answer.permanent else Fate.FAILED
            return replace(stop, fate=fate, reason=f"it leads to {final}, which is not part of the site")
        if not self.rules.allow(final):
            return replace(stop, fate=Fate.NOT_A_PAGE, reason=f"it leads to {final}, which robots.txt does not allow")
        return None

    async def _looked(self, stop: Stop, page: Kept) -> Stop:
        """Look at a page, and keep it if it is a new version."""
        try:
            look = await asyncio.to_thread(
                look_at,
                page.body,
                at=locate(page.url),
                media_type=page.media_type,
                charset=page.charset,
                robots=page.robots,
            )
        except Unreadable as exc:
            # What was a page before may be one again tomorrow.
            was_one = self.archive.asked(str(stop.location)) is not None
            return replace(stop, fate=Fate.FAILED if was_one else Fate.NOT_A_PAGE, reason=str(exc))
        asked, known = self.archive.asked(str(stop.location)), self.archive.said(page.url)
        if says_unchanged(asked, stop.lastmod) and known and known.content != look.said.content:
            catch_out(self.archive)
        self.archive.keep(page, look.said)
        self.archive.note(str(stop.location), Asked(page.url, self.now(), stop.lastmod))
        return self._read(stop, page.url, look.said)

    def _read(self, stop: Stop, url: str, said: Said) -> Stop:
        self._links[str(stop.location)] = said.links if self._following else ()
        kept = replace(said, links=(), canonical=self._as_ours(said.canonical), refresh=self._as_ours(said.refresh))
        if said.unlisted:
            return replace(stop, fate=Fate.NOT_A_PAGE, reason="it asks not to be indexed (noindex)", url=url, said=kept)
        return replace(stop, fate=Fate.READ, url=url, said=kept)

    def _onward(self, stop: Stop) -> list[Stop]:
        """Where to go from a page: to what it says it is a copy of, and by its links where those are followed."""
        links = self._links.pop(str(stop.location), ())
        if stop.said is None:
            return []
        named = [url for url in (stop.said.refresh, stop.said.canonical) if url]
        found = dict.fromkeys(self.own(locate(url)) for url in [*named, *links])
        return [Stop(location) for location in found if self._belongs(location)]

    def _belongs(self, location: Location) -> bool:
        if not self.scope.holds(location) or _NO_PAGE.search(location.path) or leads_in_circles(location):
            return False
        if not location.query or str(location) in self.stops:
            return True
        self._queries[location.path] = self._queries.get(location.path, 0) + 1
        return self._queries[location.path] <= MOST_QUERIES


AT_LEAST_EVERY = timedelta(days=7)
"""How long a page may be spared."""
TRIED = 5
"""How many of the spared pages are asked for in every run."""

_CAUGHT = "lastmod is not believed"


def moment(lastmod: str) -> datetime | None:
    """The latest moment a `lastmod` can mean; None where it is no time."""
    try:
        said = datetime.fromisoformat(lastmod)
    except ValueError:
        return None
    if "T" not in lastmod.upper() and " " not in lastmod:
        # A day begins and ends at other times elsewhere: nobody knows in which time zone it was written.
        return said.replace(tzinfo=UTC) + timedelta(days=1, hours=14)
    return said if said.tzinfo else said.replace(tzinfo=UTC) + timedelta(hours=14)


def says_unchanged(asked: Asked | None, lastmod: str) -> bool:
    """Whether the sitemap states that a page is as it was when it was last asked for."""
    said = moment(lastmod)
    return bool(asked and said and asked.lastmod == lastmod and said.timestamp() < asked.at)


def is_believed(archive: Archive) -> bool:
    return not archive.fact(_CAUGHT)


def catch_out(archive: Archive) -> None:
    archive.state(_CAUGHT, "yes")


def is_recent(asked: Asked, now: float) -> bool:
    return now - asked.at < AT_LEAST_EVERY.total_seconds()
