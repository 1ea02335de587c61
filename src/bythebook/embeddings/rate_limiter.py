"""Pacing: a service that counts our calls is called as often as it bears, and no oftener."""

from __future__ import annotations

import asyncio
from collections import deque

from bythebook.errors import RateLimited
from bythebook.upstream.deadline import now

MINUTE = 60.0
_HICCUP = 1
"""So many refusals in a row are no limit yet."""


class Pace:
    """When the next call may be made.

    What was set for a minute is kept to. Where a service refuses calls, all of them rest for as long as it asks.
    Where it does not say, they rest ever longer; and if it then still refuses, what it took in the last minute is
    taken for its limit, which is tried a quarter higher after every minute without a refusal.
    """

    def __init__(self, name: str, *, per_minute: int = 0) -> None:
        self._name = name
        self._set = per_minute
        self._learned = 0
        self._taken: deque[float] = deque()
        """When the calls of the last minute were made that were not refused."""
        self._rest_until = 0.0
        self._refusals = 0
        self._changed_at = 0.0

    async def turn(self, *, within: float) -> None:
        """Wait for leave to call. Raises RateLimited at once where that takes longer than `within` seconds."""
        due = now() + within
        while (wait := self._wait()) > 0:
            if now() + wait > due:
                raise RateLimited(f"{self._name} is called as often as it allows", retry_after=wait)
            await asyncio.sleep(wait)
        self._taken.append(now())

    def accepted(self) -> None:
        """A call was answered."""
        self._refusals = 0
        if self._learned and now() - self._changed_at >= MINUTE:
            self._learned += max(1, self._learned // 4)
            self._changed_at = now()

    def refused(self, asked: float | None) -> float:
        """A call was refused for coming too soon, with the seconds to wait if it said. Returns how long all rest."""
        if self._taken:
            self._taken.pop()
        # Several calls that were under way are refused together: that is one refusal.
        if now() >= self._rest_until:
            self._refusals += 1
            if self._refusals > _HICCUP and asked is None:
                self._learn()
            rest = min(2.0 ** (self._refusals - 1), MINUTE) if asked is None else asked
            self._rest_until = now() + rest
        elif asked is not None:
            self._rest_until = max(self._rest_until, now() + asked)
        return self._rest_until - now()

    def _learn(self) -> None:
        self._forget()
        if self._taken:
            self._learned = len(self._taken)
            self._changed_at = now()

    def _wait(self) -> float:
        """The seconds until a call may be made, 0 for at once."""
        self._forget()
        limits = [limit for limit in (self._set, self._learned) if limit]
        room = self._taken[-min(limits)] + MINUTE if limits and len(self._taken) >= min(limits) else 0.0
        return max(0.0, max(room, self._rest_until) - now())

    def _forget(self) -> None:
        while self._taken and self._taken[0] <= now() - MINUTE:
            self._taken.popleft()
