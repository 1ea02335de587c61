"""Upstream: the one way to call something outside this process.

A request has one absolute `Deadline`, handed down to every call it makes. An `Upstream` is one service outside: it
bounds each call by the deadline, owns every retry, and stops calling a service that keeps failing. The client
libraries' own retries are off.

What a foreign error means is decided at the adapter's seam by a `Judge`; `bythebook.upstream.openai` and
`bythebook.upstream.http` judge the errors of those clients. Nothing here imports a client library.
"""

from bythebook.upstream.breaker import Breaker, BreakerState
from bythebook.upstream.calls import CallReport, CallState, Upstream
from bythebook.upstream.deadline import Deadline
from bythebook.upstream.failures import Failure, Judge
from bythebook.upstream.policy import Policy

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
