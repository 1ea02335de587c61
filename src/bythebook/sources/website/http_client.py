"""The client: fetches one address, within limits, and connects to nothing that was not checked.

It keeps no cookies, sends no credentials, uses no proxy of the environment, and follows a redirect only after looking
at it as it looked at the address it was given.
"""

from __future__ import annotations

import asyncio
import ssl
import zlib
from collections.abc import Callable
from dataclasses import replace
from email.message import Message
from typing import TYPE_CHECKING, Self, TypeAlias

import httpcore2

from bythebook.errors import DeadlineExceeded, Unavailable
from bythebook.sources import Unreadable
from bythebook.sources.website import Answer, Validators
from bythebook.sources.website.ssrf import Gate, resolve
from bythebook.sources.website.urls import Location, Refused, locate
from bythebook.upstream import Deadline, Policy, Upstream
from bythebook.upstream.classify import Failure, judge_status

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from bythebook.sources.website.ssrf import Resolver

USER_AGENT = "bythebook/0.1 (reads a site into a book; obeys robots.txt)"
MOST_REDIRECTS = 5
SECONDS = 40.0
"""How long one address may take, with every attempt and redirect."""

_ACCEPT = "text/html, application/xhtml+xml, application/xml;q=0.9, text/plain;q=0.8, */*;q=0.1"
_REDIRECTS, _FOR_GOOD = frozenset([301, 302, 303, 307, 308]), frozenset([301, 308])
_SERVER_IS_ILL = frozenset([502, 503, 504])
_AGAIN_LATER = frozenset([408, 425, 429])
_WINDOWS = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}
_POLICY = Policy(first_wait=0.5, longest_wait=8.0)

Known: TypeAlias = Callable[[Location], Validators]
"""What is remembered of the version we have of an address."""


def nothing_known(_location: Location) -> Validators:
    return Validators()


def anywhere(_here: Location, _there: Location) -> bool:
    """For what may be on another host, as a sitemap may."""
    return True


class Client:
    """One client for everything that is fetched of a site, used as `async with`.

    `named` is the address a person gave: its port may be unusual, and with `allow_private` it may be in a private
    network. No other address has these liberties, wherever it was found.
    """

    def __init__(
        self,
        named: Location,
        *,
        allow_private: bool = False,
        delay: float = 0.0,
        at_once: int = 4,
        resolver: Resolver = resolve,
    ) -> None:
        self._named = named
        self.requests = 0
        self.delay = delay
        self._free_at = 0.0
        self._turns = asyncio.Lock()
        self._upstreams: dict[str, Upstream] = {}
        gate = Gate(private=[named.host] if allow_private else [], resolver=resolver)
        self._pool = httpcore2.AsyncConnectionPool(
            # Reading the machine's certificates takes long, and a preview of a site needs none.
            ssl_context=httpcore2.default_ssl_context() if named.scheme == "https" else None,
            max_connections=at_once,
            keepalive_expiry=30.0,
            network_backend=gate,
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
        location: Location,
        *,
        most: int,
        known: Known = nothing_known,
        may_follow: Callable[[Location, Location], bool] = anywhere,
        seconds: float = SECONDS,
    ) -> Answer:
        """What is at the address, after at most five redirects and `most` bytes, unpacked.

        Any status below 500 but "later" is an answer, and so is a redirect that `may_follow` does not allow: it says
        where it leads, and nobody was asked there. Raises Refused for where it must not go, Unreadable for what is
        too large or cannot be unpacked, and Unavailable, RateLimited or DeadlineExceeded where the site fails.
        """
        deadline: Deadline | None = None
        permanent = True
        for _hop in range(MOST_REDIRECTS + 1):
            self._check(location)
            await self._turn()
            deadline = deadline or Deadline.after(seconds, first_token=seconds)
            answer, target = await self._ask(location, most=most, validators=known(location), deadline=deadline)
            if not target:
                return replace(answer, permanent=permanent)
            permanent = permanent and answer.status in _FOR_GOOD
            here, location = location, _followed(location, target)
            if not may_follow(here, location):
                return Answer(str(location), answer.status, permanent=permanent)
        raise Refused(f"its redirects do not end: after {MOST_REDIRECTS} of them, another one leads to {location}")

    def _check(self, location: Location) -> None:
        if not location.has_usual_port and location.origin != self._named.origin:
            raise Refused(f"{location.origin} has an unusual port, and is not the site that was named")

    async def _turn(self) -> None:
        """Wait until the site may be asked again."""
        async with self._turns:
            loop = asyncio.get_running_loop()
            wait = self._free_at - loop.time()
            if wait > 0:
                await asyncio.sleep(wait)
            self._free_at = loop.time() + self.delay

    async def _ask(
        self, location: Location, *, most: int, validators: Validators, deadline: Deadline
    ) -> tuple[Answer, str]:
        """An answer, and where it leads on to if it is no more than a redirect."""
        first = True

        async def work() -> tuple[Answer, str]:
            nonlocal first
            if not first:
                await self._turn()
            first = False
            return await self._request(location, most=most, validators=validators)

        upstream = self._upstreams.setdefault(location.host, Upstream(location.host, judge=judge_fetch, policy=_POLICY))
        return await upstream.call(work, deadline=deadline, stage="fetching")

    async def _request(self, location: Location, *, most: int, validators: Validators) -> tuple[Answer, str]:
        self.requests += 1
        url = httpcore2.URL(
            scheme=location.scheme, host=location.host, port=location.port, target=location.target.encode("ascii")
        )
        async with self._pool.stream("GET", url, headers=_headers(location, validators)) as response:
            headers = _by_name(response)
            if response.status in _REDIRECTS and headers.get("location"):
                return Answer(str(location), response.status), headers["location"]
            if response.status in _AGAIN_LATER or response.status >= 500:
                raise _Failed(response.status, headers)
            body = await _body(response, headers, most=most) if response.status == 200 else b""
            return _answer(location, response.status, headers, body), ""


