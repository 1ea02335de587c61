"""The gate: who comes in, from where, and how often.

The purse: what a question costs its site, given back when it was never put to the book.
"""

from __future__ import annotations

import time
from contextlib import aclosing
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, Self

from bythebook.access import Limit
from bythebook.access.api_keys import Keyring
from bythebook.access.rate_limiter import Rates
from bythebook.access.site_tokens import NOT_ANSWERED, Budgets, reading
from bythebook.errors import AccessDenied, Forbidden
from bythebook.server import cors
from bythebook.server.client_ip import Proxies, read_address, whose
from bythebook.telemetry import figure

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.datastructures import Headers
    from starlette.types import Scope

    from bythebook.access import Caller
    from bythebook.access.rate_limiter import Taken
    from bythebook.book import Book
    from bythebook.server.streams import Happening
    from bythebook.settings import Settings


ORIGINS_SECONDS = 2.0
"""How long a list of the sites' origins is good for."""


class Gate:
    """Knows the callers. Everything it knows is in the database, which may come and go."""

    def __init__(self, book: Book, settings: Settings) -> None:
        self._book = book
        self._proxies = Proxies.parse(settings.trusted_proxies)
        self._by_key = Limit.parse(settings.rate_limit_key)
        self._by_address = Limit.parse(settings.rate_limit_address)
        self._always = frozenset(settings.cors_origins)
        self._of_sites: frozenset[str] = frozenset()
        self._known_at = -ORIGINS_SECONDS
        self._parts: tuple[Keyring, Rates] | None = None

    async def _open(self) -> tuple[Keyring, Rates]:
        if self._parts is None:
            database = await self._book.database()
            self._parts = Keyring(database), Rates(database)
        return self._parts

    async def budgets(self) -> Budgets:
        return Budgets((await self._open())[1])

    async def origins(self) -> frozenset[str]:
        """Every origin whose pages may read what they are answered."""
        if time.monotonic() - self._known_at > ORIGINS_SECONDS:
            self._of_sites = await (await self._open())[0].origins()
            self._known_at = time.monotonic()
        return self._always | self._of_sites

    async def admit(self, scope: Scope, headers: Headers) -> Caller:
        """Whoever sent this. Raises AccessDenied for nobody we know, and RateLimited for who comes too often."""
        keyring, rates = await self._open()
        scheme, _, secret = headers.get("authorization", "").partition(" ")
        caller = await keyring.admit(secret.strip() if scheme.lower() == "bearer" else "")
        peer = (scope.get("client") or ("",))[0]
        forwarded = headers.getlist("x-forwarded-for")
        try:
            if caller is not None and caller.key_id and not caller.site:
                await rates.hit(f"key:{caller.key_id}", self._by_key)
            elif caller is None or caller.site or forwarded or not _is_this_machine(peer):
                await rates.hit(f"address:{whose(peer, forwarded, proxies=self._proxies)}", self._by_address)
        except Exception:
            figure("shed", reason="rate")
            raise
        if caller is None:
            raise AccessDenied("this server needs a key: in the header 'Authorization', behind the word Bearer.")
        if not cors.comes_from_its_site(caller, scope["method"], headers):
            raise Forbidden("this site's token works only from the site's own pages.")
        return reading(caller, headers.get("x-reader")) if caller.site else caller


def _is_this_machine(peer: str) -> bool:
    """Whether somebody sits at this machine: an open server is theirs, and has no limit for them."""
    address = read_address(peer)
    return address is not None and address.is_loopback


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a server that listens there."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Purse:
    """One question of a site's budget. Callers who are no readers of a site pay nothing."""

    budgets: Budgets
    taken: Taken | None

    @classmethod
    async def opened(cls, budgets: Budgets, caller: Caller) -> Self:
        """Raises RateLimited when the site has asked its questions of today."""
        return cls(budgets, await budgets.spend(caller))

    async def refund(self) -> None:
        await self.budgets.refund(self.taken)

    async def spent_on(self, work: AsyncGenerator[Happening]) -> AsyncGenerator[Happening]:
        """The work, paid for unless it turns out that it could not be asked."""
        async with aclosing(work):
            try:
                async for happening in work:
                    yield happening
            except NOT_ANSWERED:
                await self.refund()
                raise
