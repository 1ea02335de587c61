"""Which pages may call the server from a browser: those whose origin is on the list, compared letter by letter.

Nothing is sent with cookies here, so credentials are never allowed, and no answer is ever for `*`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bythebook.access import Caller

METHODS = "GET, POST, DELETE"
ALLOWED = (
    "Accept, Authorization, Content-Type, Idempotency-Key, Last-Event-ID, Prefer, Traceparent, X-Reader, X-Request-ID"
)
EXPOSED = "Retry-After, X-Request-ID"
KEPT_SECONDS = 600
"""How long a browser may remember what it was told about an origin."""


def sent_origin(values: Sequence[str]) -> str | None:
    """The origin a request names, from the values of its `Origin` headers. Two of them name none."""
    return values[0] if len(values) == 1 else None


def is_listed(origin: str | None, listed: frozenset[str]) -> bool:
    """Whether the origin is on the list. `null` is every page that hides where it comes from, and never is."""
    return origin is not None and origin != "null" and origin in listed


def comes_from_its_site(caller: Caller, origin: str | None) -> bool:
    """Whether a site's token is used where it belongs. Other callers may come from anywhere."""
    return not caller.site or is_listed(origin, caller.origins)


def answered(origin: str | None, listed: frozenset[str]) -> dict[str, str]:
    """The headers of an answer. A page whose origin is not listed gets none that lets it read the answer."""
    headers = {"Vary": "Origin"}
    if origin is not None and is_listed(origin, listed):
        headers |= {"Access-Control-Allow-Origin": origin, "Access-Control-Expose-Headers": EXPOSED}
    return headers


def asked_before(origin: str | None, listed: frozenset[str]) -> dict[str, str]:
    """The headers with which a browser is told, before it sends a request, what it may send."""
    headers = {"Vary": "Origin"}
    if origin is not None and is_listed(origin, listed):
        headers |= {
            "Access-Control-Allow-Origin": origin,
            "Access-Control-Allow-Methods": METHODS,
            "Access-Control-Allow-Headers": ALLOWED,
            "Access-Control-Max-Age": str(KEPT_SECONDS),
        }
    return headers
