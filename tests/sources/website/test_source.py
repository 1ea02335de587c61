"""A site as a page source: which pages are read, skipped, cached and reported."""

from __future__ import annotations

import gzip
import time
from dataclasses import replace
from pathlib import Path

import pytest

from bythebook.errors import InputError, Unavailable
from bythebook.sources import BlockKind, ListedPage, Unreadable
from bythebook.sources.website import CrawlLimits, crawler
from bythebook.sources.website.cache import CrawlCache, FetchRecord
from bythebook.sources.website.discovery import MISSING_PATH
from bythebook.sources.website.source import Website
from tests.support.site_server import (
    QUICK,
    Reply,
    Request,
    SiteServer,
    moved_to,
    page,
    paths,
    serving,
    site_of,
    skipped,
    text,
    visited,
    xml,
)


@pytest.fixture
def cache_file(tmp_path: Path) -> Path:
    return tmp_path / "site.db"


async def test_a_page_has_the_text_that_readers_see() -> None:
    async with serving(SiteServer({"/": page("Home"), "/part-one/lamp.html": page("Lamps", "They glow.")})) as server:
        server.sitemap("/", "/part-one/lamp.html")
        site = site_of(server)
        _, listed = [entry async for entry in site.listing()]
        assert isinstance(listed, ListedPage)
        read = await site.read(listed)
        site.close()
    assert (read.url, read.title, read.text) == (f"{server.url}/part-one/lamp.html", "Lamps", "Lamps\n\nThey glow.")
    assert (read.module_name, read.chapter_id) == ("Part One", "part-one/lamp")
    assert [(block.kind, block.anchor) for block in read.blocks] == [
        (BlockKind.HEADING, "top"),
        (BlockKind.PARAGRAPH, ""),
    ]


async def test_the_sitemap_determines_the_pages_and_their_order() -> None:
    shown = {"/": page("Home", links=("/hidden",)), "/b": page("B"), "/a": page("A"), "/hidden": page("Hidden")}
    async with serving(SiteServer(dict(shown))) as server:
        server.sitemap("/b", "/", "/a")
        entries = await visited(site_of(server))
    assert (paths(entries, server), skipped(entries, server)) == (["/b", "/", "/a"], {})
    assert sorted(server.asked) == sorted(["/robots.txt", "/", "/sitemap.xml", "/b", "/a", f"/{MISSING_PATH}"])


async def test_reads_a_compressed_sitemap_index_named_in_robots_txt() -> None:
    async with serving(SiteServer({"/": page("Home"), "/a": page("A"), "/b": page("B")})) as server:
        server.shown["/robots.txt"] = text(f"User-agent: *\nSitemap: {server.url}/all.xml.gz\n")
        index = "".join(
            f"<sitemap><loc>{server.url}/{name}</loc></sitemap>" for name in ("1.xml", "2.xml.gz", "all.xml.gz")
        )
        server.shown["/all.xml.gz"] = Reply(
            gzip.compress(f"<sitemapindex>{index}</sitemapindex>".encode()),
            headers={"Content-Type": "application/gzip"},
        )
        server.shown["/1.xml"] = xml(f"<urlset><url><loc>{server.url}/a</loc></url></urlset>")
        second = gzip.compress(f"<urlset><url><loc>{server.url}/b</loc></url></urlset>".encode())
        server.shown["/2.xml.gz"] = Reply(second, headers={"Content-Type": "application/gzip"})
        assert paths(await visited(site_of(server)), server) == ["/a", "/b"]


async def test_without_a_sitemap_follows_links_within_the_site() -> None:
    links = (
        "/docs/a",
        "b",
        "/elsewhere",
        "https://other.example/",
        "/docs/x.zip",
        "mailto:a@b",
        "/docs/a#part",
        "/docs/?p=1",
    )
    async with serving(SiteServer({"/docs/": page("Docs", links=links)})) as server:
        server.shown["/docs/a"] = page("A", links=("/docs/deep/c",))
        server.shown["/docs/b"] = page("B")
        server.shown["/docs/deep/c"] = page("C", links=("/docs/",))
        entries = await visited(site_of(server, path="/docs/"))
    assert (paths(entries, server), skipped(entries, server)) == (["/docs/", "/docs/a", "/docs/b", "/docs/deep/c"], {})
    assert not {"/elsewhere", "/docs/x.zip"} & {*server.asked}


