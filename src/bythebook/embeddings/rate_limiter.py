"""A client-side rate limiter that adapts to a provider's 429 responses."""

import asyncio
from collections import deque

from bythebook.errors import RateLimited
from bythebook.upstream.deadline import now

MINUTE = 60.0
_TOLERATED_REFUSALS = 1
"""This many consecutive refusals are not taken for a limit yet."""


class AdaptiveRateLimiter:
    """Delays calls to stay under a provider's rate limit.

    A configured limit per minute is enforced. When the provider refuses a call, all calls pause for the time it asks
    for. Without such a time they pause with exponential backoff; if the provider then refuses again, the calls that
    it accepted in the last minute become the limit. That limit is raised by a quarter after each minute without a
    refusal.
    """

    def __init__(self, name: str, *, per_minute: int = 0) -> None:
        self._name = name
        self._configured = per_minute
        self._learned = 0
        self._accepted: deque[float] = deque()
        """The times of the calls of the last minute that were not refused."""
        self._paused_until = 0.0
        self._refusals = 0
        self._changed_at = 0.0

    async def acquire(self, *, within: float) -> None:
        """Wait until a call is allowed. Raises RateLimited at once if that takes longer than `within` seconds."""
        due = now() + within
        while (wait := self._wait_seconds()) > 0:
            if now() + wait > due:
                raise RateLimited(f"the rate limit of {self._name} is reached", retry_after=wait)
            await asyncio.sleep(wait)
        self._accepted.append(now())

    def record_success(self) -> None:
        self._refusals = 0
        if self._learned and now() - self._changed_at >= MINUTE:
            self._learned += max(1, self._learned // 4)
            self._changed_at = now()

    def record_refusal(self, retry_after: float | None) -> float:
        """Record a 429 response, with the seconds it asks for, if any. Returns the seconds that all calls pause."""
        if self._accepted:
            self._accepted.pop()
        # Calls in flight together are refused together: that counts as one refusal.
        if now() >= self._paused_until:
            self._refusals += 1
            if self._refusals > _TOLERATED_REFUSALS and retry_after is None:
                self._learn_limit()
            pause = min(2.0 ** (self._refusals - 1), MINUTE) if retry_after is None else retry_after
            self._paused_until = now() + pause
        elif retry_after is not None:
            self._paused_until = max(self._paused_until, now() + retry_after)
        return self._paused_until - now()

    def _learn_limit(self) -> None:
        self._drop_old_calls()
        if self._accepted:
            self._learned = len(self._accepted)
            self._changed_at = now()

    def _wait_seconds(self) -> float:
        """The seconds until the next call is allowed; 0 if it is allowed now."""
        self._drop_old_calls()
        limits = [limit for limit in (self._configured, self._learned) if limit]
        room = self._accepted[-min(limits)] + MINUTE if limits and len(self._accepted) >= min(limits) else 0.0
        return max(0.0, max(room, self._paused_until) - now())

    def _drop_old_calls(self) -> None:
        while self._accepted and self._accepted[0] <= now() - MINUTE:
            self._accepted.popleft()
