"""Upstream: the one way to call something outside this process.

A request has one absolute `Deadline`, handed down to every call it makes. An `Upstream` is one service outside: it
bounds each call by the deadline, owns every retry, and stops calling a service that keeps failing. The client
libraries' own retries are off.

What a foreign error means is decided at the adapter's seam by a `Judge`; `bythebook.upstream.openai` and
`bythebook.upstream.classify` judge the errors of those clients. Nothing here imports a client library.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bythebook.upstream.circuit_breaker import Breaker, BreakerState
    from bythebook.upstream.classify import Failure, Judge
    from bythebook.upstream.client import CallReport, CallState, Policy, Upstream
    from bythebook.upstream.deadline import Deadline

__all__ = [
    "Breaker",
    "BreakerState",
    "CallReport",
    "CallState",
    "Deadline",
    "Failure",
    "Judge",
    "Policy",
    "Upstream",
]

# A book that answers by itself calls nothing outside and needs nothing but the deadline.
_HOMES = {
    "circuit_breaker": ("Breaker", "BreakerState"),
    "client": ("CallReport", "CallState", "Policy", "Upstream"),
    "deadline": ("Deadline",),
    "classify": ("Failure", "Judge"),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"bythebook.upstream.{home}"), name)
    raise AttributeError(f"module 'bythebook.upstream' has no attribute {name!r}")
