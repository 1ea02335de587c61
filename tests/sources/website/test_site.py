"""A site as a source of pages: what is read, what is left alone, what is kept, and what is said."""

from __future__ import annotations

import gzip
import time
from dataclasses import replace
from pathlib import Path

import pytest

from bythebook.errors import InputError, Unavailable
from bythebook.sources import Kind, Listed, Unreadable
from bythebook.sources.website import Limits, crawler
from bythebook.sources.website.cache import Archive, Asked
from bythebook.sources.website.discovery import NOWHERE
from bythebook.sources.website.source import Site
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
def archive(tmp_path: Path) -> Path:
    return tmp_path / "site.db"


async def test_a_page_is_what_its_reader_sees() -> None:
    async with serving(SiteServer({"/": page("Home"), "/part-one/lamp.html": page("Lamps", "They glow.")})) as server:
        server.sitemap("/", "/part-one/lamp.html")
        site = site_of(server)
        _, listed = [entry async for entry in site.listing()]
        assert isinstance(listed, Listed)
        read = await site.read(listed)
        site.close()
    assert (read.url, read.title, read.text) == (f"{server.url}/part-one/lamp.html", "Lamps", "Lamps\n\nThey glow.")
    assert (read.module_name, read.chapter_id) == ("Part One", "part-one/lamp")
    assert [(block.kind, block.anchor) for block in read.blocks] == [(Kind.HEADING, "top"), (Kind.PARAGRAPH, "")]


async def test_the_sitemap_says_which_pages_there_are_and_in_which_order() -> None:
    shown = {"/": page("Home", links=("/hidden",)), "/b": page("B"), "/a": page("A"), "/hidden": page("Hidden")}
    async with serving(SiteServer(dict(shown))) as server:
        server.sitemap("/b", "/", "/a")
        entries = await visited(site_of(server))
    assert (paths(entries, server), skipped(entries, server)) == (["/b", "/", "/a"], {})
    assert sorted(server.asked) == sorted(["/robots.txt", "/", "/sitemap.xml", "/b", "/a", f"/{NOWHERE}"])


async def test_a_packed_index_of_sitemaps_named_in_robots_txt() -> None:
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


async def test_without_a_sitemap_links_are_followed_inside_the_site() -> None:
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


async def test_a_sitemap_of_nothing_but_the_start_is_no_list_of_pages() -> None:
    async with serving(SiteServer({"/": page("Home", links=("/a",)), "/a": page("A")})) as server:
        server.sitemap("/")
        assert paths(await visited(site_of(server)), server) == ["/", "/a"]


async def test_a_folder_without_a_page_of_its_own_has_the_pages_below_it() -> None:
    async with serving(SiteServer({"/docs/a": page("A"), "/docs/b": page("B"), "/c": page("C")})) as server:
        server.sitemap("/c", "/docs/a", "/docs/b")
        assert paths(await visited(site_of(server, path="/docs/")), server) == ["/docs/a", "/docs/b"]


async def test_robots_txt_is_obeyed() -> None:
    async with serving(SiteServer({"/": page("Home", links=("/secret/a", "/b")), "/b": page("B")})) as server:
        server.shown["/secret/a"] = page("Secret")
        server.shown["/robots.txt"] = text("User-agent: *\nDisallow: /\n\nUser-agent: bythebook\nDisallow: /secret\n")
        assert paths(await visited(site_of(server)), server) == ["/", "/b"]
        server.sitemap("/", "/b", "/secret/a")
        entries = await visited(site_of(server))
    assert skipped(entries, server) == {"/secret/a": "robots.txt does not allow it to be read"}
    assert "/secret/a" not in server.asked


async def test_a_site_that_wants_no_robots_is_left_alone() -> None:
    async with serving(SiteServer({"/": page("Home"), "/robots.txt": text("User-agent: *\nDisallow: /")})) as server:
        with pytest.raises(InputError, match=r"robots.txt does not allow .* to be read. Nothing was changed"):
            await visited(site_of(server))
    assert server.asked == ["/robots.txt"]


async def test_rules_that_cannot_be_had_forbid_everything() -> None:
    async with serving(SiteServer({"/": page("Home"), "/robots.txt": Reply(status=500)})) as server:
        with pytest.raises(Unavailable):
            await visited(site_of(server))
    assert {*server.asked} == {"/robots.txt"}


async def test_pages_that_ask_not_to_be_indexed_are_not() -> None:
    noindex = "<meta name=ROBOTS content='noindex, follow'>"
    async with serving(SiteServer({"/": page("Home"), "/a": page("A", head=noindex)})) as server:
        server.shown["/b"] = Reply(page("B").encode(), headers={"X-Robots-Tag": "bythebook: noindex"})
        server.shown["/c"] = Reply(page("C").encode(), headers={"X-Robots-Tag": "otherbot: noindex"})
        server.sitemap("/", "/a", "/b", "/c")
        entries = await visited(site_of(server))
    assert paths(entries, server) == ["/", "/c"]
    assert skipped(entries, server) == dict.fromkeys(("/a", "/b"), "it asks not to be indexed (noindex)")


