"""An HTTP client for a site: fetches one URL within limits, and connects only to addresses that were checked.

It keeps no cookies, sends no credentials and ignores the proxies of the environment. The target of a redirect passes
the same checks as the first URL.
"""

import asyncio
import ssl
import zlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from email.message import Message
from types import TracebackType
from typing import Self, TypeAlias

import httpcore2

from bythebook.errors import DeadlineExceeded, Unavailable
from bythebook.sources import Unreadable
from bythebook.sources.website import FetchResponse, Validators
from bythebook.sources.website.ssrf import Resolver, SsrfGuardBackend, resolve
from bythebook.sources.website.urls import RejectedUrl, WebUrl, parse_url
from bythebook.upstream.classify import ClassifiedError, classify_status
from bythebook.upstream.client import RetryPolicy, Upstream
from bythebook.upstream.deadline import Deadline

USER_AGENT = "bythebook/0.1 (reads a site into a book; obeys robots.txt)"
MAX_REDIRECTS = 5
FETCH_SECONDS = 40.0
"""The timeout of one URL, with all retries and redirects."""

_ACCEPT = "text/html, application/xhtml+xml, application/xml;q=0.9, text/plain;q=0.8, */*;q=0.1"
_REDIRECT_STATUSES, _PERMANENT_STATUSES = frozenset([301, 302, 303, 307, 308]), frozenset([301, 308])
_SERVER_FAILURES = frozenset([502, 503, 504])
_RETRY_STATUSES = frozenset([408, 425, 429])
_ZLIB_WINDOWS = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}
_POLICY = RetryPolicy(first_wait=0.5, longest_wait=8.0)

ValidatorLookup: TypeAlias = Callable[[WebUrl], Validators]
"""Returns the validators of the cached version of a URL."""


