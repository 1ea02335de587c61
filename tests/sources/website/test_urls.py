"""Parsing, normalization and scope of URLs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.sources.website.urls import RejectedUrl, SiteScope, is_crawler_trap, is_same_site, parse_url


@pytest.mark.parametrize(
    ("given_url", "written"),
    [
        pytest.param("HTTP://Example.ORG", "http://example.org/", id="case"),
        pytest.param("https://example.org:443/a", "https://example.org/a", id="the usual port"),
        pytest.param("http://example.org:8080/a", "http://example.org:8080/a", id="another port"),
        pytest.param("https://example.org/a/../b/./c", "https://example.org/b/c", id="dots"),
        pytest.param("https://example.org/../../a/", "https://example.org/a/", id="dots above the top"),
        pytest.param("https://example.org/a#b", "https://example.org/a", id="fragment"),
        pytest.param("https://example.org/%41%2f%c3%a4ä b", "https://example.org/A%2F%C3%A4%C3%A4%20b", id="escapes"),
        pytest.param("https://example.org/?utm_source=x&b=1&fbclid=2", "https://example.org/?b=1", id="tracking"),
        pytest.param("https://bücher.example/", "https://xn--bcher-kva.example/", id="another alphabet"),
        pytest.param("https://example.org./a", "https://example.org/a", id="the dot of the root"),
        pytest.param("http://[::FFFF:127.0.0.1]/", "http://[::ffff:7f00:1]/", id="IPv6"),
        pytest.param(" https://example.org/a\n", "https://example.org/a", id="spaces around"),
    ],
)
def test_normalizes_urls(given_url: str, written: str) -> None:
    assert str(parse_url(given_url)) == written


@pytest.mark.parametrize(
    "url",
    [
        *(
            "ftp://example.org/",
            "file:///etc/passwd",
            "javascript:alert(1)",
            "gopher://x/",
            "//",
            "http://",
            "example.org",
        ),
        *("http://user@example.org/", "http://user:secret@example.org/", "http://a b/", "http://exa\x00mple.org/"),
        *("http://example.org:99999/", "http://example.org:x/", "http://[::1/", "http://-a/", "https://" + "a" * 3000),
        *("http://example.org\\@127.0.0.1/", "http://127.0.0.1#@example.org:80:80/", "http://:80/"),
    ],
)
def test_rejects_invalid_urls(url: str) -> None:
    try:
        location = parse_url(url)
    except RejectedUrl:
        return
    # Where browsers see an address, it must be one whose host is what it looks like.
    assert location.host in ("example.org", "127.0.0.1", "a%20b")


def test_the_error_contains_no_password() -> None:
    with pytest.raises(RejectedUrl) as caught:
        parse_url("http://user:secret@example.org/")
    assert "secret" not in str(caught.value)


@given(st.text(max_size=60))
def test_any_text_is_a_url_or_rejected(url: str) -> None:
    for text in (url, f"http://{url}", f"https://example.org/{url}"):
        try:
            location = parse_url(text)
        except RejectedUrl:
            continue
        assert parse_url(str(location)) == location
        assert str(location).isascii()


def test_the_scope_is_the_folder_of_the_start_url() -> None:
    scope = SiteScope.of(parse_url("https://example.org/docs/intro.html"))
    inside = ["https://example.org/docs/", "https://example.org/docs", "https://example.org/docs/a/b?c=1"]
    outside = ["https://example.org/", "https://example.org/docsx", "http://example.org/docs/", "https://x.org/docs/"]
    assert [scope.contains(parse_url(url)) for url in inside] == [True] * 3
    assert [scope.contains(parse_url(url)) for url in outside] == [False] * 4
    assert SiteScope.of(parse_url("https://example.org/v1.2/guide")).folder == "/v1.2/guide/"


def test_www_and_https_are_the_same_site() -> None:
    http = parse_url("http://example.org/")
    assert is_same_site(http, parse_url("https://www.example.org/en/"))
    assert not is_same_site(parse_url("https://example.org/"), http)
    assert not is_same_site(http, parse_url("https://example.com/"))
    assert not is_same_site(http, parse_url("http://example.org:8080/"))


@pytest.mark.parametrize(
    ("path", "circles"),
    [
        ("/a/b/c", False),
        ("/a/b/a/b/a/b/a/b", True),
        ("/" + "/".join(map(str, range(25))), True),
        ("/2026/11/16/", False),
    ],
)
def test_detects_crawler_traps(path: str, circles: bool) -> None:
    assert is_crawler_trap(parse_url(f"https://example.org{path}")) is circles