async def test_one_page_has_one_address() -> None:
    """Redirects lead to it, pages refresh to it, copies name it as canonical, and index.html repeats it."""
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


async def test_a_canonical_address_that_is_plainly_wrong_hides_no_page() -> None:
    head = "<link rel=canonical href=/>"
    shown = {"/": page("Home", head=head), "/a": page("A", "One thing.", head=head), "/b": page("B", "Two.", head=head)}
    async with serving(SiteServer(dict(shown))) as server:
        server.sitemap("/", "/a", "/b")
        assert paths(await visited(site_of(server)), server) == ["/", "/a", "/b"]


async def test_canonical_addresses_that_point_inside_are_not_followed() -> None:
    async with serving() as canary, serving(SiteServer({"/": page("Home", links=("/a",))})) as server:
        inside = f"<link rel=canonical href='{canary.url}/'><meta http-equiv=refresh content='9; url={canary.url}/'>"
        server.shown["/a"] = page("A", head=inside, links=(f"{canary.url}/x", "http://169.254.169.254/"))
        server.shown["/robots.txt"] = text(f"Sitemap: {canary.url}/sitemap.xml\nSitemap: http://169.254.169.254/s.xml")
        entries = await visited(site_of(server))
    assert (paths(entries, server), canary.connections) == (["/", "/a"], 0)


async def test_what_is_missing_is_named_with_the_reason() -> None:
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
        closed = next(entry for entry in entries if isinstance(entry, Listed) and entry.url.endswith("/closed"))
        with pytest.raises(Unreadable, match=r"the site does not show it \(HTTP 403\)"):
            await site.read(closed)
        site.close()


@pytest.mark.parametrize("title", ["Page not found", "Oops"])
async def test_a_page_that_says_it_is_there_and_is_not(title: str) -> None:
    lost = page(title, "Sorry.")
    async with serving(SiteServer({"/": page("Home"), "/a": page("A")}, other=lost)) as server:
        server.shown["/robots.txt"] = Reply(status=404)
        server.sitemap("/", "/a", "/lost")
        entries = await visited(site_of(server))
    assert paths(entries, server) == ["/", "/a"]
    assert sorted(skipped(entries, server)) == ["/lost"]


async def test_a_page_about_errors_is_a_page() -> None:
    async with serving(SiteServer({"/": page("Home"), "/404-errors": page("404 Not Found, explained")})) as server:
        server.sitemap("/", "/404-errors")
        assert paths(await visited(site_of(server)), server) == ["/", "/404-errors"]


async def test_a_site_that_has_moved_is_said_to_have() -> None:
    """By its name: nobody is asked there before the author has said so."""
    async with serving() as old:
        old.shown["/"] = moved_to("https://new.example.invalid/")
        with pytest.raises(InputError, match=r"has moved to https://new.example.invalid/. Nothing was changed"):
            await visited(site_of(old))


async def test_a_site_published_elsewhere_is_read_from_where_it_is_shown() -> None:
    """A preview: its sitemap and its canonical addresses name the public site, which is never asked."""
    published = "https://book.example.invalid"
    head = f"<link rel=canonical href={published}/a>"
    async with serving(SiteServer({"/": page("Home"), "/a": page("A", head=head)})) as server:
        urls = "".join(f"<url><loc>{published}{path}</loc></url>" for path in ("/", "/a"))
        server.shown["/sitemap.xml"] = xml(f"<urlset>{urls}</urlset>")
        server.shown["/robots.txt"] = text(f"Sitemap: {published}/sitemap.xml")
        assert paths(await visited(site_of(server)), server) == ["/", "/a"]
        site = Site(server.url, limits=QUICK, site_url=published)
        entries = [entry async for entry in site.listing()]
        assert [entry.path for entry in entries] == [f"{published}/", f"{published}/a"]
        last = entries[1]
        assert isinstance(last, Listed)
        assert (await site.read(last)).url == f"{published}/a"
        site.close()


async def test_entries_of_other_hosts_are_named_and_not_fetched() -> None:
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


async def test_next_time_only_what_changed_is_transferred(archive: Path) -> None:
    async with serving(SiteServer({"/": page("Home"), "/a": page("A"), "/b": page("B")})) as server:
        server.sitemap("/", "/a", "/b")
        first = await visited(site_of(server, archive))
        server.forget()
        server.shown["/b"] = page("B", "Changed.")
        second = await visited(site_of(server, archive))
        conditional = [request.target for request in server.requests if "if-none-match" in request.headers]
    assert conditional == ["/", "/a", "/b"]
    assert first[:2] == second[:2]
    assert first[2] != second[2]