async def test_ignores_a_sitemap_with_only_the_start_page() -> None:
    async with serving(SiteServer({"/": page("Home", links=("/a",)), "/a": page("A")})) as server:
        server.sitemap("/")
        assert paths(await visited(site_of(server)), server) == ["/", "/a"]


async def test_a_folder_without_an_index_has_the_pages_below_it() -> None:
    async with serving(SiteServer({"/docs/a": page("A"), "/docs/b": page("B"), "/c": page("C")})) as server:
        server.sitemap("/c", "/docs/a", "/docs/b")
        assert paths(await visited(site_of(server, path="/docs/")), server) == ["/docs/a", "/docs/b"]


async def test_obeys_robots_txt() -> None:
    async with serving(SiteServer({"/": page("Home", links=("/secret/a", "/b")), "/b": page("B")})) as server:
        server.shown["/secret/a"] = page("Secret")
        server.shown["/robots.txt"] = text("User-agent: *\nDisallow: /\n\nUser-agent: bythebook\nDisallow: /secret\n")
        assert paths(await visited(site_of(server)), server) == ["/", "/b"]
        server.sitemap("/", "/b", "/secret/a")
        entries = await visited(site_of(server))
    assert skipped(entries, server) == {"/secret/a": "robots.txt does not allow it to be read"}
    assert "/secret/a" not in server.asked


async def test_does_not_read_a_site_that_disallows_everything() -> None:
    async with serving(SiteServer({"/": page("Home"), "/robots.txt": text("User-agent: *\nDisallow: /")})) as server:
        with pytest.raises(InputError, match=r"robots.txt does not allow .* to be read. Nothing was changed"):
            await visited(site_of(server))
    assert server.asked == ["/robots.txt"]


async def test_a_failing_robots_txt_disallows_everything() -> None:
    async with serving(SiteServer({"/": page("Home"), "/robots.txt": Reply(status=500)})) as server:
        with pytest.raises(Unavailable):
            await visited(site_of(server))
    assert {*server.asked} == {"/robots.txt"}


async def test_skips_pages_with_noindex() -> None:
    noindex = "<meta name=ROBOTS content='noindex, follow'>"
    async with serving(SiteServer({"/": page("Home"), "/a": page("A", head=noindex)})) as server:
        server.shown["/b"] = Reply(page("B").encode(), headers={"X-Robots-Tag": "bythebook: noindex"})
        server.shown["/c"] = Reply(page("C").encode(), headers={"X-Robots-Tag": "otherbot: noindex"})
        server.sitemap("/", "/a", "/b", "/c")
        entries = await visited(site_of(server))
    assert paths(entries, server) == ["/", "/c"]
    assert skipped(entries, server) == dict.fromkeys(("/a", "/b"), "it asks not to be indexed (noindex)")


async def test_a_page_has_one_url() -> None:
    """Redirects, meta refreshes, canonical URLs and index.html all lead to it."""
    server = SiteServer(
        {"/": page("Home"), "/new": page("New"), "/old": moved_to("/new"), "/older": moved_to("/old", 302)}
    )
    server.shown["/refresh"] = "<meta http-equiv=refresh content='0; url=/new'>"
    server.shown["/copy"] = page("New", "The same in other words.", head="<link rel=canonical href=/new>")
    server.shown["/index.html"] = page("Home")
    async with serving(server):
        server.sitemap("/older", "/", "/old", "/new", "/refresh", "/copy", "/index.html")
        entries = await visited(site_of(server))
    assert (sorted(paths(entries, server)), skipped(entries, server)) == (["/", "/new"], {})


async def test_a_wrong_canonical_url_hides_no_page() -> None:
    head = "<link rel=canonical href=/>"
    shown = {"/": page("Home", head=head), "/a": page("A", "One thing.", head=head), "/b": page("B", "Two.", head=head)}
    async with serving(SiteServer(dict(shown))) as server:
        server.sitemap("/", "/a", "/b")
        assert paths(await visited(site_of(server)), server) == ["/", "/a", "/b"]


