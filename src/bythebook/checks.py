"""Checks: what may stand in a setting beyond what its type says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def check(name: str, value: Any) -> None:
    """Raises ValueError, InputError or ConfigurationError, with what is expected, for a value that is not fine."""
    if name in _CHECKS:
        _CHECKS[name](value)


def _is_embedder(name: str) -> None:
    from bythebook.vectors.choice import check as check_embedder

    if name:
        check_embedder(name)


def _is_limit(text: str) -> None:
    from bythebook.access import Limit

    Limit.parse(text)


def _is_server(url: str) -> None:
    _is_address(url, like="http://localhost:6333")


def _is_site(url: str) -> None:
    _is_address(url, like="https://my-book.example/")


def _is_address(url: str, *, like: str) -> None:
    if url and not re.fullmatch(r"https?://[^/\s]+(/\S*)?", url, re.I):
        raise ValueError(f"use an address, as {like}")


def _is_collection(name: str) -> None:
    if not name.strip() or len(name) > 200 or re.search(r'[<>:"/\\|?*\x00-\x1f]', name):
        raise ValueError("use a name of up to 200 letters, digits, - and _")


def _are_origins(listed: tuple[str, ...]) -> None:
    from bythebook.access.sites import checked_origin

    for each in listed:
        checked_origin(each)


def _are_asides(listed: tuple[str, ...]) -> None:
    from bythebook.pages.generators import Aside

    known = [*(str(aside) for aside in Aside), "all"]
    if wrong := [each for each in listed if each not in known]:
        raise ValueError(f"{wrong[0]!r} is none of {', '.join(known)}")


_CHECKS: Mapping[str, Callable[[Any], None]] = {
    "embedder": _is_embedder,
    "rate_limit_key": _is_limit,
    "rate_limit_address": _is_limit,
    "cors_origins": _are_origins,
    "site_include": _are_asides,
    "site_url": _is_site,
    "qdrant_url": _is_server,
    "collection_name": _is_collection,
}