class _Failed(Exception):
    """An answer that says to come again later, or that the server is at fault."""

    def __init__(self, status: int, headers: Mapping[str, str]) -> None:
        super().__init__(status)
        self.status = status
        self.headers = headers


def judge_fetch(upstream: str, exc: Exception, /) -> Failure | None:
    """What went wrong while fetching, in our terms."""
    if isinstance(exc, _Failed):
        verdict = judge_status(upstream, exc.status, headers=exc.headers, error=Unavailable)
        # One page that fails says nothing about the others.
        return replace(verdict, counts=exc.status in _SERVER_IS_ILL)
    if isinstance(exc, httpcore2.TimeoutException):
        return Failure(DeadlineExceeded(f"{upstream} did not answer in time"), again=True, counts=True)
    if isinstance(exc, httpcore2.ConnectError):
        return _not_connected(upstream, exc)
    if isinstance(exc, httpcore2.NetworkError | httpcore2.RemoteProtocolError):
        return Failure(Unavailable(f"the connection to {upstream} broke"), again=True, counts=True)
    if isinstance(exc, httpcore2.LocalProtocolError | httpcore2.UnsupportedProtocol):
        return Failure(Refused(f"{upstream} cannot be asked for that"), again=False, counts=False)
    return None


def _not_connected(upstream: str, exc: Exception) -> Failure:
    cause: BaseException | None = exc
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            wrong = Unavailable(f"the certificate of {upstream} is not good: {cause.verify_message}")
            return Failure(wrong, again=False, counts=False)
        cause = cause.__cause__ or cause.__context__
    return Failure(Unavailable(f"{upstream} cannot be reached ({exc})"), again=True, counts=True)


def _headers(location: Location, validators: Validators) -> list[tuple[bytes, bytes]]:
    origin = location.origin.partition("://")[2]
    headers = {"Host": origin, "User-Agent": USER_AGENT, "Accept": _ACCEPT, "Accept-Encoding": "gzip"}
    if validators.etag:
        headers["If-None-Match"] = validators.etag
    if validators.last_modified:
        headers["If-Modified-Since"] = validators.last_modified
    return [(name.encode("ascii"), value.encode("latin-1")) for name, value in headers.items()]


def _by_name(response: httpcore2.Response) -> dict[str, str]:
    """The headers by name. Of one that is sent twice the values are joined."""
    headers: dict[str, str] = {}
    for raw, value in response.headers:
        name, text = raw.decode("latin-1").lower(), value.decode("latin-1")
        headers[name] = f"{headers[name]}, {text}" if name in headers else text
    return headers


async def _body(response: httpcore2.Response, headers: Mapping[str, str], *, most: int) -> bytes:
    """The body as it is meant, unpacked bit by bit, so that a small one that grows huge is noticed at once."""
    unpack = _unpacker(headers.get("content-encoding", ""))
    told = headers.get("content-length", "")
    if told.isdigit() and int(told) > most:
        raise _too_large(most)
    body = bytearray()
    async for piece in response.aiter_stream():
        body += unpack(piece, most + 1 - len(body))
        if len(body) > most:
            raise _too_large(most)
    return bytes(body)


def _too_large(most: int) -> Unreadable:
    return Unreadable(f"it has more than {most / 1e6:g} MB")


def _unpacker(encoding: str) -> Callable[[bytes, int], bytes]:
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return lambda piece, _most: piece
    if name not in _WINDOWS:
        raise Unreadable(f"it is packed in a way nobody asked for ({name[:40]!r})")
    packed = zlib.decompressobj(_WINDOWS[name])

    def unpack(piece: bytes, most: int) -> bytes:
        try:
            return packed.decompress(piece, most)
        except zlib.error as exc:
            raise Unreadable("it cannot be unpacked") from exc

    return unpack


def unpacked(data: bytes, *, most: int) -> bytes:
    """A gzip file's content, which may have at most so many bytes."""
    packed = zlib.decompressobj(_WINDOWS["gzip"])
    try:
        content = packed.decompress(data, most + 1)
    except zlib.error as exc:
        raise Unreadable("it cannot be unpacked") from exc
    if len(content) > most:
        raise _too_large(most)
    if not packed.eof:
        raise Unreadable("it ends in the middle; it is not complete")
    return content


def _answer(location: Location, status: int, headers: Mapping[str, str], body: bytes) -> Answer:
    content = Message()
    content["content-type"] = headers.get("content-type", "")
    return Answer(
        str(location),
        status,
        body,
        media_type=content.get_content_type() if headers.get("content-type") else "",
        charset=str(content.get_param("charset", "") or ""),
        validators=Validators(headers.get("etag", ""), headers.get("last-modified", "")),
        robots=headers.get("x-robots-tag", ""),
    )


def _followed(location: Location, target: str) -> Location:
    """Where a redirect leads. Servers behind a proxy often forget that they are reached by https: it stays."""
    following = locate(target, base=location)
    forgot = (location.scheme, following.scheme) == ("https", "http") and following.host == location.host
    if forgot and following.has_usual_port:
        return replace(following, scheme="https", port=443)
    if (location.scheme, following.scheme) == ("https", "http"):
        raise Refused(f"it leads from https back to {following}")
    return following