async def test_does_not_follow_canonical_urls_into_private_networks() -> None:
    async with serving() as canary, serving(SiteServer({"/": page("Home", links=("/a",))})) as server:
        inside = f"<link rel=canonical href='{canary.url}/'><meta http-equiv=refresh content='9; url={canary.url}/'>"
        server.shown["/a"] = page("A", head=inside, links=(f"{canary.url}/x", "http://169.254.169.254/"))
        server.shown["/robots.txt"] = text(f"Sitemap: {canary.url}/sitemap.xml\nSitemap: http://169.254.169.254/s.xml")
        entries = await visited(site_of(server))
    assert (paths(entries, server), canary.connections) == (["/", "/a"], 0)


async def test_reports_missing_pages_with_the_reason() -> None:
    server = SiteServer({"/": page("Home"), "/gone": Reply(status=410), "/closed": Reply(status=403)})
    server.shown["/pdf"] = Reply(b"%PDF", headers={"Content-Type": "application/pdf"})
    server.shown["/empty"] = "<main></main>"
    server.shown["/away"] = moved_to("https://other.example.invalid/")
    async with serving(server):
        server.sitemap("/", "/gone", "/missing", "/closed", "/pdf", "/empty", "/away")
        site = site_of(server)
        entries = [entry async for entry in site.listing()]
        assert skipped(entries, server) == {
            "/gone": "it is not there (HTTP 410)",
            "/missing": "it is not there (HTTP 404)",
            "/pdf": "it is application/pdf, not a page",
            "/empty": "there is no text in it",
            "/away": "it leads to https://other.example.invalid/, which is not part of the site",
        }
        assert paths(entries, server) == ["/", "/closed"]
        closed = next(entry for entry in entries if isinstance(entry, ListedPage) and entry.url.endswith("/closed"))
        with pytest.raises(Unreadable, match=r"the site does not show it \(HTTP 403\)"):
            await site.read(closed)
        site.close()


@pytest.mark.parametrize("title", ["Page not found", "Oops"])
async def test_detects_a_soft_404(title: str) -> None:
    lost = page(title, "Sorry.")
    async with serving(SiteServer({"/": page("Home"), "/a": page("A")}, other=lost)) as server:
        server.shown["/robots.txt"] = Reply(status=404)
        server.sitemap("/", "/a", "/lost")
        entries = await visited(site_of(server))
    assert paths(entries, server) == ["/", "/a"]
    assert sorted(skipped(entries, server)) == ["/lost"]


async def test_a_page_about_errors_is_not_a_soft_404() -> None:
    async with serving(SiteServer({"/": page("Home"), "/404-errors": page("404 Not Found, explained")})) as server:
        server.sitemap("/", "/404-errors")
        assert paths(await visited(site_of(server)), server) == ["/", "/404-errors"]


async def test_reports_a_site_that_has_moved() -> None:
    """The new host gets no request before the user names it."""
    async with serving() as old:
        old.shown["/"] = moved_to("https://new.example.invalid/")
        with pytest.raises(InputError, match=r"has moved to https://new.example.invalid/. Nothing was changed"):
            await visited(site_of(old))


async def test_reads_a_preview_of_a_published_site() -> None:
    """The sitemap and the canonical URLs of a preview name the public site, which gets no request."""
    published = "https://book.example.invalid"
    head = f"<link rel=canonical href={published}/a>"
    async with serving(SiteServer({"/": page("Home"), "/a": page("A", head=head)})) as server:
        urls = "".join(f"<url><loc>{published}{path}</loc></url>" for path in ("/", "/a"))
        server.shown["/sitemap.xml"] = xml(f"<urlset>{urls}</urlset>")
        server.shown["/robots.txt"] = text(f"Sitemap: {published}/sitemap.xml")
        assert paths(await visited(site_of(server)), server) == ["/", "/a"]
        site = Website(server.url, limits=QUICK, site_url=published)
        entries = [entry async for entry in site.listing()]
        assert [entry.path for entry in entries] == [f"{published}/", f"{published}/a"]
        last = entries[1]
        assert isinstance(last, ListedPage)
        assert (await site.read(last)).url == f"{published}/a"
        site.close()


