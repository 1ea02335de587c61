"""No secret comes through, in whatever form it is in the text."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from bythebook.errors import ConfigurationError
from bythebook.settings import Settings
from bythebook.telemetry.redaction import MASK, build_redactor, redact_all

KEY = "canary-key-7f3a9c"
PASSWORD = 'p@ss"wörd\\1'  # noqa: S105 - a made up one


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(f"with {KEY}.", f"with {MASK}.", id="in a sentence"),
        pytest.param(f"x{KEY}x", f"x{MASK}x", id="inside a word"),
        pytest.param(KEY.upper(), MASK, id="in capitals"),
        pytest.param("the pin is 1234.", f"the pin is {MASK}.", id="a short one that stands alone"),
        pytest.param("at 12345 o'clock", "at 12345 o'clock", id="a short one is a part of many a number"),
        pytest.param(f"login failed: {PASSWORD}", f"login failed: {MASK}", id="with marks in it"),
        pytest.param(f"url {quote(PASSWORD, safe='')}", f"url {MASK}", id="in an address"),
        pytest.param(f"said {json.dumps(PASSWORD)}", f'said "{MASK}"', id="in JSON"),
        pytest.param(f"said {PASSWORD!r}", f"said '{MASK}'", id="in a Python literal"),
        pytest.param("postgresql://me:unknown@db/x", f"postgresql://{MASK}@db/x", id="a password nobody told us"),
        pytest.param("http://me:a:b@c@db/", f"http://{MASK}@db/", id="one with marks of its own"),
        pytest.param("Authorization: Bearer abc.def", f"Authorization: Bearer {MASK}", id="a bearer"),
        pytest.param("btb_" + "a" * 43, MASK, id="a key of ours"),
        pytest.param("btbsite_" + "a" * 43, MASK, id="a site's token"),
        pytest.param("see https://b.example:8080/a@b", "see https://b.example:8080/a@b", id="an innocent address"),
        pytest.param("a bear at sea", "a bear at sea", id="an innocent sentence"),
    ],
)
def test_redacts_secrets(text: str, expected: str) -> None:
    assert build_redactor([KEY, PASSWORD, "1234", ""])(text) == expected


@settings(max_examples=50, deadline=None)
@given(some.text(min_size=1, max_size=20), some.text(max_size=20), some.text(max_size=20))
def test_a_long_secret_is_always_redacted(secret: str, before: str, after: str) -> None:
    secret = f"{secret}-long-enough"
    assert secret not in build_redactor([secret])(f"{before}{secret}{after}")


def test_every_text_of_a_value_is_redacted() -> None:
    value = {KEY: [KEY, 1, None, {"a": (KEY, 0.5, True)}], "path": Path(KEY)}
    expected = {MASK: [MASK, 1, None, {"a": [MASK, 0.5, True]}], "path": MASK}
    assert redact_all(value, build_redactor([KEY])) == expected


def test_the_secrets_of_the_settings_are_keys_and_passwords_in_urls(tmp_path: Path) -> None:
    chosen = Settings.load(
        {
            "api_key": KEY,
            "database_url": "postgresql://me:p%40ss@db/x?sslpassword=other",
            "base_url": "http://me:word@models.example/v1",
            "site_url": "https://b.example/",
        },
        folder=tmp_path,
    )
    address = "postgresql://me:p%40ss@db/x?sslpassword=other"
    assert chosen.secrets() == {KEY, address, "p%40ss", "p@ss", "other", "word"}
    assert Settings().secrets() == set()


def test_a_secret_of_the_wrong_type_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "bythebook.toml").write_text("api_key = 77123", encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        Settings.load(folder=tmp_path)
    assert "77123" not in str(caught.value)
    assert "api_key" in str(caught.value)
