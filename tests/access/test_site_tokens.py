"""The origins and readers of sites, limits as they are written, and what counts for whom."""

from __future__ import annotations

import pytest

from bythebook.access import ANONYMOUS, Caller, RateLimit, Scope
from bythebook.access.site_tokens import identify_reader, validate_origin
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
def test_accepts_origins_as_browsers_write_them(origin: str) -> None:
    assert validate_origin(origin) == origin


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
def test_rejects_other_forms_and_names_the_normal_one(written: str, right: str) -> None:
    with pytest.raises(InputError, match=f"Use '{right}'"):
        validate_origin(written)


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
def test_rejects_invalid_origins(text: str) -> None:
    with pytest.raises(InputError, match="not an origin"):
        validate_origin(text)


def test_a_reader_is_identified_by_the_hash_of_its_number() -> None:
    first = identify_reader(SITE, READER)
    assert first == identify_reader(SITE, READER.upper())
    assert first.user_id.startswith("site:k1:")
    assert READER not in first.user_id
    assert first.user_id != identify_reader(SITE, READER + "0").user_id
    other_site = Caller("", SITE.scopes, "k2", SITE.origins, 5)
    assert first.user_id.split(":")[1:] != identify_reader(other_site, READER).user_id.split(":")[1:]


@pytest.mark.parametrize("number", [None, "", "1", READER[:-1], READER[:-1] + "g", "a" * 129, f"{READER}\n"], ids=ascii)
def test_a_guessable_number_gives_a_new_identity(number: str | None) -> None:
    assert identify_reader(SITE, number).user_id != identify_reader(SITE, number).user_id


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("60/minute", RateLimit(60, 60)),
        ("1/second", RateLimit(1, 1)),
        (" 10 / hour ", RateLimit(10, 3600)),
        ("5 per day", RateLimit(5, 86400)),
    ],
)
def test_parses_rate_limits(text: str, limit: RateLimit) -> None:
    assert RateLimit.parse(text) == limit


@pytest.mark.parametrize(
    "text", ["", "60", "0/minute", "-1/minute", "1.5/minute", "60/fortnight", "60/minutes", "٣/day"]
)
def test_rejects_invalid_rate_limits(text: str) -> None:
    with pytest.raises(ValueError, match="60/minute"):
        RateLimit.parse(text)


def test_admin_has_every_scope_and_anonymous_all_but_admin() -> None:
    admin = Caller("key:a", frozenset({Scope.ADMIN}), "a")
    assert all(admin.has_scope(scope) for scope in Scope)
    assert {scope for scope in Scope if not ANONYMOUS.has_scope(scope)} == {Scope.ADMIN}
