"""A circuit breaker: a service that keeps failing is left alone for a while, then asked once."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from bythebook.errors import Unavailable
from bythebook.telemetry import figure, log
from bythebook.upstream.deadline import now

# How long to wait for the outcome of somebody else's probe, as nobody can know it.
_UNTIL_THE_PROBE_IS_BACK = 1.0


class BreakerState(StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


_SEVERITY = {BreakerState.CLOSED: 0, BreakerState.HALF_OPEN: 1, BreakerState.OPEN: 2}


@dataclass(frozen=True, slots=True)
class Admission:
    """Leave to make one call, to be settled exactly once: succeeded, failed or neither."""

    era: int
    probe: bool


class Breaker:
    """Opens on the `opens_after`-th failure in a row, refuses everything for `rest` seconds, then lets one call try.

    All of it happens between two awaits, so that of any number of concurrent calls exactly one is the probe. A call
    that was admitted before the breaker last changed says nothing about the service now, and its outcome is ignored.
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

    def admit(self) -> Admission:
        """Leave to call, or `Unavailable` with the seconds after which to ask again."""
        if self._open_until is None:
            return Admission(self._era, probe=False)
        closed_for = self._open_until - now()
        if closed_for > 0 or self._probing:
            raise Unavailable(
                f"{self._name} keeps failing and is not being called",
                retry_after=closed_for if closed_for > 0 else _UNTIL_THE_PROBE_IS_BACK,
            )
        self._probing = True
        self._tell(BreakerState.HALF_OPEN)
        return Admission(self._era, probe=True)

    def succeeded(self, admission: Admission) -> None:
        if admission.era != self._era:
            return
        self._failures = 0
        if admission.probe:
            self._turn(open_until=None)

    def failed(self, admission: Admission) -> None:
        if admission.era != self._era:
            return
        self._failures += 1
        if admission.probe or self._failures >= self._opens_after:
            self._turn(open_until=now() + self._rest)

    def neither(self, admission: Admission) -> None:
        """The call was cancelled, or refused for a reason of ours: the next one may be the probe."""
        if admission.era == self._era and admission.probe:
            self._probing = False

    def _turn(self, *, open_until: float | None) -> None:
        self._era += 1
        self._failures = 0
        self._probing = False
        self._open_until = open_until
        self._tell(BreakerState.CLOSED if open_until is None else BreakerState.OPEN)

    def _tell(self, state: BreakerState) -> None:
        log("breaker", upstream=self._name, state=state)
        figure("breaker", _SEVERITY[state], upstream=self._name)
