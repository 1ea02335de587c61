"""Whose address a request comes from, when it may have come through proxies.

`X-Forwarded-For` is written by whoever sends it. It is believed only as far as trusted proxies have written it: from
the right, where the nearest proxy wrote, up to the first address that is no trusted proxy.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING

from bythebook.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Address = IPv4Address | IPv6Address

UNIX = "unix"
"""The name of a proxy that comes through a socket file, where there are no addresses."""

LONGEST_ADDRESS = 64
IPV6_PREFIX = 64
"""A household or a machine gets this much of IPv6, so anything less would be a limit for nobody."""


@dataclass(frozen=True, slots=True)
class Proxies:
    """The proxies that tell the truth about who is behind them."""

    networks: tuple[IPv4Network | IPv6Network, ...] = ()
    unix: bool = False

    @classmethod
    def parse(cls, names: Iterable[str]) -> Proxies:
        """Read addresses and networks, such as `10.0.0.1`, `10.0.0.0/8` or `unix`."""
        listed = list(names)
        return cls(tuple(_network(name) for name in listed if name != UNIX), UNIX in listed)

    def trust(self, address: Address | None) -> bool:
        """Whether it is one of them. None is whoever comes through a socket file."""
        return self.unix if address is None else any(address in network for network in self.networks)


def _network(name: str) -> IPv4Network | IPv6Network:
    try:
        network = ip_network(name)
    except ValueError as exc:
        raise ConfigurationError(f"trusted_proxies cannot have {name!r}: {exc}. Use 10.0.0.1 or 10.0.0.0/8.") from exc
    if network.prefixlen == 0:
        raise ConfigurationError(f"trusted_proxies cannot have {name!r}: then anybody could claim any address.")
    return network


def whose(peer: str | None, forwarded: Sequence[str], *, proxies: Proxies) -> str:
    """The address a request counts for: one IPv4 address, or the /64 network of an IPv6 address.

    `peer` is the other end of the connection, None or empty for a socket file. `forwarded` has the values of every
    `X-Forwarded-For` header, in their order.
    """
    address = read_address(peer or "")
    entries = ",".join(forwarded).split(",") if forwarded else []
    while entries and proxies.trust(address):
        nearer = read_address(entries.pop())
        if nearer is None:  # no address, so nobody can be counted for it but the proxy that passed it on
            break
        address = nearer
    if isinstance(address, IPv6Address):
        return str(ip_network((address, IPV6_PREFIX), strict=False))
    return UNIX if address is None else str(address)


def read_address(text: str) -> Address | None:
    """The address in a text, which may have a port or a zone; IPv4 inside IPv6 is the IPv4 address."""
    text = text.strip()[:LONGEST_ADDRESS]
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address
