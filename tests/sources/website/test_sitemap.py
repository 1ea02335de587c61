"""Parsing of sitemaps in every format."""

from __future__ import annotations

import gzip

import pytest

from bythebook.sources import Unreadable
from bythebook.sources.website.discovery import SitemapEntry, parse_sitemap

URLSET = (
    '<?xml version="1.0" encoding="UTF-8"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" '
    'xmlns:image="http://www.google.com/schemas/sitemap-image/1.1"><url><loc> https://a.example/x?a=1&amp;b=2\n</loc>'
    "<lastmod>2026-01-02</lastmod><image:image><image:loc>https://a.example/i.png</image:loc></image:image></url>"
    "<url><loc>https://a.example/y</loc><changefreq>weekly</changefreq></url><url><priority>1</priority></url></urlset>"
)
ENTRIES = [SitemapEntry("https://a.example/x?a=1&b=2", "2026-01-02"), SitemapEntry("https://a.example/y")]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(URLSET.encode(), id="on one line"),
        pytest.param(URLSET.replace("><", ">\n  <").encode(), id="on many lines"),
        pytest.param(gzip.compress(URLSET.encode()), id="packed"),
        pytest.param(b"\xef\xbb\xbf" + URLSET.encode(), id="with a mark"),
        pytest.param(URLSET.replace("UTF-8", "UTF-16").encode("utf-16"), id="UTF-16"),
    ],
)
def test_parses_urls_and_lastmod(data: bytes) -> None:
    parsed = parse_sitemap(data)
    assert (parsed.entries, parsed.sitemaps, parsed.error) == (ENTRIES, [], "")


def test_an_index_names_other_sitemaps() -> None:
    parsed = parse_sitemap(b"<sitemapindex><sitemap><loc>https://a.example/1.xml</loc></sitemap></sitemapindex>")
    assert (parsed.entries, parsed.sitemaps) == ([], ["https://a.example/1.xml"])


def test_plain_text_lists_one_url_per_line() -> None:
    assert parse_sitemap(b"https://a.example/x\r\n\nnonsense\nhttps://a.example/y").entries == [
        SitemapEntry("https://a.example/x"),
        SitemapEntry("https://a.example/y"),
    ]


BILLION_LAUGHS = (
    '<!DOCTYPE z [<!ENTITY a "lol">'
    + "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10)).replace("&a0;", "&a;")
    + "]><urlset><url><loc>&a9;</loc></url></urlset>"
)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(BILLION_LAUGHS.encode(), id="a billion laughs"),
        pytest.param(b'<!DOCTYPE z SYSTEM "file:///etc/passwd"><urlset/>', id="a document elsewhere"),
        pytest.param(
            b'<!DOCTYPE z [<!ENTITY x SYSTEM "file:///etc/passwd">]><urlset><url><loc>&x;</loc></url></urlset>',
            id="a file of this machine",
        ),
        pytest.param(gzip.compress(b"<urlset>" + b" " * 60_000_000), id="a bomb"),
    ],
)
def test_rejects_attacks(data: bytes) -> None:
    with pytest.raises(Unreadable):
        parse_sitemap(data)


@pytest.mark.parametrize(
    ("data", "wrong"),
    [
        pytest.param(URLSET.encode()[:-20], "unclosed token", id="cut"),
        pytest.param(b"<urlset>" + b"<a>" * 1_000_000, "more than 16 deep", id="a million nested tags"),
        pytest.param(
            b"<urlset>" + b"<url><loc>http://a/</loc></url>" * 50_001, "more than 50000 entries", id="too many"
        ),
        pytest.param(b"<urlset><url><loc>http://a/&nbsp;</loc></url>", "undefined entity", id="an entity of HTML"),
    ],
)
def test_reports_a_syntax_error(data: bytes, wrong: str) -> None:
    assert wrong in parse_sitemap(data).error


def test_keeps_the_entries_before_a_syntax_error() -> None:
    assert parse_sitemap(URLSET.encode()[:-20]).entries == ENTRIES
