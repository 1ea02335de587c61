"""Redaction: removes secrets from logs, traces and errors, wherever they occur in a text."""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from urllib.parse import quote

from bythebook import telemetry

MASK = "********"

MIN_SUBSTRING_LENGTH = 8
"""A shorter secret is redacted only as a whole word, because it may be a part of other words."""

_PATTERNS = (
    r"(?<=://)[^\s/@:\"']*:[^\s/\"']*(?=@)",  # user and password of any URL
    r"(?<=\bbearer )\s*[^\s\"',]+",
    r"(?<=\bbasic )\s*[A-Za-z0-9+/=]{8,}",
    r"\bbtb(?:site)?_[\w-]{8,}",  # API keys and site tokens, which are stored only as hashes
    r"\bsk-[\w-]{8,}",
)


def build_redactor(secrets: Iterable[str]) -> Callable[[str], str]:
    """A function that replaces these secrets, and everything with the shape of one, in a text."""
    variants = sorted(
        {form for secret in secrets if secret for form in _encode_variants(secret)}, key=len, reverse=True
    )
    pattern = re.compile("|".join([*map(_secret_pattern, variants), *_PATTERNS]), re.IGNORECASE)
    return lambda text: pattern.sub(MASK, text)


def register_secrets(secrets: Iterable[str]) -> None:
    """Redact these secrets in every text that leaves this process."""
    # Compiled on first use: most commands have no text to redact.
    redactor: list[Callable[[str], str]] = []

    def redact(text: str) -> str:
        if not redactor:
            redactor.append(build_redactor(secrets))
        return redactor[0](text)

    telemetry.set_redaction(redact)


def redact_all(value: Any, mask: Callable[[str], str]) -> Any:
    """The value with every text in it redacted."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, dict):
        return {mask(str(name)): redact_all(inner, mask) for name, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [redact_all(inner, mask) for inner in value]
    return value if isinstance(value, int | float | None) else mask(str(value))


def _encode_variants(secret: str) -> Iterator[str]:
    """The secret itself, and as written in a URL, in JSON and in a Python literal."""
    yield secret
    yield quote(secret, safe="")
    yield json.dumps(secret)[1:-1]
    yield repr(secret)[1:-1]


def _secret_pattern(secret: str) -> str:
    exact = re.escape(secret)
    return exact if len(secret) >= MIN_SUBSTRING_LENGTH else rf"(?<!\w){exact}(?!\w)"
