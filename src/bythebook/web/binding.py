"""Binding: the address readers come to, taken before anything slow begins."""

from __future__ import annotations

import errno
import socket
from ipaddress import ip_address
from typing import TYPE_CHECKING

from bythebook.errors import ConfigurationError

if TYPE_CHECKING:
    from typing import Any


def bind(host: str, port: int) -> socket.socket:
    """A socket at this address. Nobody can connect before it listens. Port 0 is any that is free."""
    family, kind, protocol, _, address = _resolved(host, port)
    bound = socket.socket(family, kind, protocol)
    try:
        # A server that has just been stopped leaves its port in a state in which it cannot be taken otherwise.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError as exc:
        bound.close()
        raise ConfigurationError(_reason(exc, host, port)) from exc
    return bound


def url_of(bound: socket.socket) -> str:
    """Where the socket is reached from this machine."""
    host, port = bound.getsockname()[:2]
    if ip_address(host).is_unspecified:  # every address there is, and none that a browser would go to
        host = "::1" if ":" in host else "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _resolved(host: str, port: int) -> tuple[Any, ...]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as exc:
        raise ConfigurationError(f"there is no address {host!r}. {_HOSTS}") from exc
    # Most clients that are told "localhost" try this one, whatever comes first here.
    return min(found, key=lambda entry: entry[0] != socket.AF_INET)


_HOSTS = "Use --host 127.0.0.1 for this machine alone, or 0.0.0.0 for every address it has."


def _reason(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} of {host} is in use. Stop what listens there, or choose another port with --port."
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"port {port} may not be taken by this user. Choose one above 1023 with --port."
    if error.errno == errno.EADDRNOTAVAIL:
        return f"this machine does not have the address {host}. {_HOSTS}"
    return f"there can be no server on port {port} of {host}: {error.strerror}."
