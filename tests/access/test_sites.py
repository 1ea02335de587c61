"""The origins and readers of sites, limits as they are written, and what counts for whom."""

from __future__ import annotations

import pytest

from bythebook.access import ANYONE, Caller, Limit, Scope
from bythebook.access.site_tokens import checked_origin, reading
from bythebook.errors import InputError

SITE = Caller("", frozenset({Scope.ASK}), "k1", frozenset({"https://docs.example"}), 5)
READER = "0123456789abcdef" * 2


@pytest.mark.parametrize(
    "origin",
    [
        "https://example.org",
        "http://localhost:3000",
        "http://127.0.0.1:8000",
        "http://[::1]:8000",
        "https://xn--bcher-kva.example",
        "https://my_site.example:8443",
    ],
)
def test_origins_as_browsers_write_them(origin: str) -> None:
    assert checked_origin(origin) == origin


@pytest.mark.parametrize(
    ("written", "right"),
    [
        pytest.param("https://example.org/", "https://example.org", id="a slash"),
        pytest.param("https://example.org/book?x#y", "https://example.org", id="a page"),
        pytest.param("https://Example.ORG", "https://example.org", id="capitals"),
        pytest.param("HTTPS://example.org", "https://example.org", id="capitals before it"),
        pytest.param("https://example.org:443", "https://example.org", id="the usual port"),
        pytest.param("http://example.org:80", "http://example.org", id="the usual port of http"),
        pytest.param("https://bücher.example", "https://xn--bcher-kva.example", id="another alphabet"),
        pytest.param(" https://example.org", "https://example.org", id="a space"),
    ],
)
def test_other_spellings_are_refused_with_the_right_one(written: str, right: str) -> None:
    with pytest.raises(InputError, match=f"Use '{right}'"):
        checked_origin(written)


@pytest.mark.parametrize(
    "text",
    [
        "", "*", "null", "example.org", "//example.org", "https://", "https://*.example.org", "https://*",
        "file:///etc/passwd", "javascript:alert(1)", "https://user@example.org", "https://a b.example",
        "https://example.org:port", "https://example.org:99999", "https://[::1", "https://a..example",
        "https://-a.example", "https://a,b.example", "https://\ud800.example",
    ],
    ids=ascii,
)  # fmt: skip
def test_what_is_no_origin(text: str) -> None:
    with pytest.raises(InputError, match="no origin"):
        checked_origin(text)


def test_a_reader_is_known_by_a_number_that_is_not_kept() -> None:
    first = reading(SITE, READER)
    assert first == reading(SITE, READER.upper())
    assert first.user_id.startswith("site:k1:")
    assert READER not in first.user_id
    assert first.user_id != reading(SITE, READER + "0").user_id
    other_site = Caller("", SITE.scopes, "k2", SITE.origins, 5)
    assert first.user_id.split(":")[1:] != reading(other_site, READER).user_id.split(":")[1:]


@pytest.mark.parametrize("number", [None, "", "1", READER[:-1], READER[:-1] + "g", "a" * 129, f"{READER}\n"], ids=ascii)
def test_a_number_that_could_be_guessed_is_nobodys(number: str | None) -> None:
    assert reading(SITE, number).user_id != reading(SITE, number).user_id


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("60/minute", Limit(60, 60)),
        ("1/second", Limit(1, 1)),
        (" 10 / hour ", Limit(10, 3600)),
        ("5 per day", Limit(5, 86400)),
    ],
)
def test_limits_as_they_are_written(text: str, limit: Limit) -> None:
    assert Limit.parse(text) == limit


@pytest.mark.parametrize(
    "text", ["", "60", "0/minute", "-1/minute", "1.5/minute", "60/fortnight", "60/minutes", "٣/day"]
)
def test_what_is_no_limit(text: str) -> None:
    with pytest.raises(ValueError, match="60/minute"):
        Limit.parse(text)


def test_an_admin_may_do_everything_and_anyone_all_but_that() -> None:
    admin = Caller("key:a", frozenset({Scope.ADMIN}), "a")
    assert all(admin.may(scope) for scope in Scope)
    assert {scope for scope in Scope if not ANYONE.may(scope)} == {Scope.ADMIN}
