"""Authentication: identifies callers, applies rate limits and origin checks, and charges site quotas."""

from __future__ import annotations

import time
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, Self

from bythebook.access import RateLimit
from bythebook.access.api_keys import ApiKeyStore
from bythebook.access.rate_limiter import RateLimiter
from bythebook.access.site_tokens import SiteQuotas, identify_reader
from bythebook.errors import AccessDenied, Forbidden
from bythebook.server import cors
from bythebook.server.client_ip import TrustedProxies, parse_address, rate_limit_subject
from bythebook.telemetry import metric

if TYPE_CHECKING:
    from starlette.datastructures import Headers
    from starlette.types import Scope

    from bythebook.access import Caller
    from bythebook.access.rate_limiter import Reservation
    from bythebook.book import Book
    from bythebook.settings import Settings


ORIGINS_TTL_SECONDS = 2.0
"""How long the list of the sites' origins is cached."""


class Authenticator:
    """Identifies callers by their keys. The database is opened on first use and may be unavailable at times."""

    def __init__(self, book: Book, settings: Settings) -> None:
        self._book = book
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
            self._stores = ApiKeyStore(database), RateLimiter(database)
        return self._stores

    async def quotas(self) -> SiteQuotas:
        return SiteQuotas((await self._open())[1])

    async def origins(self) -> frozenset[str]:
        """All origins whose pages may read responses."""
        if time.monotonic() - self._origins_read_at > ORIGINS_TTL_SECONDS:
            self._site_origins = await (await self._open())[0].origins()
            self._origins_read_at = time.monotonic()
        return self._configured_origins | self._site_origins

    async def authenticate(self, scope: Scope, headers: Headers) -> Caller:
        """The caller of a request. Raises AccessDenied without a valid key, and RateLimited over the limit."""
        key_store, limiter = await self._open()
        scheme, _, secret = headers.get("authorization", "").partition(" ")
        caller = await key_store.authenticate(secret.strip() if scheme.lower() == "bearer" else "")
        peer = (scope.get("client") or ("",))[0]
        forwarded = headers.getlist("x-forwarded-for")
        try:
            if caller is not None and caller.key_id and not caller.is_site_reader:
                await limiter.hit(f"key:{caller.key_id}", self._key_limit)
            elif caller is None or caller.is_site_reader or forwarded or not _is_loopback_peer(peer):
                address = rate_limit_subject(peer, forwarded, proxies=self._proxies)
                await limiter.hit(f"address:{address}", self._address_limit)
        except Exception:
            metric("rejected_requests", reason="rate")
            raise
        if caller is None:
            raise AccessDenied("this server needs a key: in the header 'Authorization', behind the word Bearer.")
        if not cors.allows_origin(caller, scope["method"], headers):
            raise Forbidden("this site's token works only from the site's own pages.")
        return identify_reader(caller, headers.get("x-reader")) if caller.is_site_reader else caller


def _is_loopback_peer(peer: str) -> bool:
    """Whether the connection comes from this machine. An open server does not rate-limit its own machine."""
    address = parse_address(peer)
    return address is not None and address.is_loopback


def is_loopback(host: str) -> bool:
    """Whether a server that listens on this host is reachable only from its own machine."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class QuotaCharge:
    """One question charged to the daily quota of a site. Other callers are not charged."""

    quotas: SiteQuotas
    reservation: Reservation | None

    @classmethod
    async def create(cls, quotas: SiteQuotas, caller: Caller) -> Self:
        """Charge a question. Raises RateLimited when the quota of the day is used up."""
        return cls(quotas, await quotas.charge(caller))

    async def refund(self) -> None:
        await self.quotas.refund(self.reservation)
