"""Calls to services outside this process.

A request has one absolute `Deadline`, which is passed to every call. An `Upstream` is one service: it limits each call
by the deadline, makes all retries, and has a circuit breaker. The retries of the client libraries are off.

Each adapter translates foreign errors with an `ErrorClassifier`. Those for `openai` and `httpx` are in
`bythebook.upstream.openai` and `bythebook.upstream.classify`. Nothing here imports a client library.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bythebook.upstream.circuit_breaker import BreakerState, CircuitBreaker
    from bythebook.upstream.classify import ClassifiedError, ErrorClassifier
    from bythebook.upstream.client import CallReport, CallState, RetryPolicy, Upstream
    from bythebook.upstream.deadline import Deadline

__all__ = [
    "BreakerState",
    "CallReport",
    "CallState",
    "CircuitBreaker",
    "ClassifiedError",
    "Deadline",
    "ErrorClassifier",
    "RetryPolicy",
    "Upstream",
]

# Extractive answers call no service; they import only the deadline.
_HOMES = {
    "circuit_breaker": ("CircuitBreaker", "BreakerState"),
    "client": ("CallReport", "CallState", "RetryPolicy", "Upstream"),
    "deadline": ("Deadline",),
    "classify": ("ClassifiedError", "ErrorClassifier"),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"bythebook.upstream.{home}"), name)
    raise AttributeError(f"module 'bythebook.upstream' has no attribute {name!r}")
