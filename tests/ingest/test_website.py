"""Ingesting a site: only changes are processed, failing pages stay, missing pages are removed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from bythebook.errors import BookError
from bythebook.index.generations import load_coverage
from bythebook.ingest import IngestReport
from bythebook.sources import SkippedPage
from bythebook.sources.website.cache import CrawlCache
from bythebook.sources.website.source import Website
from tests.support.index_contents import contents
from tests.support.site_server import QUICK, Reply, SiteServer, moved_to, page, serving, site_of
from tests.support.word_embedder import WordBook

PATHS = ("/", "/oil", "/wick", "/fog")


@pytest.fixture
async def server() -> AsyncIterator[SiteServer]:
    shown = {path: page(path.strip("/").title() or "Home", f"A sentence about {path}.") for path in PATHS}
    async with serving(SiteServer(dict(shown))) as started:
        started.sitemap(*PATHS)
        yield started


@pytest.fixture
def book(tmp_path: Path) -> WordBook:
    return WordBook(tmp_path / "index")


async def ingested(book: WordBook, server: SiteServer) -> IngestReport:
    with closing(site_of(server, book.folder.with_name("site.db"))) as site:
        return await book.ingest(site)


def did(report: IngestReport) -> tuple[int, int, int, int]:
    return (report.added, report.changed, report.removed, report.unchanged)


async def test_processes_only_changed_pages(book: WordBook, server: SiteServer) -> None:
    assert did(await ingested(book, server)) == (4, 0, 0, 0)
    again = await ingested(book, server)
    assert (did(again), again.generation, again.embedded) == ((0, 0, 0, 4), "", 0)
    server.shown["/oil"] = page("Oil", "Another sentence.")
    report = await ingested(book, server)
    assert (did(report), report.embedded) == ((0, 1, 0, 3), 1)

    clean = WordBook(book.folder.with_name("clean"))
    with closing(site_of(server)) as site:
        await clean.ingest(site)
    mine, its = [await contents(folder, book.embedder.identity) for folder in (book.folder, clean.folder)]
    assert mine == its


async def test_a_page_that_moved_is_not_embedded_again(book: WordBook, server: SiteServer) -> None:
    await ingested(book, server)
    server.shown["/lamp-oil"] = server.shown["/oil"]
    server.shown["/oil"] = moved_to("/lamp-oil")
    report = await ingested(book, server)
    assert (did(report), report.embedded, report.skipped) == ((1, 0, 1, 3), 0, ())


async def test_keeps_failing_pages_and_removes_missing_ones(book: WordBook, server: SiteServer) -> None:
    await ingested(book, server)
    server.shown |= {"/oil": Reply(status=500), "/wick": Reply(status=410), "/fog": Reply(b"<main></main>")}
    report = await ingested(book, server)
    assert (did(report), report.pages) == ((0, 0, 1, 1), 3)
    assert sorted((entry.path.removeprefix(server.url), entry.reason) for entry in report.skipped) == [
        ("/fog", "there is no text in it"),
        ("/oil", "127.0.0.1 failed (HTTP 500)"),
        ("/wick", "it is not there (HTTP 410)"),
    ]
    coverage = load_coverage(book.folder)[f"{server.url}/"]
    assert (coverage.listed, len(coverage.skipped)) == (4, 3)


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param({"/robots.txt": Reply(status=503)}, id="robots.txt"),
        pytest.param({"/sitemap.xml": Reply(status=500)}, id="the sitemap"),
        pytest.param(dict.fromkeys(PATHS[1:], Reply(status=500)) | {"/": Reply(status=502)}, id="every page"),
        pytest.param(dict.fromkeys(PATHS, Reply(status=404)), id="nothing is there"),
        pytest.param({"/": moved_to("https://new.example.invalid/")}, id="it has moved"),
    ],
)
async def test_a_site_that_fails_changes_nothing(book: WordBook, server: SiteServer, broken: dict[str, Reply]) -> None:
    await ingested(book, server)
    before = await contents(book.folder, book.embedder.identity)
    server.shown |= broken
    with pytest.raises(BookError):
        await ingested(book, server)
    assert await contents(book.folder, book.embedder.identity) == before


async def test_a_dry_run_writes_nothing(book: WordBook, server: SiteServer, tmp_path: Path) -> None:
    file = tmp_path / "site.db"
    with closing(Website(server.url, open_cache=lambda: CrawlCache.copy_of(file), limits=QUICK)) as site:
        plan = await book.plan_ingest(site)
    assert (did(plan), file.exists(), book.folder.exists()) == ((4, 0, 0, 0), False, False)

    await ingested(book, server)
    before = file.read_bytes()
    server.shown["/oil"] = page("Oil", "Another sentence.")
    server.forget()
    with closing(Website(server.url, open_cache=lambda: CrawlCache.copy_of(file), limits=QUICK)) as site:
        plan = await book.plan_ingest(site)
    assert (did(plan), plan.embedded, file.read_bytes() == before) == ((0, 1, 0, 3), 1, True)
    assert sum("if-none-match" in request.headers for request in server.requests) == 4


async def test_a_change_fetched_by_a_killed_run_is_not_lost(book: WordBook, server: SiteServer) -> None:
    """The cache already has it and the server reports no change. The book must still get it."""
    await ingested(book, server)
    server.shown["/oil"] = page("Oil", "Another sentence.")
    with closing(site_of(server, book.folder.with_name("site.db"))) as site:
        assert [entry async for entry in site.listing() if isinstance(entry, SkippedPage)] == []
    report = await ingested(book, server)
    assert (did(report), report.embedded) == ((0, 1, 0, 3), 1)
