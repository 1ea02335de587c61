"""The client address of a request that may have passed through proxies.

The sender controls `X-Forwarded-For`. It is read from the right, where the nearest proxy wrote, and only as far as
trusted proxies have written it: the result is the first address that is not a trusted proxy.

uvicorn's ProxyHeadersMiddleware does not replace this: it does not match an IPv4-mapped peer with an IPv4 network, has
no trust for a Unix socket, accepts a malformed entry as the client and stops at an empty one.
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
    def parse(cls, names: Iterable[str]) -> TrustedProxies:
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
