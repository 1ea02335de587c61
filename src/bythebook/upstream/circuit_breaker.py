"""A circuit breaker: after repeated failures, calls to a service are refused until one probe succeeds."""

from dataclasses import dataclass
from enum import StrEnum

from bythebook.errors import Unavailable
from bythebook.telemetry import log, metric
from bythebook.upstream.deadline import now

# A caller that is refused during a probe may retry after this time: the duration of a probe is unknown.
_PROBE_SECONDS = 1.0


class BreakerState(StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


_SEVERITY = {BreakerState.CLOSED: 0, BreakerState.HALF_OPEN: 1, BreakerState.OPEN: 2}


@dataclass(frozen=True, slots=True)
class CallPermit:
    """Permission for one call. Report its outcome exactly once: success, failure or release."""

    era: int
    probe: bool


class CircuitBreaker:
    """Opens after `opens_after` failures in a row, refuses all calls for `rest` seconds, then admits one probe.

    State changes happen between two awaits, so exactly one of any number of concurrent calls is the probe. The outcome
    of a call that was admitted before the last state change is ignored: it says nothing about the service now.
    """

    def __init__(self, name: str, *, opens_after: int = 5, rest: float = 10.0) -> None:
        self._name = name
        self._opens_after = opens_after
        self._rest = rest
        self._era = 0
        self._failures = 0
        self._open_until: float | None = None
        self._probing = False

    @property
    def state(self) -> BreakerState:
        if self._open_until is None:
            return BreakerState.CLOSED
        return BreakerState.OPEN if now() < self._open_until else BreakerState.HALF_OPEN

    def admit(self) -> CallPermit:
        """Return a permit, or raise `Unavailable` with the seconds after which to retry."""
        if self._open_until is None:
            return CallPermit(self._era, probe=False)
        remaining = self._open_until - now()
        if remaining > 0 or self._probing:
            raise Unavailable(
                f"{self._name} keeps failing and is not being called",
                retry_after=remaining if remaining > 0 else _PROBE_SECONDS,
            )
        self._probing = True
        self._report(BreakerState.HALF_OPEN)
        return CallPermit(self._era, probe=True)

    def record_success(self, permit: CallPermit) -> None:
        if permit.era != self._era:
            return
        self._failures = 0
        if permit.probe:
            self._change_state(open_until=None)

    def record_failure(self, permit: CallPermit) -> None:
        if permit.era != self._era:
            return
        self._failures += 1
        if permit.probe or self._failures >= self._opens_after:
            self._change_state(open_until=now() + self._rest)

    def release(self, permit: CallPermit) -> None:
        """Give back the permit of a call that was cancelled or refused by us: the next call may be the probe."""
        if permit.era == self._era and permit.probe:
            self._probing = False

    def _change_state(self, *, open_until: float | None) -> None:
        self._era += 1
        self._failures = 0
        self._probing = False
        self._open_until = open_until
        self._report(BreakerState.CLOSED if open_until is None else BreakerState.OPEN)

    def _report(self, state: BreakerState) -> None:
        log("circuit_breaker_changed", upstream=self._name, state=state)
        metric("circuit_breaker", _SEVERITY[state], upstream=self._name)