async def test_reports_sitemap_entries_of_other_hosts_without_fetching_them() -> None:
    async with serving(SiteServer({"/": page("Home"), "/a": page("A")})) as server:
        urls = "".join(
            f"<url><loc>{url}</loc></url>"
            for url in (f"{server.url}/", f"{server.url}/a", "http://10.0.0.1/", "file:///x")
        )
        server.shown["/sitemap.xml"] = xml(f"<urlset>{urls}</urlset>")
        entries = await visited(site_of(server))
    assert paths(entries, server) == ["/", "/a"]
    assert skipped(entries, server)["http://10.0.0.1/"] == "it is on another host than the site"
    assert "file:///x" in skipped(entries, server)


async def test_transfers_only_changed_pages(cache_file: Path) -> None:
    async with serving(SiteServer({"/": page("Home"), "/a": page("A"), "/b": page("B")})) as server:
        server.sitemap("/", "/a", "/b")
        first = await visited(site_of(server, cache_file))
        server.forget()
        server.shown["/b"] = page("B", "Changed.")
        second = await visited(site_of(server, cache_file))
        conditional = [request.target for request in server.requests if "if-none-match" in request.headers]
    assert conditional == ["/", "/a", "/b"]
    assert first[:2] == second[:2]
    assert first[2] != second[2]


async def test_a_nonce_does_not_change_a_page(cache_file: Path) -> None:
    count = iter(range(100))

    def always_another(_: Request) -> Reply:
        return Reply(page("A", head=f"<script nonce={next(count)}></script>").encode())

    async with serving(SiteServer({"/": page("Home"), "/a": always_another})) as server:
        server.sitemap("/", "/a")
        assert await visited(site_of(server, cache_file)) == await visited(site_of(server, cache_file))


LONG_AGO = "2020-01-01T00:00:00Z"


async def test_skips_most_pages_with_an_unchanged_lastmod(cache_file: Path) -> None:
    all_paths = [f"/p{number}" for number in range(20)]
    async with serving(SiteServer({path: page(path) for path in ["/", *all_paths]})) as server:
        server.sitemap("/", *all_paths, lastmod=LONG_AGO)
        first = await visited(site_of(server, cache_file))
        server.forget()
        second = await visited(site_of(server, cache_file))
    assert first == second
    assert len([path for path in server.asked if path in all_paths]) == crawler.SAMPLE_SIZE


async def test_never_trusts_a_lastmod_again_that_was_wrong(cache_file: Path) -> None:
    all_paths = [f"/p{number}" for number in range(20)]
    async with serving(SiteServer({path: page(path) for path in ["/", *all_paths]})) as server:
        server.sitemap("/", *all_paths, lastmod=LONG_AGO)
        first = await visited(site_of(server, cache_file))
        for path in all_paths:
            server.shown[path] = page(path, "Changed, and the sitemap does not say so.")
        server.forget()
        second = await visited(site_of(server, cache_file))
        assert {*all_paths} <= {*server.asked}
        assert not {*first[1:]} & {*second[1:]}
        server.forget()
        await visited(site_of(server, cache_file))
        assert {*all_paths} <= {*server.asked}


async def test_a_date_as_lastmod_includes_the_whole_day(cache_file: Path) -> None:
    now = time.time()
    fetch = FetchRecord("http://a/", now, "2026-01-01")
    assert crawler.is_unchanged_since(fetch, "2026-01-01")
    assert not crawler.is_unchanged_since(replace(fetch, fetched_at=1767268800.0), "2026-01-01")  # noon of that day
    assert not crawler.is_unchanged_since(fetch, "2026-01-02")
    assert not crawler.is_unchanged_since(replace(fetch, lastmod="soon"), "soon")


