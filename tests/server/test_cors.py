"""Which origins may call the server from a browser (S6)."""

from __future__ import annotations

import pytest
from starlette.datastructures import Headers

from bythebook.access import ANYONE, Caller, Scope
from bythebook.server.cors import answered, asked_before, comes_from_its_site, is_listed, sent_origin

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
def test_a_page_of_another_origin_learns_nothing(origin: str | None) -> None:
    assert not is_listed(origin, LISTED)
    assert answered(origin, LISTED) == asked_before(origin, LISTED) == {"Vary": "Origin"}


@pytest.mark.parametrize("origin", sorted(LISTED))
def test_a_listed_origin_is_named_and_never_every_one(origin: str) -> None:
    for headers in (answered(origin, LISTED), asked_before(origin, LISTED)):
        assert headers["Access-Control-Allow-Origin"] == origin
        assert headers["Vary"] == "Origin"
        assert "Access-Control-Allow-Credentials" not in headers


def test_null_is_refused_even_where_somebody_listed_it() -> None:
    assert not is_listed("null", frozenset({"null"}))


def test_two_origins_are_none() -> None:
    assert sent_origin(["https://docs.example"]) == "https://docs.example"
    assert sent_origin([]) is None
    assert sent_origin(["https://docs.example", "https://evil.example"]) is None


SITE = Caller("site:k1:x", frozenset({Scope.ASK}), "k1", frozenset({"https://docs.example"}), 5)


def sent(*headers: tuple[str, str]) -> Headers:
    return Headers(raw=[(name.encode(), value.encode()) for name, value in headers])


@pytest.mark.parametrize("origin", FOREIGN, ids=ascii)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_the_token_of_a_site_is_good_on_that_site_only(origin: str | None, method: str) -> None:
    named = sent(*([("origin", origin)] if origin is not None else []), ("host", "book.example"))
    assert comes_from_its_site(SITE, method, sent(("origin", "https://docs.example"), ("host", "book.example")))
    assert not comes_from_its_site(SITE, method, named)
    assert comes_from_its_site(ANYONE, method, named)


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
def test_a_page_of_this_server_reads_without_naming_its_origin(
    method: str, headers: list[tuple[str, str]], good: bool
) -> None:
    assert comes_from_its_site(SITE, method, sent(*headers)) is good