class SiteClient:
    """The HTTP client of one crawl, used as `async with`.

    `site` is the URL given by the user: its port may be unusual, and with `allow_private` it may be in a private
    network. No other URL may, wherever it was found.
    """

    def __init__(
        self,
        site: WebUrl,
        *,
        allow_private: bool = False,
        delay: float = 0.0,
        max_connections: int = 4,
        resolver: Resolver = resolve,
    ) -> None:
        self._site = site
        self.requests = 0
        self.delay = delay
        self._next_request_at = 0.0
        self._pacing = asyncio.Lock()
        self._upstreams: dict[str, Upstream] = {}
        backend = SsrfGuardBackend(private=[site.host] if allow_private else [], resolver=resolver)
        self._pool = httpcore2.AsyncConnectionPool(
            # Loading the system certificates is slow, and plain HTTP needs none.
            ssl_context=httpcore2.default_ssl_context() if site.scheme == "https" else None,
            max_connections=max_connections,
            keepalive_expiry=30.0,
            network_backend=backend,
        )

    async def __aenter__(self) -> Self:
        await self._pool.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._pool.__aexit__(kind, error, trace)

    async def get(
        self,
        url: WebUrl,
        *,
        max_bytes: int,
        validators: ValidatorLookup = lambda _url: Validators(),
        may_follow: Callable[[WebUrl, WebUrl], bool] = lambda _here, _there: True,
        seconds: float = FETCH_SECONDS,
    ) -> FetchResponse:
        """Fetch a URL, with at most five redirects and at most `max_bytes` bytes after decompression.

        Returns any status below 500 except 408, 425 and 429. A redirect that `may_follow` does not allow is returned
        with its target URL, which is not fetched. By default all are followed: a sitemap may be on another host.
        Raises RejectedUrl for a forbidden target, Unreadable for a body that is too large or cannot be decompressed,
        and Unavailable, RateLimited or DeadlineExceeded if the site fails.
        """
        deadline: Deadline | None = None
        permanent = True
        for _hop in range(MAX_REDIRECTS + 1):
            self._check(url)
            await self._wait_for_turn()
            deadline = deadline or Deadline.after(seconds, first_token=seconds)
            response, target = await self._fetch_once(
                url, max_bytes=max_bytes, validators=validators(url), deadline=deadline
            )
            if not target:
                return replace(response, permanent=permanent)
            permanent = permanent and response.status in _PERMANENT_STATUSES
            here, url = url, _resolve_redirect(url, target)
            if not may_follow(here, url):
                return FetchResponse(str(url), response.status, permanent=permanent)
        raise RejectedUrl(f"its redirects do not end: after {MAX_REDIRECTS} of them, another one leads to {url}")

    def _check(self, url: WebUrl) -> None:
        if not url.has_usual_port and url.origin != self._site.origin:
            raise RejectedUrl(f"{url.origin} has an unusual port, and is not the site that was given")

    async def _wait_for_turn(self) -> None:
        """Wait until the delay since the last request has passed."""
        async with self._pacing:
            loop = asyncio.get_running_loop()
            wait = self._next_request_at - loop.time()
            if wait > 0:
                await asyncio.sleep(wait)
            self._next_request_at = loop.time() + self.delay

    async def _fetch_once(
        self, url: WebUrl, *, max_bytes: int, validators: Validators, deadline: Deadline
    ) -> tuple[FetchResponse, str]:
        """A response and, if it is a redirect, its target."""
        first = True

        async def work() -> tuple[FetchResponse, str]:
            nonlocal first
            if not first:
                await self._wait_for_turn()
            first = False
            return await self._request(url, max_bytes=max_bytes, validators=validators)

        upstream = self._upstreams.setdefault(url.host, Upstream(url.host, classify=classify_fetch, policy=_POLICY))
        return await upstream.call(work, deadline=deadline, stage="fetching")

    async def _request(self, url: WebUrl, *, max_bytes: int, validators: Validators) -> tuple[FetchResponse, str]:
        self.requests += 1
        target = httpcore2.URL(scheme=url.scheme, host=url.host, port=url.port, target=url.target.encode("ascii"))
        async with self._pool.stream("GET", target, headers=_request_headers(url, validators)) as response:
            headers = _response_headers(response)
            if response.status in _REDIRECT_STATUSES and headers.get("location"):
                return FetchResponse(str(url), response.status), headers["location"]
            if response.status in _RETRY_STATUSES or response.status >= 500:
                raise _FailedResponse(response.status, headers)
            body = await _read_body(response, headers, max_bytes=max_bytes) if response.status == 200 else b""
            return _make_response(url, response.status, headers, body), ""


class _FailedResponse(Exception):
    """A response that asks to retry later or reports a server error."""

    def __init__(self, status: int, headers: Mapping[str, str]) -> None:
        super().__init__(status)
        self.status = status
        self.headers = headers


def classify_fetch(upstream: str, exc: Exception, /) -> ClassifiedError | None:
    """Classify an error of a fetch."""
    if isinstance(exc, _FailedResponse):
        classified = classify_status(upstream, exc.status, headers=exc.headers, error=Unavailable)
        # A single failing page does not mean that the site is down.
        return replace(classified, counts=exc.status in _SERVER_FAILURES)
    if isinstance(exc, httpcore2.TimeoutException):
        return ClassifiedError.failure(DeadlineExceeded(f"{upstream} did not answer in time"))
    if isinstance(exc, httpcore2.ConnectError):
        return _classify_connect_error(upstream, exc)
    if isinstance(exc, httpcore2.NetworkError | httpcore2.RemoteProtocolError):
        return ClassifiedError.failure(Unavailable(f"the connection to {upstream} broke"))
    if isinstance(exc, httpcore2.LocalProtocolError | httpcore2.UnsupportedProtocol):
        return ClassifiedError.rejection(RejectedUrl(f"{upstream} does not support this request"))
    return None


def _classify_connect_error(upstream: str, exc: Exception) -> ClassifiedError:
    cause: BaseException | None = exc
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            wrong = Unavailable(f"the certificate of {upstream} is not valid: {cause.verify_message}")
            return ClassifiedError.rejection(wrong)
        cause = cause.__cause__ or cause.__context__
    return ClassifiedError.failure(Unavailable(f"{upstream} cannot be reached ({exc})"))


