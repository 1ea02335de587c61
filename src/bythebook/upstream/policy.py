"""How patient we are with a service."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Policy:
    """How often a call is tried, how long it rests in between, and when a service is left alone."""

    attempts: int = 3
    patience: int = 0
    """How often a service may ask us to wait before that counts as an attempt. None where somebody is waiting."""
    first_wait: float = 0.25
    """The ceiling of the first wait. It doubles with every attempt; the wait is anything below it."""
    longest_wait: float = 4.0
    share: float = 0.5
    """An attempt with another behind it may use this share of the time left, so that a hang is not the end."""
    stall: float = 5.0
    """The seconds without a word after which a stream is given up, while it can still be begun again."""
    least: int = 300
    """A stream too slow to bring this much in its time is given up likewise: in characters, two sentences or three."""
    opens_after: int = 5
    """The number of calls failed in a row, each after all of its attempts, on which the circuit breaker opens."""
    rest: float = 10.0
    """The seconds an open circuit breaker waits before it lets one call try."""

    def wait(self, attempt: int, chance: float) -> float:
        """The seconds to wait after this attempt, `chance` being drawn evenly from 0 to 1."""
        return chance * min(self.longest_wait, self.first_wait * 2.0 ** (attempt - 1))
