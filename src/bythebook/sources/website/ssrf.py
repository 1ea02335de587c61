"""Reach: which machines a fetch may connect to.

A name is looked up where the connection is made, what it stands for is checked, and the connection goes to the very
address that was checked: a name that stands for something else a moment later changes nothing.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeAlias

import httpcore2

from bythebook.sources.website.urls import Refused

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolver: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
"""From a host and a port to the addresses it stands for."""

_NOT_PUBLIC = tuple(
    map(
        ipaddress.ip_network,
        (
            *("0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.88.99.0/24", "198.18.0.0/15", "240.0.0.0/4"),
            *("64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "3fff::/20", "5f00::/16", "fec0::/10"),
        ),
    )
)
"""Set aside for special purposes; not every version of Python knows all of them."""
_TRANSLATED = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("::/96"))
"""IPv6 addresses whose last 32 bits are the IPv4 address that is reached through them."""
_SIX_TO_FOUR = ipaddress.IPv6Network("2002::/16")


async def resolve(host: str, port: int) -> Sequence[str]:
    """The addresses of a host, as this machine looks them up."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def is_public(address: Address) -> bool:
    """Whether an address is one of the internet's, and not of this machine, its network or its provider."""
    meant = _meant(address)
    if meant != address:
        return is_public(meant)
    if address.is_multicast or address.is_reserved or address.is_unspecified or not address.is_global:
        return False
    return not any(address.version == net.version and address in net for net in _NOT_PUBLIC)


def is_own_network(address: Address) -> bool:
    """Whether an address is of this machine or a private network: what `--allow-private` is for.

    Link-local addresses are not among them: nobody publishes a book there, but clouds keep their secrets there.
    """
    meant = _meant(address)
    refused = meant.is_link_local or meant.is_multicast or meant.is_unspecified
    return not refused and (meant.is_loopback or (meant.is_private and not meant.is_reserved))


def _meant(address: Address) -> Address:
    """The IPv4 address that an IPv6 address only wraps."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address.ipv4_mapped:
        return address.ipv4_mapped
    if address in _SIX_TO_FOUR:
        return ipaddress.IPv4Address((int(address) >> 80) & 0xFFFFFFFF)
    if any(address in net for net in _TRANSLATED) and int(address) & 0xFFFFFFFF > 0xFFFF:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address


class Gate(httpcore2.AsyncNetworkBackend):
    """Opens connections, to checked addresses only.

    `private` names the hosts that may be on a private network: those the person at the terminal has named and allowed.
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
        for address in await self._checked(host, port):
            try:
                return await self._network.connect_tcp(
                    address, port, timeout=timeout, local_address=local_address, socket_options=socket_options
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as exc:
                failure = exc
        raise failure

    async def _checked(self, host: str, port: int) -> list[str]:
        """The addresses of a host. One that must not be reached is reason enough not to trust the others."""
        try:
            found = [ipaddress.ip_address(address) for address in await self._resolver(host, port)]
        except OSError as exc:
            raise httpcore2.ConnectError(f"there is no host {host!r}") from exc
        except ValueError as exc:
            raise Refused(f"{host!r} stands for something that is no address") from exc
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
            raise Refused(f"{named} is not an address of the internet{advice}")
        if host in self._was_public:
            raise Refused(f"{host} was on the internet a moment ago and is now at {address}; it is not followed there")
