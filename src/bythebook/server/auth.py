"""The client address of a request that may have passed through proxies.

The sender controls `X-Forwarded-For`. It is read from the right, where the nearest proxy wrote, and only as far as
trusted proxies have written it: the result is the first address that is not a trusted proxy.

uvicorn's ProxyHeadersMiddleware does not replace this: it does not match an IPv4-mapped peer with an IPv4 network, has
no trust for a Unix socket, accepts a malformed entry as the client and stops at an empty one.
"""

import math
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from starlette.datastructures import Headers
from starlette.types import Scope

from bythebook.access import Caller, RateLimit
from bythebook.access.api_keys import ApiKeyStore
from bythebook.access.rate_limiter import RateLimiter
from bythebook.access.site_tokens import SiteQuotas, identify_reader, name_reader
from bythebook.book import Book, make_key_store
from bythebook.errors import AccessDenied, ConfigurationError, Forbidden, RateLimited
from bythebook.server import cors
from bythebook.settings import Settings
from bythebook.telemetry import metric

Address = IPv4Address | IPv6Address

UNIX = "unix"
"""The name of a proxy that connects through a Unix socket, where peers have no address."""

MAX_ADDRESS_LENGTH = 64
IPV6_PREFIX = 64
"""A household or a machine usually owns a whole /64 network, so a limit for single IPv6 addresses has no effect."""


@dataclass(frozen=True, slots=True)
class TrustedProxies:
    """The proxies whose `X-Forwarded-For` entries are accepted."""

    networks: tuple[IPv4Network | IPv6Network, ...] = ()
    unix: bool = False

    @classmethod
    def parse(cls, names: Iterable[str]) -> "TrustedProxies":
        """Parse addresses and networks, such as `10.0.0.1`, `10.0.0.0/8` or `unix`."""
        listed = list(names)
        return cls(tuple(_parse_network(name) for name in listed if name != UNIX), UNIX in listed)

    def is_trusted(self, address: Address | None) -> bool:
        """Whether the address is a trusted proxy. None means a peer on a Unix socket."""
        return self.unix if address is None else any(address in network for network in self.networks)


def _parse_network(name: str) -> IPv4Network | IPv6Network:
    try:
        network = ip_network(name)
    except ValueError as exc:
        raise ConfigurationError(f"trusted_proxies cannot have {name!r}: {exc}. Use 10.0.0.1 or 10.0.0.0/8.") from exc
    if network.prefixlen == 0:
        raise ConfigurationError(f"trusted_proxies cannot have {name!r}: then any client could claim any address.")
    return network


def rate_limit_subject(peer: str | None, forwarded: Sequence[str], *, proxies: TrustedProxies) -> str:
    """The address that a request counts against: one IPv4 address, or the /64 network of an IPv6 address.

    `peer` is the other end of the connection, None or empty for a Unix socket. `forwarded` has the values of all
    `X-Forwarded-For` headers in their order.
    """
    address = parse_address(peer or "")
    entries = ",".join(forwarded).split(",") if forwarded else []
    while entries and proxies.is_trusted(address):
        nearer = parse_address(entries.pop())
        if nearer is None:  # malformed: count the request against the proxy that passed it on
            break
        address = nearer
    if isinstance(address, IPv6Address):
        return str(ip_network((address, IPV6_PREFIX), strict=False))
    return UNIX if address is None else str(address)


def parse_address(text: str) -> Address | None:
    """The address in a text that may have a port or a zone. An IPv4-mapped IPv6 address becomes the IPv4 address."""
    text = text.strip()[:MAX_ADDRESS_LENGTH]
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


ORIGINS_TTL_SECONDS = 2.0
"""How long the list of the sites' origins is cached."""


class Authenticator:
    """Identifies callers by their keys. The database is opened on first use and may be unavailable at times."""

    def __init__(self, book: Book, settings: Settings) -> None:
        self._book = book
        self._settings = settings
        self._proxies = TrustedProxies.parse(settings.trusted_proxies)
        self._key_limit = RateLimit.parse(settings.rate_limit_key)
        self._address_limit = RateLimit.parse(settings.rate_limit_address)
        self._configured_origins = frozenset(settings.cors_origins)
        self._site_origins: frozenset[str] = frozenset()
        self._origins_read_at = -ORIGINS_TTL_SECONDS
        self._stores: tuple[ApiKeyStore, RateLimiter] | None = None

    async def _open(self) -> tuple[ApiKeyStore, RateLimiter]:
        if self._stores is None:
            database = await self._book.database()
            self._stores = make_key_store(self._settings, database), RateLimiter(database)
        return self._stores

    async def charge(self, caller: Caller) -> Callable[[], Awaitable[None]]:
        """Charge a question to the daily quota of the caller's site, if it has one. Returns what refunds it.

        Raises RateLimited when the quota of the day is used up.
        """
        quotas = SiteQuotas((await self._open())[1])
        return partial(quotas.refund, await quotas.charge(caller))

    async def origins(self) -> frozenset[str]:
        """All origins whose pages may read responses."""
        if time.monotonic() - self._origins_read_at > ORIGINS_TTL_SECONDS:
            self._site_origins = await (await self._open())[0].origins()
            self._origins_read_at = time.monotonic()
        return self._configured_origins | self._site_origins

    async def authenticate(self, scope: Scope, headers: Headers) -> Caller:
        """The caller of a request. Raises AccessDenied without a valid key, and RateLimited over the limit."""
        key_store, _ = await self._open()
        scheme, _, secret = headers.get("authorization", "").partition(" ")
        caller = await key_store.authenticate(secret.strip() if scheme.lower() == "bearer" else "")
        peer = (scope.get("client") or ("",))[0]
        forwarded = headers.getlist("x-forwarded-for")
        try:
            if caller is not None and caller.key_id and not caller.is_site_reader:
                await self._hit(scope, f"key:{caller.key_id}", self._key_limit)
            elif caller is None or caller.is_site_reader or not is_local(scope):
                address = rate_limit_subject(peer, forwarded, proxies=self._proxies)
                await self._hit(scope, f"address:{address}", self._address_limit)
        except Exception:
            metric("rejected_requests", reason="rate")
            raise
        if caller is None:
            raise AccessDenied("this server needs a key: in the header 'Authorization', behind the word Bearer.")
        if not cors.allows_origin(caller, scope["method"], headers):
            raise Forbidden("this site's token works only from the site's own pages.")
        reader = headers.get("x-reader")
        return identify_reader(caller, reader) if caller.is_site_reader else name_reader(caller, reader or "")

    async def _hit(self, scope: Scope, subject: str, limit: RateLimit) -> None:
        """Count a request against the limit, and set the RateLimit headers of its response."""
        remaining, seconds = 0, 0.0
        try:
            remaining, seconds = await (await self._open())[1].hit(subject, limit)
        except RateLimited as error:
            seconds = error.retry_after or 0.0
            raise
        finally:
            scope["state"]["headers"] = [
                (b"ratelimit-policy", f'"requests";q={limit.max_requests};w={limit.seconds:g}'.encode()),
                (b"ratelimit", f'"requests";r={remaining};t={math.ceil(seconds)}'.encode()),
            ]


def is_local(scope: Scope) -> bool:
    """Whether a program on this machine sent the request itself. An open server does not rate-limit it."""
    address = parse_address((scope.get("client") or ("",))[0] or "")
    return address is not None and address.is_loopback and "x-forwarded-for" not in Headers(scope=scope)


def is_loopback(host: str) -> bool:
    """Whether a server that listens on this host is reachable only from its own machine."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
