"""Which pages may call the server from a browser: those whose origin is on the list, compared letter by letter.

Nothing is sent with cookies here, so credentials are never allowed, and no answer is ever for `*`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.datastructures import Headers

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


def comes_from_its_site(caller: Caller, method: str, headers: Headers) -> bool:
    """Whether a site's token is used where it belongs. Other callers may come from anywhere."""
    if not caller.site:
        return True
    if method == "GET" and "origin" not in headers:
        return _is_from_our_own_page(caller.origins, headers)
    return is_listed(sent_origin(headers.getlist("origin")), caller.origins)


def _is_from_our_own_page(origins: frozenset[str], headers: Headers) -> bool:
    """Whether a page on this very server sent this, and the token is good for such pages.

    A browser names no origin when a page reads from its own server. From any other page it does, because a token in
    `Authorization` makes it ask before it sends, and `Sec-Fetch-Site`, where it is sent, says the same once more. So
    the page is ours, and its origin is the host it was reached under, which no page can choose. A program that is no
    browser may claim this as easily as it may claim any origin.
    """
    fetched, hosts = headers.getlist("sec-fetch-site"), headers.getlist("host")
    ours = {urlsplit(origin).netloc for origin in origins}
    return fetched in ([], ["same-origin"]) and len(hosts) == 1 and hosts[0].lower() in ours


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
