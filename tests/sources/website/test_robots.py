"""Rules from robots.txt."""

from __future__ import annotations

import pytest

from bythebook.sources.website.http_client import SiteClient
from bythebook.sources.website.robots import MAX_DELAY, RobotsRules, fetch_robots
from bythebook.sources.website.urls import parse_url
from tests.support.site_server import Reply, SiteServer, moved_to, page, serving, text


async def rules_of(shown: str | Reply) -> RobotsRules:
    async with serving(SiteServer({"/robots.txt": shown, "/r.txt": text("User-agent: *\nDisallow: /a")})) as server:
        named = parse_url(server.url + "/")
        async with SiteClient(named, allow_private=True) as client:
            return await fetch_robots(client, named)


@pytest.mark.parametrize(
    ("shown", "allowed"),
    [
        pytest.param(text("User-agent: *\nDisallow: /a\nAllow: /a/b"), ["/", "/a/b"], id="the longest rule wins"),
        pytest.param(text("User-agent: *\nAllow: /\nUser-agent: ByTheBook\nDisallow: /a"), ["/"], id="by name"),
        pytest.param(text("User-agent: other\nDisallow: /"), ["/", "/a", "/a/b"], id="for another"),
        pytest.param(text("User-agent: *\nDisallow: /*/b$"), ["/", "/a"], id="with wildcards"),
        pytest.param(Reply(status=404), ["/", "/a", "/a/b"], id="none"),
        pytest.param(Reply(status=403), ["/", "/a", "/a/b"], id="none that is shown"),
        pytest.param(page("Disallow: /"), ["/", "/a", "/a/b"], id="a page in its place"),
        pytest.param(moved_to("/r.txt"), ["/"], id="elsewhere"),
        pytest.param(text("\x00\xff nonsense"), ["/", "/a", "/a/b"], id="nonsense"),
    ],
)
async def test_rules_decide_which_pages_are_allowed(shown: str | Reply, allowed: list[str]) -> None:
    rules = await rules_of(shown)
    assert [
        path for path in ("/", "/a", "/a/b") if rules.is_allowed(parse_url(f"https://book.example{path}"))
    ] == allowed


@pytest.mark.parametrize(
    ("said", "delay"),
    [("", 0.0), ("Crawl-delay: 2.5", 2.5), ("Crawl-delay: 99999", MAX_DELAY), ("Request-rate: 1/5", 5.0)],
)
async def test_reads_the_crawl_delay(said: str, delay: float) -> None:
    assert (await rules_of(text(f"User-agent: *\n{said}\nDisallow: /x"))).delay == delay