async def test_a_nonce_in_the_page_is_no_change(archive: Path) -> None:
    count = iter(range(100))

    def always_another(_: Request) -> Reply:
        return Reply(page("A", head=f"<script nonce={next(count)}></script>").encode())

    async with serving(SiteServer({"/": page("Home"), "/a": always_another})) as server:
        server.sitemap("/", "/a")
        assert await visited(site_of(server, archive)) == await visited(site_of(server, archive))


LONG_AGO = "2020-01-01T00:00:00Z"


async def test_what_the_sitemap_says_is_unchanged_is_mostly_spared(archive: Path) -> None:
    all_paths = [f"/p{number}" for number in range(20)]
    async with serving(SiteServer({path: page(path) for path in ["/", *all_paths]})) as server:
        server.sitemap("/", *all_paths, lastmod=LONG_AGO)
        first = await visited(site_of(server, archive))
        server.forget()
        second = await visited(site_of(server, archive))
    assert first == second
    assert len([path for path in server.asked if path in all_paths]) == crawler.TRIED


async def test_a_sitemap_that_is_caught_out_is_not_believed_again(archive: Path) -> None:
    all_paths = [f"/p{number}" for number in range(20)]
    async with serving(SiteServer({path: page(path) for path in ["/", *all_paths]})) as server:
        server.sitemap("/", *all_paths, lastmod=LONG_AGO)
        first = await visited(site_of(server, archive))
        for path in all_paths:
            server.shown[path] = page(path, "Changed, and the sitemap does not say so.")
        server.forget()
        second = await visited(site_of(server, archive))
        assert {*all_paths} <= {*server.asked}
        assert not {*first[1:]} & {*second[1:]}
        server.forget()
        await visited(site_of(server, archive))
        assert {*all_paths} <= {*server.asked}


async def test_a_day_does_not_say_whether_a_page_changed_on_it(archive: Path) -> None:
    now = time.time()
    asked = Asked("http://a/", now, "2026-01-01")
    assert crawler.says_unchanged(asked, "2026-01-01")
    assert not crawler.says_unchanged(replace(asked, at=1767268800.0), "2026-01-01")  # noon of that day
    assert not crawler.says_unchanged(asked, "2026-01-02")
    assert not crawler.says_unchanged(replace(asked, lastmod="soon"), "soon")


async def test_a_page_spared_too_long_is_asked_for(archive: Path) -> None:
    all_paths = [f"/p{number}" for number in range(20)]
    async with serving(SiteServer({path: page(path) for path in ["/", *all_paths]})) as server:
        server.sitemap("/", *all_paths, lastmod=LONG_AGO)
        await visited(site_of(server, archive))
        known = Archive.open(archive)
        for path in all_paths:
            before = known.asked(server.url + path)
            assert before
            known.note(server.url + path, replace(before, at=before.at - 8 * 86_400))
        known.close()
        server.forget()
        await visited(site_of(server, archive))
    assert {*all_paths} <= {*server.asked}


async def test_pages_the_server_fails_on_are_still_listed_and_say_why(archive: Path) -> None:
    async with serving(SiteServer({"/": page("Home"), "/a": page("A"), "/b": page("B")})) as server:
        server.sitemap("/", "/a", "/b")
        await visited(site_of(server, archive))
        server.shown["/a"] = Reply(status=500)
        del server.shown["/b"]
        site = site_of(server, archive)
        entries = [entry async for entry in site.listing()]
        assert (paths(entries, server), skipped(entries, server)) == (["/", "/a"], {"/b": "it is not there (HTTP 404)"})
        failed = entries[1]
        assert isinstance(failed, Listed)
        with pytest.raises(Unreadable, match=r"127.0.0.1 failed \(HTTP 500\)"):
            await site.read(failed)
        site.close()
        server.shown["/a"] = page("A")
        assert paths(await visited(site_of(server, archive)), server) == ["/", "/a"]


async def test_a_sitemap_the_server_fails_on_is_no_reason_to_lose_pages(archive: Path) -> None:
    async with serving(SiteServer({"/": page("Home"), "/a": page("A")})) as server:
        server.sitemap("/", "/a")
        await visited(site_of(server, archive))
        server.shown["/sitemap.xml"] = Reply(status=500)
        with pytest.raises(Unavailable):
            await visited(site_of(server, archive))
        server.shown["/sitemap.xml"] = xml("<urlset><url>")
        entries = await visited(site_of(server, archive))
    assert paths(entries, server) == ["/", "/a"]
    assert "cannot be read to its end" in skipped(entries, server)["/sitemap.xml"]