async def test_fetches_a_page_again_after_a_week(cache_file: Path) -> None:
    all_paths = [f"/p{number}" for number in range(20)]
    async with serving(SiteServer({path: page(path) for path in ["/", *all_paths]})) as server:
        server.sitemap("/", *all_paths, lastmod=LONG_AGO)
        await visited(site_of(server, cache_file))
        known = CrawlCache.open(cache_file)
        for path in all_paths:
            before = known.get_fetch(server.url + path)
            assert before
            known.put_fetch(server.url + path, replace(before, fetched_at=before.fetched_at - 8 * 86_400))
        known.close()
        server.forget()
        await visited(site_of(server, cache_file))
    assert {*all_paths} <= {*server.asked}


async def test_lists_failing_pages_with_the_reason(cache_file: Path) -> None:
    async with serving(SiteServer({"/": page("Home"), "/a": page("A"), "/b": page("B")})) as server:
        server.sitemap("/", "/a", "/b")
        await visited(site_of(server, cache_file))
        server.shown["/a"] = Reply(status=500)
        del server.shown["/b"]
        site = site_of(server, cache_file)
        entries = [entry async for entry in site.listing()]
        assert (paths(entries, server), skipped(entries, server)) == (["/", "/a"], {"/b": "it is not there (HTTP 404)"})
        failed = entries[1]
        assert isinstance(failed, ListedPage)
        with pytest.raises(Unreadable, match=r"127.0.0.1 failed \(HTTP 500\)"):
            await site.read(failed)
        site.close()
        server.shown["/a"] = page("A")
        assert paths(await visited(site_of(server, cache_file)), server) == ["/", "/a"]


async def test_a_failing_sitemap_removes_no_page(cache_file: Path) -> None:
    async with serving(SiteServer({"/": page("Home"), "/a": page("A")})) as server:
        server.sitemap("/", "/a")
        await visited(site_of(server, cache_file))
        server.shown["/sitemap.xml"] = Reply(status=500)
        with pytest.raises(Unavailable):
            await visited(site_of(server, cache_file))
        server.shown["/sitemap.xml"] = xml("<urlset><url>")
        entries = await visited(site_of(server, cache_file))
    assert paths(entries, server) == ["/", "/a"]
    assert "cannot be read completely" in skipped(entries, server)["/sitemap.xml"]


async def test_a_removed_link_removes_no_page(cache_file: Path) -> None:
    async with serving(
        SiteServer({"/": page("Home", links=("/a",)), "/a": page("A", links=("/b",)), "/b": page("B")})
    ) as server:
        await visited(site_of(server, cache_file))
        server.shown["/a"] = Reply(status=500)
        assert paths(await visited(site_of(server, cache_file)), server) == ["/", "/a", "/b"]
        del server.shown["/b"]
        assert paths(await visited(site_of(server, cache_file)), server) == ["/", "/a"]


async def test_raises_if_every_page_fails(cache_file: Path) -> None:
    async with serving(SiteServer({"/": page("Home"), "/a": page("A")})) as server:
        server.sitemap("/a", "/b")
        server.shown["/a"] = server.shown["/b"] = Reply(status=500)
        with pytest.raises(Unavailable, match=r"no page of .* could be read. Nothing was changed"):
            await visited(site_of(server))
        server.shown |= {"/": Reply(status=404), "/sitemap.xml": Reply(status=404)}
        with pytest.raises(InputError, match="there is no page at"):
            await visited(site_of(server))


