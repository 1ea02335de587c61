"""A fixed-window rate limiter with its counters in the database, so that several workers and servers share them.

A window starts with the first request of a subject and has a fixed length. Each request is counted by one statement,
which the database serialises by subject. A subject over its limit is rejected until its window ends; this is cached in
the process, so a flood of requests does not reach the database.
"""

import math
import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, case, delete, select, update
from sqlalchemy.dialects import postgresql, sqlite

from bythebook.access import RateLimit
from bythebook.database.engine import Database
from bythebook.database.schema import Clock, rates
from bythebook.errors import RateLimited

CLEANUP_INTERVAL_SECONDS = 60.0
MAX_REFUSED_SUBJECTS = 10_000
"""How many rejected subjects are cached."""

_NOW = Clock()
_EXPIRED = rates.c.until <= _NOW
_MAX_REQUESTS = bindparam("most", type_=rates.c.taken.type)


def _count_statement(insert: Any) -> Any:
    """The statement that counts a request or starts a window. The counter stops at one above the limit: rejected."""
    more = case((rates.c.taken <= _MAX_REQUESTS, rates.c.taken + 1), else_=rates.c.taken)
    first = insert(rates).values(subject=bindparam("this"), until=_NOW + bindparam("seconds"), taken=1)
    again = {
        "taken": case((_EXPIRED, 1), else_=more),
        "until": case((_EXPIRED, first.excluded.until), else_=rates.c.until),
    }
    counted = first.on_conflict_do_update(index_elements=[rates.c.subject], set_=again)
    return counted.returning(rates.c.taken, rates.c.until, (rates.c.until - _NOW).label("left"))


_COUNT = {"sqlite": _count_statement(sqlite.insert), "postgresql": _count_statement(postgresql.insert)}
_RELEASE = (
    update(rates)
    # Only in the same window: a later window has not counted this request.
    .where(rates.c.subject == bindparam("this"), rates.c.until == bindparam("window"), rates.c.taken > 0)
    .values(taken=case((rates.c.taken > _MAX_REQUESTS, _MAX_REQUESTS), else_=rates.c.taken) - 1)
)
_CLEAN = delete(rates).where(_EXPIRED)
_USAGE = select(rates.c.subject, rates.c.taken).where(
    rates.c.subject.in_(bindparam("these", expanding=True)), ~_EXPIRED
)


@dataclass(frozen=True, slots=True)
class Reservation:
    """One counted request that can be released if it was not used."""

    subject: str
    limit: RateLimit
    until: float


class RateLimiter:
    """Counts the requests of subjects, such as a key or an address, against limits."""

    def __init__(self, database: Database, *, cleanup_interval: float = CLEANUP_INTERVAL_SECONDS) -> None:
        self._database = database
        self._refused: dict[str, float] = {}
        self._cleanup_interval = cleanup_interval
        self._last_cleanup = time.monotonic()

    async def hit(self, subject: str, limit: RateLimit) -> tuple[int, float]:
        """Count a request. Returns how many more are allowed, and the seconds until the window ends.

        Raises RateLimited, with the seconds to wait, if it is over the limit.
        """
        left = self._refused.get(subject, 0.0) - time.monotonic()
        if left <= 0:
            row = await self._database.write(lambda connection: self._count(connection, subject, limit))
            if row.taken <= limit.max_requests:
                return limit.max_requests - row.taken, row.left
            left = row.left
            self._cache_rejection(subject, left)
        raise _limit_error(limit, left)

    async def reserve(self, subject: str, limit: RateLimit) -> Reservation:
        """Count a request that may be released later. Raises RateLimited if it is over the limit.

        A rejection is not cached, because a release can free capacity at any time.
        """
        row = await self._database.write(lambda connection: self._count(connection, subject, limit))
        if row.taken > limit.max_requests:
            raise _limit_error(limit, row.left)
        return Reservation(subject, limit, row.until)

    async def release(self, reservation: Reservation) -> None:
        """Subtract a reserved request."""
        limit = reservation.limit.max_requests
        parameters = {"this": reservation.subject, "window": reservation.until, "most": limit}
        await self._database.write(lambda connection: connection.execute(_RELEASE, parameters))

    async def usage(self, subjects: Collection[str]) -> dict[str, int]:
        """The number of requests of each subject in its current window, without those that have none."""
        parameters = {"these": list(subjects)}
        rows = await self._database.read(lambda connection: connection.execute(_USAGE, parameters).all())
        return {row.subject: row.taken for row in rows}

    def _count(self, connection: Connection, subject: str, limit: RateLimit) -> Any:
        if time.monotonic() - self._last_cleanup >= self._cleanup_interval:
            self._last_cleanup = time.monotonic()
            connection.execute(_CLEAN)
        parameters = {"this": subject, "most": limit.max_requests, "seconds": limit.seconds}
        return connection.execute(_COUNT[connection.dialect.name], parameters).one()

    def _cache_rejection(self, subject: str, seconds: float) -> None:
        now = time.monotonic()
        if len(self._refused) >= MAX_REFUSED_SUBJECTS:
            self._refused = {each: until for each, until in self._refused.items() if until > now}
        if len(self._refused) < MAX_REFUSED_SUBJECTS:
            self._refused[subject] = now + seconds


def _limit_error(limit: RateLimit, left: float) -> RateLimited:
    # Whole seconds, so that the message and the Retry-After header agree.
    wait = max(1, math.ceil(left))
    message = f"more than {limit.max_requests} requests in {limit.seconds:g} seconds. Wait {wait} seconds."
    return RateLimited(message, retry_after=wait)
