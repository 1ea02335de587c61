"""One way to write an address, and one place to take it apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.sources.website.urls import Refused, Scope, is_same_site, leads_in_circles, locate


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
def test_an_address_is_written_in_one_way(given_url: str, written: str) -> None:
    assert str(locate(given_url)) == written


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
def test_what_is_no_address_of_a_page_is_refused(url: str) -> None:
    try:
        location = locate(url)
    except Refused:
        return
    # Where browsers see an address, it must be one whose host is what it looks like.
    assert location.host in ("example.org", "127.0.0.1", "a%20b")


def test_no_secret_is_repeated() -> None:
    with pytest.raises(Refused) as caught:
        locate("http://user:secret@example.org/")
    assert "secret" not in str(caught.value)


@given(st.text(max_size=60))
def test_any_text_is_an_address_or_refused(url: str) -> None:
    for text in (url, f"http://{url}", f"https://example.org/{url}"):
        try:
            location = locate(text)
        except Refused:
            continue
        assert locate(str(location)) == location
        assert str(location).isascii()


def test_the_site_is_what_lies_below_the_address() -> None:
    scope = Scope.of(locate("https://example.org/docs/intro.html"))
    inside = ["https://example.org/docs/", "https://example.org/docs", "https://example.org/docs/a/b?c=1"]
    outside = ["https://example.org/", "https://example.org/docsx", "http://example.org/docs/", "https://x.org/docs/"]
    assert [scope.holds(locate(url)) for url in inside] == [True] * 3
    assert [scope.holds(locate(url)) for url in outside] == [False] * 4
    assert Scope.of(locate("https://example.org/v1.2/guide")).folder == "/v1.2/guide/"


def test_www_and_https_make_no_other_site() -> None:
    http = locate("http://example.org/")
    assert is_same_site(http, locate("https://www.example.org/en/"))
    assert not is_same_site(locate("https://example.org/"), http)
    assert not is_same_site(http, locate("https://example.com/"))
    assert not is_same_site(http, locate("http://example.org:8080/"))


@pytest.mark.parametrize(
    ("path", "circles"),
    [
        ("/a/b/c", False),
        ("/a/b/a/b/a/b/a/b", True),
        ("/" + "/".join(map(str, range(25))), True),
        ("/2026/11/16/", False),
    ],
)
def test_paths_that_never_end_are_told(path: str, circles: bool) -> None:
    assert leads_in_circles(locate(f"https://example.org{path}")) is circles