async def test_does_not_transfer_pages_of_an_interrupted_crawl_again(cache_file: Path) -> None:
    async with serving(SiteServer({path: page(path) for path in ("/", "/a", "/b", "/c")})) as server:
        server.sitemap("/", "/a", "/b", "/c")

        def progress(stage: str, done: int, total: int) -> None:
            if done == 2:
                raise KeyError("killed")

        limits = replace(QUICK, max_concurrency=1)
        site = Website(server.url, open_cache=lambda: CrawlCache.open(cache_file), limits=limits, progress=progress)
        with pytest.raises(KeyError):
            await visited(site)
        server.forget()
        assert paths(await visited(site_of(server, cache_file)), server) == ["/", "/a", "/b", "/c"]
        known = [request.target for request in server.requests if "if-none-match" in request.headers]
    assert sorted(known) == ["/", "/a", "/b"]


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        pytest.param(CrawlLimits(pages=10, private=True, delay=0), "more than 10 pages (site_pages)", id="pages"),
        pytest.param(CrawlLimits(depth=3, private=True, delay=0), "more than 3 links away (site_depth)", id="depth"),
        pytest.param(CrawlLimits(megabytes=0, private=True, delay=0), "more than 0 MB (site_megabytes)", id="bytes"),
        pytest.param(
            CrawlLimits(minutes=0, private=True, delay=0), "took longer than 0 minutes (site_minutes)", id="time"
        ),
    ],
)
async def test_limits_an_endless_calendar(limits: CrawlLimits, reason: str) -> None:
    def calendar(request: Request) -> Reply:
        year = int(request.target.rpartition("/")[2] or 0) if "robots" not in request.target else 0
        return Reply(page(f"Year {year}", links=(f"/{year + 1}", f"/{year + 2}")).encode())

    async with serving(
        SiteServer({"/robots.txt": Reply(status=404), "/sitemap.xml": Reply(status=404)}, other=calendar)
    ) as server:
        site = site_of(server, limits=limits)
        entries = [entry async for entry in site.listing()]
        last = entries[-1]
        assert isinstance(last, ListedPage)
        with pytest.raises(Unreadable) as caught:
            await site.read(last)
        site.close()
    assert reason in str(caught.value)
    assert len(server.requests) < 30


async def test_limits_the_queries_of_a_path() -> None:
    def shop(request: Request) -> Reply:
        number = int(request.target.partition("=")[2] or 0)
        return Reply(page(f"Page {number}", links=tuple(f"/?p={number + step}" for step in range(1, 9))).encode())

    async with serving(
        SiteServer({"/robots.txt": Reply(status=404), "/sitemap.xml": Reply(status=404)}, other=shop)
    ) as server:
        await visited(site_of(server))
    assert len(server.requests) <= 25


async def test_waits_as_long_as_the_site_asks_for() -> None:
    answers = iter([Reply(status=503, headers={"Retry-After": "0"})] * 3 + [Reply(page("A").encode())] * 3)
    async with serving(SiteServer({"/": page("Home"), "/a": lambda _: next(answers)})) as server:
        server.sitemap("/", "/a")
        assert paths(await visited(site_of(server)), server) == ["/", "/a"]


@pytest.mark.parametrize(
    ("body", "kind", "read"),
    [
        pytest.param("<p>Größe".encode("latin-1"), "text/html; charset=iso-8859-1", "Größe", id="header"),
        pytest.param("<meta charset=windows-1251><p>Лампа".encode("cp1251"), "text/html", "Лампа", id="meta"),
        pytest.param("<p>Größe".encode("utf-16"), "text/html", "Größe", id="mark"),
        pytest.param(b"<p>a\xffb", "text/html; charset=unicode_escape", "a\ufffdb", id="nonsense"),
        pytest.param(b"# Lamps\n\nThey glow.", "text/markdown", "Lamps\n\nThey glow.", id="Markdown"),
    ],
)
async def test_decodes_pages_in_many_encodings(body: bytes, kind: str, read: str) -> None:
    async with serving(SiteServer({"/": Reply(body, headers={"Content-Type": kind})})) as server:
        site = site_of(server)
        (entry,) = [entry async for entry in site.listing()]
        assert isinstance(entry, ListedPage)
        assert (await site.read(entry)).text == read
        site.close()


async def test_replaces_a_damaged_cache(cache_file: Path) -> None:
    cache_file.write_bytes(b"this is no database" * 1000)  # noqa: ASYNC240
    async with serving(SiteServer({"/": page("Home")})) as server:
        assert paths(await visited(site_of(server, cache_file)), server) == ["/"]


def test_rejects_an_invalid_site_url() -> None:
    for url in ("http://user:secret@example.org/", "https://", "http://exa mple.org"):
        with pytest.raises(InputError):
            Website(url)
