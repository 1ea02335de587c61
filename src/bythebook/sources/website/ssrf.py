"""Protection against server-side request forgery (SSRF): which IP addresses a fetch may connect to.

A host name is resolved where the connection is opened, its addresses are checked, and the connection goes to a checked
address. A name that resolves to another address a moment later (DNS rebinding) has no effect.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeAlias

import httpcore2

from bythebook.sources.website.urls import RejectedUrl

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolver: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
"""Resolves a host and a port to IP addresses."""

_NOT_PUBLIC = tuple(
    map(
        ipaddress.ip_network,
        (
            *("0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.88.99.0/24", "198.18.0.0/15", "240.0.0.0/4"),
            *("64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "3fff::/20", "5f00::/16", "fec0::/10"),
        ),
    )
)
"""Special-purpose networks. Not every version of Python knows all of them."""
_NAT64 = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("::/96"))
"""IPv6 networks whose last 32 bits are an IPv4 address."""
_SIX_TO_FOUR = ipaddress.IPv6Network("2002::/16")


async def resolve(host: str, port: int) -> Sequence[str]:
    """The addresses of a host from the system resolver."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def is_public(address: Address) -> bool:
    """Whether an address is on the public internet, not on this machine, its network or its provider."""
    unwrapped = _unwrap_ipv4(address)
    if unwrapped != address:
        return is_public(unwrapped)
    if address.is_multicast or address.is_reserved or address.is_unspecified or not address.is_global:
        return False
    return not any(address.version == net.version and address in net for net in _NOT_PUBLIC)


def is_own_network(address: Address) -> bool:
    """Whether an address is of this machine or a private network, which `--allow-private` permits.

    Link-local addresses are excluded: no book is published there, and cloud metadata services with credentials are.
    """
    unwrapped = _unwrap_ipv4(address)
    refused = unwrapped.is_link_local or unwrapped.is_multicast or unwrapped.is_unspecified
    return not refused and (unwrapped.is_loopback or (unwrapped.is_private and not unwrapped.is_reserved))


def _unwrap_ipv4(address: Address) -> Address:
    """The IPv4 address that an IPv6 address embeds, or the address itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address.ipv4_mapped:
        return address.ipv4_mapped
    if address in _SIX_TO_FOUR:
        return ipaddress.IPv4Address((int(address) >> 80) & 0xFFFFFFFF)
    if any(address in net for net in _NAT64) and int(address) & 0xFFFFFFFF > 0xFFFF:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address


class SsrfGuardBackend(httpcore2.AsyncNetworkBackend):
    """Opens connections to checked addresses only.

    `private` lists the hosts that may be on a private network: those that the user has named and allowed.
    """

    def __init__(self, *, private: Iterable[str] = (), resolver: Resolver = resolve) -> None:
        self._private = frozenset(private)
        self._resolver = resolver
        self._network = httpcore2.AnyIOBackend()
        self._was_public: set[str] = set()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the library's own signature
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        failure: Exception = httpcore2.ConnectError(f"{host} has no address")
        for address in await self._resolve_and_check(host, port):
            try:
                return await self._network.connect_tcp(
                    address, port, timeout=timeout, local_address=local_address, socket_options=socket_options
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as exc:
                failure = exc
        raise failure

    async def _resolve_and_check(self, host: str, port: int) -> list[str]:
        """The addresses of a host. Raises RejectedUrl if any of them is forbidden."""
        try:
            found = [ipaddress.ip_address(address) for address in await self._resolver(host, port)]
        except OSError as exc:
            raise httpcore2.ConnectError(f"there is no host {host!r}") from exc
        except ValueError as exc:
            raise RejectedUrl(f"{host!r} resolves to something that is not an IP address") from exc
        for address in found:
            self._check(host, address)
        if found and all(map(is_public, found)):
            self._was_public.add(host)
        return [str(address) for address in found]

    def _check(self, host: str, address: Address) -> None:
        if is_public(address):
            return
        if host not in self._private or not is_own_network(address):
            advice = "" if not is_own_network(address) else "; add --allow-private if the site is yours"
            named = host if host == str(address) else f"{host} is at {address}, which"
            raise RejectedUrl(f"{named} is not a public internet address{advice}")
        if host in self._was_public:
            raise RejectedUrl(f"{host} had a public address before and now resolves to {address}; it is not fetched")
