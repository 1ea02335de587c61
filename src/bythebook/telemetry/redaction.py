"""Masking: no secret leaves this process in a log, a trace or an error, however it got into the text."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from bythebook import telemetry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

MASK = "********"

LONG_ENOUGH = 8
"""A shorter secret is hidden only where it stands alone: it may be a part of any word."""

_PATTERNS = (
    r"(?<=://)[^\s/@:\"']*:[^\s/\"']*(?=@)",  # the user and password of an address, also of one we do not know
    r"(?<=\bbearer )\s*[^\s\"',]+",
    r"(?<=\bbasic )\s*[A-Za-z0-9+/=]{8,}",
    r"\bbtb(?:site)?_[\w-]{8,}",  # our own keys, which we keep only as hashes
    r"\bsk-[\w-]{8,}",
)


def masking(secrets: Iterable[str]) -> Callable[[str], str]:
    """What takes these secrets, and everything that is shaped like one, out of a text."""
    known = sorted({form for secret in secrets if secret for form in _forms(secret)}, key=len, reverse=True)
    anything = re.compile("|".join([*map(_pattern, known), *_PATTERNS]), re.IGNORECASE)
    return lambda text: anything.sub(MASK, text)


def hide(secrets: Iterable[str]) -> None:
    """Take these secrets out of every text that leaves this process."""
    # Most commands never have anything to mask.
    made: list[Callable[[str], str]] = []

    def mask(text: str) -> str:
        if not made:
            made.append(masking(secrets))
        return made[0](text)

    telemetry.hide(mask)


def masked_all(value: Any, mask: Callable[[str], str]) -> Any:
    """The same value with every text in it masked."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, dict):
        return {mask(str(name)): masked_all(inner, mask) for name, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [masked_all(inner, mask) for inner in value]
    return value if isinstance(value, int | float | None) else mask(str(value))


def _forms(secret: str) -> Iterator[str]:
    """A secret as it is, and as it looks inside an address, a JSON text or a Python literal."""
    yield secret
    yield quote(secret, safe="")
    yield json.dumps(secret)[1:-1]
    yield repr(secret)[1:-1]


def _pattern(secret: str) -> str:
    exact = re.escape(secret)
    return exact if len(secret) >= LONG_ENOUGH else rf"(?<!\w){exact}(?!\w)"
