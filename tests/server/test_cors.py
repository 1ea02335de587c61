"""Which origins may call the server from a browser (S6)."""

from __future__ import annotations

import pytest
from starlette.datastructures import Headers

from bythebook.access import ANONYMOUS, Caller, Scope
from bythebook.server.cors import allows_origin, is_listed, parse_origin_header, preflight_headers, response_headers

LISTED = frozenset({"https://docs.example", "http://localhost:3000"})

FOREIGN = [
    None,
    "",
    "null",
    "*",
    "https://evil.example",
    "https://docs.example.evil.example",
    "https://evildocs.example",
    "https://sub.docs.example",
    "https://docs.exampl",
    "https://docs.example.",
    "https://docs.example/",
    "https://docs.example:443",
    "https://docs.example:8443",
    "http://docs.example",
    "https://DOCS.example",
    "HTTPS://docs.example",
    "https://docs.example https://evil.example",
    " https://docs.example",
    "https://docs.example\n",
    "docs.example",
    "http://localhost",
    "http://localhost:30000",
    "http://127.0.0.1:3000",
]


@pytest.mark.parametrize("origin", FOREIGN, ids=ascii)
def test_an_unlisted_origin_gets_no_cors_headers(origin: str | None) -> None:
    assert not is_listed(origin, LISTED)
    assert response_headers(origin, LISTED) == preflight_headers(origin, LISTED) == {"Vary": "Origin"}


@pytest.mark.parametrize("origin", sorted(LISTED))
def test_a_listed_origin_is_echoed_and_never_a_wildcard(origin: str) -> None:
    for headers in (response_headers(origin, LISTED), preflight_headers(origin, LISTED)):
        assert headers["Access-Control-Allow-Origin"] == origin
        assert headers["Vary"] == "Origin"
        assert "Access-Control-Allow-Credentials" not in headers


def test_a_null_origin_is_rejected_even_if_listed() -> None:
    assert not is_listed("null", frozenset({"null"}))


def test_two_origin_headers_count_as_none() -> None:
    assert parse_origin_header(["https://docs.example"]) == "https://docs.example"
    assert parse_origin_header([]) is None
    assert parse_origin_header(["https://docs.example", "https://evil.example"]) is None


SITE = Caller("site:k1:x", frozenset({Scope.ASK}), "k1", frozenset({"https://docs.example"}), 5)


def sent(*headers: tuple[str, str]) -> Headers:
    return Headers(raw=[(name.encode(), value.encode()) for name, value in headers])


@pytest.mark.parametrize("origin", FOREIGN, ids=ascii)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_a_site_token_works_only_from_its_origins(origin: str | None, method: str) -> None:
    named = sent(*([("origin", origin)] if origin is not None else []), ("host", "book.example"))
    assert allows_origin(SITE, method, sent(("origin", "https://docs.example"), ("host", "book.example")))
    assert not allows_origin(SITE, method, named)
    assert allows_origin(ANONYMOUS, method, named)


@pytest.mark.parametrize(
    ("method", "headers", "good"),
    [
        pytest.param("GET", [("host", "docs.example"), ("sec-fetch-site", "same-origin")], True, id="our own page"),
        pytest.param("GET", [("host", "docs.example")], True, id="in a browser that says less"),
        pytest.param("GET", [("host", "DOCS.example")], True, id="a name in capitals"),
        pytest.param(
            "POST", [("host", "docs.example"), ("sec-fetch-site", "same-origin")], False, id="a POST names one"
        ),
        pytest.param("GET", [("host", "docs.example"), ("sec-fetch-site", "same-site")], False, id="a neighbour"),
        pytest.param("GET", [("host", "docs.example"), ("sec-fetch-site", "cross-site")], False, id="a stranger"),
        pytest.param("GET", [("host", "docs.example"), ("sec-fetch-site", "none")], False, id="no page at all"),
        pytest.param("GET", [("host", "evil.example"), ("sec-fetch-site", "same-origin")], False, id="rebound name"),
        pytest.param("GET", [("host", "docs.example:8443"), ("sec-fetch-site", "same-origin")], False, id="other port"),
        pytest.param("GET", [("host", "docs.example"), ("host", "evil.example")], False, id="two names"),
        pytest.param("GET", [("host", "docs.example"), ("origin", "https://evil.example")], False, id="foreign origin"),
        pytest.param("GET", [("host", "docs.example"), ("origin", "")], False, id="an origin without a name"),
    ],
)
def test_a_same_origin_page_may_read_without_an_origin_header(
    method: str, headers: list[tuple[str, str]], good: bool
) -> None:
    assert allows_origin(SITE, method, sent(*headers)) is good