def _request_headers(url: WebUrl, validators: Validators) -> list[tuple[bytes, bytes]]:
    origin = url.origin.partition("://")[2]
    headers = {"Host": origin, "User-Agent": USER_AGENT, "Accept": _ACCEPT, "Accept-Encoding": "gzip"}
    if validators.etag:
        headers["If-None-Match"] = validators.etag
    if validators.last_modified:
        headers["If-Modified-Since"] = validators.last_modified
    return [(name.encode("ascii"), value.encode("latin-1")) for name, value in headers.items()]


def _response_headers(response: httpcore2.Response) -> dict[str, str]:
    """The headers by name. Repeated headers are joined by commas."""
    headers: dict[str, str] = {}
    for raw, value in response.headers:
        name, text = raw.decode("latin-1").lower(), value.decode("latin-1")
        headers[name] = f"{headers[name]}, {text}" if name in headers else text
    return headers


async def _read_body(response: httpcore2.Response, headers: Mapping[str, str], *, max_bytes: int) -> bytes:
    """The decompressed body. It is decompressed chunk by chunk, so that a decompression bomb is detected early."""
    decompress = _make_decoder(headers.get("content-encoding", ""))
    declared = headers.get("content-length", "")
    if declared.isdigit() and int(declared) > max_bytes:
        raise _size_error(max_bytes)
    body = bytearray()
    async for chunk in response.aiter_stream():
        body += decompress(chunk, max_bytes + 1 - len(body))
        if len(body) > max_bytes:
            raise _size_error(max_bytes)
    return bytes(body)


def _size_error(max_bytes: int) -> Unreadable:
    return Unreadable(f"it has more than {max_bytes / 1e6:g} MB")


def _make_decoder(encoding: str) -> Callable[[bytes, int], bytes]:
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return lambda chunk, _max_bytes: chunk
    if name not in _ZLIB_WINDOWS:
        raise Unreadable(f"its content encoding was not requested ({name[:40]!r})")
    decompressor = zlib.decompressobj(_ZLIB_WINDOWS[name])

    def decompress(chunk: bytes, max_bytes: int) -> bytes:
        try:
            return decompressor.decompress(chunk, max_bytes)
        except zlib.error as exc:
            raise Unreadable("it cannot be decompressed") from exc

    return decompress


def decompress_gzip(data: bytes, *, max_bytes: int) -> bytes:
    """Decompress a gzip file to at most `max_bytes` bytes. Raises Unreadable."""
    decompressor = zlib.decompressobj(_ZLIB_WINDOWS["gzip"])
    try:
        content = decompressor.decompress(data, max_bytes + 1)
    except zlib.error as exc:
        raise Unreadable("it cannot be decompressed") from exc
    if len(content) > max_bytes:
        raise _size_error(max_bytes)
    if not decompressor.eof:
        raise Unreadable("it is truncated")
    return content


def _make_response(url: WebUrl, status: int, headers: Mapping[str, str], body: bytes) -> FetchResponse:
    content = Message()
    content["content-type"] = headers.get("content-type", "")
    return FetchResponse(
        str(url),
        status,
        body,
        media_type=content.get_content_type() if headers.get("content-type") else "",
        charset=str(content.get_param("charset", "") or ""),
        validators=Validators(headers.get("etag", ""), headers.get("last-modified", "")),
        robots=headers.get("x-robots-tag", ""),
    )


def _resolve_redirect(url: WebUrl, target: str) -> WebUrl:
    """The target of a redirect. A server behind a proxy may redirect to http on its own host: https is kept."""
    following = parse_url(target, base=url)
    is_downgrade = (url.scheme, following.scheme) == ("https", "http")
    if is_downgrade and following.host == url.host and following.has_usual_port:
        return replace(following, scheme="https", port=443)
    if is_downgrade:
        raise RejectedUrl(f"it leads from https back to {following}")
    return following
