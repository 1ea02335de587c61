"""Which origins may call the server from a browser (S6)."""

from __future__ import annotations

import pytest

from bythebook.access import ANYONE, Caller, Scope
from bythebook.web.cors import answered, asked_before, comes_from_its_site, is_listed, sent_origin

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


@pytest.mark.parametrize("origin", FOREIGN, ids=ascii)
def test_the_token_of_a_site_is_good_on_that_site_only(origin: str | None) -> None:
    site = Caller("site:k1:x", frozenset({Scope.ASK}), "k1", frozenset({"https://docs.example"}), 5)
    assert comes_from_its_site(site, "https://docs.example")
    assert not comes_from_its_site(site, origin)
    assert comes_from_its_site(ANYONE, origin)
