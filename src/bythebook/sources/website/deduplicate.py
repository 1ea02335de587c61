"""Sorting: from what became of every address to the pages of the book, each under one address."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from bythebook.sources import Listed, Skipped
from bythebook.sources.website.crawler import Fate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from bythebook.sources.website import Said
    from bythebook.sources.website.cache import Archive
    from bythebook.sources.website.crawler import Stop

_NOT_FOUND = re.compile(
    r"\b404\b|(not found|nicht gefunden|introuvable|no encontrada"
    r"|non trouvée|não encontrada|non trovata|не найдена)|doesn.t exist|does not exist",
    re.I,
)


@dataclass(slots=True)
class Sorted:
    """The pages of the site in its order, and what is none of them."""

    entries: list[Listed | Skipped] = field(default_factory=list)
    homes: dict[str, str] = field(default_factory=dict)
    """Where the page behind each listed address is kept."""
    troubles: dict[str, str] = field(default_factory=dict)
    """Why a listed page could not be fetched this time."""


def without_soft_errors(stops: Mapping[str, Stop], nothing: Said, *, start: str) -> dict[str, Stop]:
    """The stops, with those gone that look as the site looks where it has nothing, whatever their status says."""
    gone: dict[str, Stop] = {}
    for asked_for, stop in stops.items():
        soft = stop.fate is Fate.READ and stop.said and stop.url != start and _is_like(stop.said, nothing)
        reason = "it is not there: the site shows what it shows for any wrong address"
        gone[asked_for] = replace(stop, fate=Fate.GONE, reason=reason, url="") if soft else stop
    return gone


def _is_like(said: Said, nothing: Said) -> bool:
    same_title = said.title == nothing.title and _NOT_FOUND.search(said.title) is not None
    return said.content == nothing.content or same_title


def sort(
    stops: Mapping[str, Stop], *, archive: Archive, alike: Callable[[Stop, Stop], bool], published: Callable[[str], str]
) -> Sorted:
    """What the book is made of. `published` says under which address a page is known."""
    result = Sorted()
    pages = _pages(stops)
    chosen = {stop.url for stop in _chosen(stops, pages, alike)}
    for asked_for, stop in stops.items():
        if stop.fate is Fate.READ:
            if stop.url in chosen and pages[stop.url] is stop and stop.said:
                url = published(stop.url)
                result.entries.append(Listed(url, url, stop.said.content))
                result.homes[url] = stop.url
        elif stop.fate is Fate.FAILED:
            before = archive.asked(asked_for)
            home = before.led_to if before else asked_for
            if home not in chosen:
                _add_trouble(result, published(home), stop.reason)
        elif stop.listed:
            result.entries.append(Skipped(published(asked_for), stop.reason))
    return result


def _add_trouble(result: Sorted, url: str, reason: str) -> None:
    """A page that could not be fetched is still one of the book's, if it was; and the author is told of it."""
    if url not in result.troubles:
        result.troubles[url] = reason
        result.entries.append(Listed(url, url, ""))


def _pages(stops: Mapping[str, Stop]) -> dict[str, Stop]:
    """The pages that were read by the address they are at, however often that was come by."""
    pages: dict[str, Stop] = {}
    for stop in stops.values():
        if stop.fate is not Fate.READ or stop.said is None or stop.said.refresh:
            continue
        # One that is listed speaks for the page rather than a link that leads to it.
        if stop.url not in pages or (stop.listed and not pages[stop.url].listed):
            pages[stop.url] = stop
    return pages


def _chosen(
    stops: Mapping[str, Stop], pages: Mapping[str, Stop], alike: Callable[[Stop, Stop], bool]
) -> Iterable[Stop]:
    """One page for each content: not those that say they are copies of another, nor a second one word for word."""
    seen: set[str] = set()
    originals = [page for page in pages.values() if _original(page, stops, pages) is None]
    copies = [page for page in pages.values() if _original(page, stops, pages) is not None]
    for page in [*originals, *copies]:
        original = _original(page, stops, pages)
        is_copy = original is not None and alike(page, original)
        if page.said and not is_copy and page.said.content not in seen:
            seen.add(page.said.content)
            yield page


def _original(page: Stop, stops: Mapping[str, Stop], pages: Mapping[str, Stop]) -> Stop | None:
    """The page that this one says it is a copy of, where there is such a page and it is no copy itself.

    A canonical address is often written wrongly, most often as the same for a whole site: it is believed only when the
    two have something in common, which `alike` decides.
    """
    canonical = page.said.canonical if page.said else ""
    led_to = stops[canonical].url if canonical in stops else canonical
    original = pages.get(led_to)
    if original is None or original is page or original.said is None:
        return None
    said = original.said.canonical
    return original if said in ("", led_to, canonical) else None
