"""CORS: the origins whose pages may call the server, compared exactly.

The server does not use cookies, so credentials are never allowed, and `*` is never sent.
"""

from collections.abc import Sequence
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from bythebook.access import Caller

ALLOW_METHODS = "GET, POST, DELETE"
ALLOW_HEADERS = (
    "Accept, Authorization, Content-Type, Idempotency-Key, Last-Event-ID, Prefer, Traceparent, X-Reader, X-Request-ID"
)
EXPOSE_HEADERS = "RateLimit, RateLimit-Policy, Retry-After, X-Request-ID"
MAX_AGE_SECONDS = 600
"""How long a browser may cache a preflight response."""


def parse_origin_header(values: Sequence[str]) -> str | None:
    """The origin of a request from its `Origin` headers; None if there is more than one header."""
    return values[0] if len(values) == 1 else None


def is_listed(origin: str | None, listed: frozenset[str]) -> bool:
    """Whether the origin is on the list. `null` means any opaque origin and is never accepted."""
    return origin is not None and origin != "null" and origin in listed


def allows_origin(caller: Caller, method: str, headers: Headers) -> bool:
    """Whether a site's token comes from an origin of its site. Other callers may use any origin."""
    if not caller.is_site_reader:
        return True
    if method == "GET" and "origin" not in headers:
        return _is_same_origin_read(caller.origins, headers)
    return is_listed(parse_origin_header(headers.getlist("origin")), caller.origins)


def _is_same_origin_read(origins: frozenset[str], headers: Headers) -> bool:
    """Whether a page of this server sent the request, and the token is valid for such pages.

    A browser sends no `Origin` with a same-origin GET. A cross-origin page sends one, because a token in
    `Authorization` requires a preflight request; `Sec-Fetch-Site`, where it is sent, confirms the same. So the page is
    served by this server, and its origin is the requested host, which a page cannot choose. A program that is not a
    browser can forge this as easily as it can forge `Origin`.
    """
    fetch_site, hosts = headers.getlist("sec-fetch-site"), headers.getlist("host")
    own_hosts = {urlsplit(origin).netloc for origin in origins}
    return fetch_site in ([], ["same-origin"]) and len(hosts) == 1 and hosts[0].lower() in own_hosts


def response_headers(origin: str | None, listed: frozenset[str]) -> dict[str, str]:
    """The CORS headers of a response. A page of an unlisted origin cannot read the response."""
    headers = {"Vary": "Origin"}
    if origin is not None and is_listed(origin, listed):
        headers |= {"Access-Control-Allow-Origin": origin, "Access-Control-Expose-Headers": EXPOSE_HEADERS}
    return headers


def preflight_headers(origin: str | None, listed: frozenset[str]) -> dict[str, str]:
    """The CORS headers of a preflight response."""
    headers = {"Vary": "Origin"}
    if origin is not None and is_listed(origin, listed):
        headers |= {
            "Access-Control-Allow-Origin": origin,
            "Access-Control-Allow-Methods": ALLOW_METHODS,
            "Access-Control-Allow-Headers": ALLOW_HEADERS,
            "Access-Control-Max-Age": str(MAX_AGE_SECONDS),
        }
    return headers
