"""Deduplication: from the outcome of every URL to the pages of the book, each under one URL."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from bythebook.sources import ListedPage, SkippedPage
from bythebook.sources.website import PageMetadata
from bythebook.sources.website.cache import CrawlCache
from bythebook.sources.website.crawler import CrawlEntry, CrawlOutcome

_NOT_FOUND = re.compile(
    r"\b404\b|(not found|nicht gefunden|introuvable|no encontrada"
    r"|non trouvée|não encontrada|non trovata|не найдена)|doesn.t exist|does not exist",
    re.I,
)


@dataclass(slots=True)
class SitePages:
    """The pages of the site in its order, and the URLs that are not pages."""

    entries: list[ListedPage | SkippedPage] = field(default_factory=list)
    cached_urls: dict[str, str] = field(default_factory=dict)
    """The URL in the cache for each listed URL."""
    failures: dict[str, str] = field(default_factory=dict)
    """Why a listed page could not be fetched in this crawl."""


def mark_soft_404s(entries: Mapping[str, CrawlEntry], missing: PageMetadata, *, start: str) -> dict[str, CrawlEntry]:
    """Mark pages as gone that look like the page `missing`, which the site shows for any missing URL."""
    reason = "it is not there: the site shows what it shows for any wrong address"

    def mark(entry: CrawlEntry) -> CrawlEntry:
        is_read = entry.outcome is CrawlOutcome.READ and entry.final_url != start
        if is_read and entry.metadata and _is_error_page(entry.metadata, missing):
            return replace(entry, outcome=CrawlOutcome.GONE, reason=reason, final_url="")
        return entry

    return {requested: mark(entry) for requested, entry in entries.items()}


def _is_error_page(page: PageMetadata, missing: PageMetadata) -> bool:
    has_error_title = page.title == missing.title and _NOT_FOUND.search(page.title) is not None
    return page.content_hash == missing.content_hash or has_error_title


def deduplicate(
    entries: Mapping[str, CrawlEntry],
    *,
    cache: CrawlCache,
    is_similar: Callable[[CrawlEntry, CrawlEntry], bool],
    publish: Callable[[str], str],
) -> SitePages:
    """Select the pages of the book. `publish` returns the published URL of a page."""
    result = SitePages()
    pages = _index_pages(entries)
    chosen = {entry.final_url for entry in _choose_pages(entries, pages, is_similar)}
    for requested, entry in entries.items():
        if entry.outcome is CrawlOutcome.READ:
            if entry.final_url in chosen and pages[entry.final_url] is entry and entry.metadata:
                url = publish(entry.final_url)
                result.entries.append(ListedPage(url, url, entry.metadata.content_hash))
                result.cached_urls[url] = entry.final_url
        elif entry.outcome is CrawlOutcome.FAILED:
            before = cache.get_fetch(requested)
            url = before.final_url if before else requested
            url = "" if url in chosen else publish(url)
            if url and url not in result.failures:
                # The book keeps the page if it has it, and the report names it.
                result.failures[url] = entry.reason
                result.entries.append(ListedPage(url, url, ""))
        elif entry.listed:
            result.entries.append(SkippedPage(publish(requested), entry.reason))
    return result


def _index_pages(entries: Mapping[str, CrawlEntry]) -> dict[str, CrawlEntry]:
    """The entry of each page that was read, by its final URL."""
    pages: dict[str, CrawlEntry] = {}
    for entry in entries.values():
        if entry.outcome is not CrawlOutcome.READ or entry.metadata is None or entry.metadata.refresh:
            continue
        # An entry of the sitemap takes precedence over a link that redirects to the same page.
        if entry.final_url not in pages or (entry.listed and not pages[entry.final_url].listed):
            pages[entry.final_url] = entry
    return pages


def _choose_pages(
    entries: Mapping[str, CrawlEntry],
    pages: Mapping[str, CrawlEntry],
    is_similar: Callable[[CrawlEntry, CrawlEntry], bool],
) -> Iterable[CrawlEntry]:
    """One page for each content: no page that declares itself a copy, and no second page with the same text."""
    seen: set[str] = set()
    found = [(page, _find_original(page, entries, pages)) for page in pages.values()]
    for page, original in sorted(found, key=lambda pair: pair[1] is not None):
        is_copy = original is not None and is_similar(page, original)
        if page.metadata and not is_copy and page.metadata.content_hash not in seen:
            seen.add(page.metadata.content_hash)
            yield page


def _find_original(
    page: CrawlEntry, entries: Mapping[str, CrawlEntry], pages: Mapping[str, CrawlEntry]
) -> CrawlEntry | None:
    """The page that this one declares as its canonical page, if it was read and is not a copy itself.

    Canonical URLs are often wrong, most often the same for a whole site. One is used only if the two pages have
    something in common, which `is_similar` decides.
    """
    canonical = page.metadata.canonical if page.metadata else ""
    final_url = entries[canonical].final_url if canonical in entries else canonical
    original = pages.get(final_url)
    if original is None or original is page or original.metadata is None:
        return None
    is_canonical = original.metadata.canonical in ("", final_url, canonical)
    return original if is_canonical else None
