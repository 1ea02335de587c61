"""A tour: one look through a site, from its robots.txt to its pages, sorted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bythebook.errors import BookError, InputError, Unavailable
from bythebook.sources import Skipped
from bythebook.sources.website import robots, sitemap
from bythebook.sources.website.crawler import LARGEST, Fate, Stop, Visit
from bythebook.sources.website.deduplicate import Sorted, sort, without_soft_errors
from bythebook.sources.website.page_parser import look_at
from bythebook.sources.website.urls import Location, Refused, Scope, is_same_site, locate, moved

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from bythebook.sources.document import Part
    from bythebook.sources.website import Answer, Limits, Said
    from bythebook.sources.website.cache import Archive, Kept
    from bythebook.sources.website.http_client import Client
    from bythebook.sources.website.page_parser import Look

NOWHERE = "bythebook-asks-for-a-page-that-is-not-there"


def look_again(kept: Kept) -> Look:
    """What there is to know of a page that is kept."""
    return look_at(kept.body, at=locate(kept.url), media_type=kept.media_type, charset=kept.charset, robots=kept.robots)


class Tour:
    """One look through a site, from its robots.txt to the sorted pages."""

    def __init__(
        self,
        named: Location,
        client: Client,
        archive: Archive,
        limits: Limits,
        progress: Callable[[str, int, int], None],
    ) -> None:
        self._named = named
        self._client = client
        self._archive = archive
        self._limits = limits
        self._progress = progress

    async def go(self, site_url: str) -> Sorted:
        rules = await self._rules(self._named)
        start, answer = await self._arrive()
        if start.origin != self._named.origin:
            rules = await self._rules(start)
        visit = Visit(self._client, self._archive, rules, _scope(self._named, start), self._limits, self._progress)
        listing = await self._sitemaps(rules, visit.scope)
        stops, elsewhere = self._stops(listing, visit)
        is_complete = len(stops) > 1 and not listing.broken
        if answer.is_gone and not is_complete:
            raise _not_there(start, answer)
        if not is_complete or any(stop.location == start for stop in stops):
            first = next((stop for stop in stops if stop.location == start), Stop(start, listed=True))
            await visit.take(first, answer, following=not is_complete)
        if is_complete:
            await visit.listed(stops)
        else:
            known = [Stop(locate(url)) for url in self._archive.pages()]
            await visit.crawl([*stops, *(stop for stop in known if visit.scope.holds(stop.location))])
        # What is listed comes in the order of the list, however it was come by.
        visit.stops = {str(s.location): visit.stops[str(s.location)] for s in stops} | visit.stops
        found = await self._sorted(visit, start, site_url)
        visit.end()
        found.entries.extend([*listing.broken, *elsewhere])
        return found

    async def _rules(self, site: Location) -> robots.Rules:
        rules = await robots.ask_rules(self._client, site)
        self._client.delay = max(self._limits.delay, rules.delay)
        if not rules.allow(site):
            raise InputError(
                f"{locate('/robots.txt', base=site)} does not allow {site} to be read. Nothing was changed. If the "
                f"site is yours, allow {robots.AGENT!r} there, or ingest the files it is made from."
            )
        return rules

    async def _arrive(self) -> tuple[Location, Answer]:
        """Where the site is, and what is there. Raises InputError where it has moved away or is not there."""
        named = self._named
        answer = await self._client.get(
            named, most=LARGEST, known=lambda at: self._archive.validators(str(at)), may_follow=is_same_site
        )
        start = locate(answer.url)
        if start.origin != named.origin and not is_same_site(named, start):
            raise InputError(
                f"{named} has moved to {start}. Nothing was changed. If that is the site you mean, name it: "
                f"bythebook ingest {start}"
            )
        if answer.status not in (200, 304, 404):
            raise _not_there(start, answer)
        return start, answer

    async def _sitemaps(self, rules: robots.Rules, scope: Scope) -> sitemap.Listing:
        """What the site's sitemaps list: those robots.txt names, else those in the usual places."""
        own, foreign = [], []
        listing = sitemap.Listing()
        for named in rules.sitemaps:
            try:
                location = locate(named, base=self._named)
            except Refused as exc:
                listing.broken.append(Skipped(named[:200], str(exc)))
                continue
            own.append(location if location.origin == scope.origin else locate(moved(location, to=scope.origin)))
            foreign += [location] if location.origin != scope.origin else []
        usual = [locate(scope.origin + scope.folder + "sitemap.xml"), locate(scope.origin + "/sitemap.xml")]
        for places in (own, *([place] for place in dict.fromkeys(usual)), foreign):
            listing = await self._collected(places, listing, failing=places is not foreign)
            if listing.found:
                break
        return listing

    async def _collected(self, places: list[Location], so_far: sitemap.Listing, *, failing: bool) -> sitemap.Listing:
        try:
            listing = await sitemap.collect(self._client, places, most=self._limits.pages)
        except BookError as exc:
            if failing:
                raise
            listing = sitemap.Listing(broken=[Skipped(str(places[0]), str(exc))])
        listing.broken[:0] = so_far.broken
        return listing

    def _stops(self, listing: sitemap.Listing, visit: Visit) -> tuple[list[Stop], list[Skipped]]:
        """The pages that are listed, and what is listed that cannot be one of the site's."""
        located: list[tuple[Location, str]] = []
        wrong: list[Skipped] = []
        for entry in listing.entries.values():
            try:
                located.append((locate(entry.url), entry.lastmod))
            except Refused as exc:
                wrong.append(Skipped(entry.url[:200], str(exc)))
        origin = locate(visit.scope.origin)
        origins = {at.origin for at, _ in located if not is_same_site(at, origin) and not is_same_site(origin, at)}
        if len(origins) == 1 and all(at.origin in origins for at, _ in located):
            # A preview of a site that is published elsewhere: its pages are read from here.
            visit.published = origins.pop()
            origins = set()
        wrong += [Skipped(str(at), "it is on another host than the site") for at, _ in located if at.origin in origins]
        here = ((visit.own(at), lastmod) for at, lastmod in located if at.origin not in origins)
        stops = {str(at): Stop(at, lastmod, listed=True) for at, lastmod in here if visit.scope.holds(at)}
        return list(stops.values()), wrong

    async def _sorted(self, visit: Visit, start: Location, site_url: str) -> Sorted:
        if nothing := await self._nothing(visit):
            visit.stops = without_soft_errors(visit.stops, nothing, start=str(start))
        if not any(stop.fate is Fate.READ for stop in visit.stops.values()):
            _raise_if_all_failed(visit.stops.values(), self._named)
        elsewhere = bool(site_url and visit.published and locate(site_url).origin == visit.published)

        def published(url: str) -> str:
            return moved(locate(url), to=visit.published) if elsewhere else url

        return sort(visit.stops, archive=self._archive, alike=self._alike, published=published)

    async def _nothing(self, visit: Visit) -> Said | None:
        """What the site shows for an address where nothing is; None where it rightly says that nothing is there."""
        nowhere = locate(visit.scope.origin + visit.scope.folder + NOWHERE)
        if not visit.rules.allow(nowhere):
            return None
        try:
            answer = await self._client.get(nowhere, most=LARGEST)
            if answer.status != 200:
                return None
            look = look_at(
                answer.body, at=locate(answer.url), media_type=answer.media_type, charset=answer.charset, robots=""
            )
        except BookError:
            return None
        return look.said

    def _alike(self, page: Stop, original: Stop) -> bool:
        """Whether two pages have their title or most of their text in common."""
        if page.said and original.said and page.said.title == original.said.title:
            return True
        mine, its = ({part.text for part in self._parts(stop)} for stop in (page, original))
        return len(mine & its) * 2 >= len(mine)

    def _parts(self, stop: Stop) -> Iterable[Part]:
        kept = self._archive.kept(stop.url)
        return look_again(kept).draft.parts if kept else ()


def _not_there(start: Location, answer: Answer) -> InputError:
    return InputError(f"there is no page at {start} (HTTP {answer.status}). Nothing was changed.")


def _scope(named: Location, start: Location) -> Scope:
    scope = Scope.of(named).moved_to(start.origin)
    return scope if scope.holds(start) else Scope.of(start)


def _raise_if_all_failed(stops: Iterable[Stop], named: Location) -> None:
    failed = [stop for stop in stops if stop.fate is Fate.FAILED]
    if failed:
        reasons = "".join(f"\n  {stop.location}: {stop.reason}" for stop in failed[:5])
        raise Unavailable(f"no page of {named} could be read. Nothing was changed.{reasons}")