async def test_a_link_that_vanished_is_no_reason_to_lose_a_page(archive: Path) -> None:
    async with serving(
        SiteServer({"/": page("Home", links=("/a",)), "/a": page("A", links=("/b",)), "/b": page("B")})
    ) as server:
        await visited(site_of(server, archive))
        server.shown["/a"] = Reply(status=500)
        assert paths(await visited(site_of(server, archive)), server) == ["/", "/a", "/b"]
        del server.shown["/b"]
        assert paths(await visited(site_of(server, archive)), server) == ["/", "/a"]


async def test_a_site_on_which_everything_fails_is_an_error(archive: Path) -> None:
    async with serving(SiteServer({"/": page("Home"), "/a": page("A")})) as server:
        server.sitemap("/a", "/b")
        server.shown["/a"] = server.shown["/b"] = Reply(status=500)
        with pytest.raises(Unavailable, match=r"no page of .* could be read. Nothing was changed"):
            await visited(site_of(server))
        server.shown |= {"/": Reply(status=404), "/sitemap.xml": Reply(status=404)}
        with pytest.raises(InputError, match="there is no page at"):
            await visited(site_of(server))


async def test_what_came_before_a_visit_was_broken_off_is_not_sent_again(archive: Path) -> None:
    async with serving(SiteServer({path: page(path) for path in ("/", "/a", "/b", "/c")})) as server:
        server.sitemap("/", "/a", "/b", "/c")

        def progress(stage: str, done: int, total: int) -> None:
            if done == 2:
                raise KeyError("killed")

        limits = replace(QUICK, at_once=1)
        site = Site(server.url, archive=lambda: Archive.open(archive), limits=limits, progress=progress)
        with pytest.raises(KeyError):
            await visited(site)
        server.forget()
        assert paths(await visited(site_of(server, archive)), server) == ["/", "/a", "/b", "/c"]
        known = [request.target for request in server.requests if "if-none-match" in request.headers]
    assert sorted(known) == ["/", "/a", "/b"]


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        pytest.param(Limits(pages=10, private=True, delay=0), "more than 10 pages (site_pages)", id="pages"),
        pytest.param(Limits(depth=3, private=True, delay=0), "more than 3 links away (site_depth)", id="depth"),
        pytest.param(Limits(megabytes=0, private=True, delay=0), "more than 0 MB (site_megabytes)", id="bytes"),
        pytest.param(Limits(minutes=0, private=True, delay=0), "took longer than 0 minutes (site_minutes)", id="time"),
    ],
)
async def test_an_endless_calendar_ends(limits: Limits, reason: str) -> None:
    def calendar(request: Request) -> Reply:
        year = int(request.target.rpartition("/")[2] or 0) if "robots" not in request.target else 0
        return Reply(page(f"Year {year}", links=(f"/{year + 1}", f"/{year + 2}")).encode())

    async with serving(
        SiteServer({"/robots.txt": Reply(status=404), "/sitemap.xml": Reply(status=404)}, other=calendar)
    ) as server:
        site = site_of(server, limits=limits)
        entries = [entry async for entry in site.listing()]
        last = entries[-1]
        assert isinstance(last, Listed)
        with pytest.raises(Unreadable) as caught:
            await site.read(last)
        site.close()
    assert reason in str(caught.value)
    assert len(server.requests) < 30


async def test_queries_without_end_end() -> None:
    def shop(request: Request) -> Reply:
        number = int(request.target.partition("=")[2] or 0)
        return Reply(page(f"Page {number}", links=tuple(f"/?p={number + step}" for step in range(1, 9))).encode())

    async with serving(
        SiteServer({"/robots.txt": Reply(status=404), "/sitemap.xml": Reply(status=404)}, other=shop)
    ) as server:
        await visited(site_of(server))
    assert len(server.requests) <= 25


async def test_a_site_that_asks_for_a_pause_gets_it() -> None:
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
async def test_pages_come_in_many_encodings(body: bytes, kind: str, read: str) -> None:
    async with serving(SiteServer({"/": Reply(body, headers={"Content-Type": kind})})) as server:
        site = site_of(server)
        (entry,) = [entry async for entry in site.listing()]
        assert isinstance(entry, Listed)
        assert (await site.read(entry)).text == read
        site.close()


async def test_a_damaged_archive_is_begun_anew(archive: Path) -> None:
    archive.write_bytes(b"this is no database" * 1000)  # noqa: ASYNC240
    async with serving(SiteServer({"/": page("Home")})) as server:
        assert paths(await visited(site_of(server, archive)), server) == ["/"]


def test_an_address_that_cannot_be_a_site_is_refused() -> None:
    for url in ("http://user:secret@example.org/", "https://", "http://exa mple.org"):
        with pytest.raises(InputError):
            Site(url)
