"""How often each caller has come, counted in the database, so that several workers and servers count together.

A window starts with a caller's first request and ends after the limit's time, whatever happens in it. Counting is one
statement, which the database does for one caller at a time. Whoever is refused is refused until the window ends;
that is remembered here, so a flood costs the database nothing.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, case, delete, select, update
from sqlalchemy.dialects import postgresql, sqlite

from bythebook.database.schema import Clock, rates
from bythebook.errors import RateLimited

if TYPE_CHECKING:
    from collections.abc import Collection

    from sqlalchemy import Connection

    from bythebook.access import Limit
    from bythebook.database.engine import Database

CLEAN_EVERY_SECONDS = 60.0
MOST_REFUSED = 10_000
"""How many refused callers are remembered at once."""

_NOW = Clock()
_OVER = rates.c.until <= _NOW
_MOST = bindparam("most", type_=rates.c.taken.type)


def _take(insert: Any) -> Any:
    """Count one more, or start afresh. Past the limit counting stops one above it, which says refused."""
    more = case((rates.c.taken <= _MOST, rates.c.taken + 1), else_=rates.c.taken)
    first = insert(rates).values(subject=bindparam("this"), until=_NOW + bindparam("seconds"), taken=1)
    again = {
        "taken": case((_OVER, 1), else_=more),
        "until": case((_OVER, first.excluded.until), else_=rates.c.until),
    }
    counted = first.on_conflict_do_update(index_elements=[rates.c.subject], set_=again)
    return counted.returning(rates.c.taken, rates.c.until, (rates.c.until - _NOW).label("left"))


_TAKE = {"sqlite": _take(sqlite.insert), "postgresql": _take(postgresql.insert)}
_GIVE_BACK = (
    update(rates)
    # The same window still: what a new one has taken is not this.
    .where(rates.c.subject == bindparam("this"), rates.c.until == bindparam("window"), rates.c.taken > 0)
    .values(taken=case((rates.c.taken > _MOST, _MOST), else_=rates.c.taken) - 1)
)
_CLEAN = delete(rates).where(_OVER)
_TAKEN = select(rates.c.subject, rates.c.taken).where(rates.c.subject.in_(bindparam("these", expanding=True)), ~_OVER)


@dataclass(frozen=True, slots=True)
class Taken:
    """One of those a limit allows, to be given back if it was not used."""

    subject: str
    limit: Limit
    until: float


class Rates:
    """Counts against limits."""

    def __init__(self, database: Database, *, clean_every: float = CLEAN_EVERY_SECONDS) -> None:
        self._database = database
        self._refused: dict[str, float] = {}
        self._clean_every = clean_every
        self._cleaned = time.monotonic()

    async def hit(self, subject: str, limit: Limit) -> None:
        """Count a request. Raises RateLimited, with the seconds to wait, when it is one too many."""
        left = self._refused.get(subject, 0.0) - time.monotonic()
        if left <= 0:
            row = await self._database.write(lambda connection: self._count(connection, subject, limit))
            if row.taken <= limit.most:
                return
            left = row.left
            self._remember(subject, left)
        raise _one_too_many(limit, left)

    async def take(self, subject: str, limit: Limit) -> Taken:
        """Count what may be given back. Raises RateLimited when all is taken, which may change at any time."""
        row = await self._database.write(lambda connection: self._count(connection, subject, limit))
        if row.taken > limit.most:
            raise _one_too_many(limit, row.left)
        return Taken(subject, limit, row.until)

    async def give_back(self, taken: Taken) -> None:
        """Count it no longer."""
        given = {"this": taken.subject, "window": taken.until, "most": taken.limit.most}
        await self._database.write(lambda connection: connection.execute(_GIVE_BACK, given))

    async def taken(self, subjects: Collection[str]) -> dict[str, int]:
        """How much each of these has taken in its window; nothing of those who have taken nothing."""
        given = {"these": list(subjects)}
        rows = await self._database.read(lambda connection: connection.execute(_TAKEN, given).all())
        return {row.subject: row.taken for row in rows}

    def _count(self, connection: Connection, subject: str, limit: Limit) -> Any:
        if time.monotonic() - self._cleaned >= self._clean_every:
            self._cleaned = time.monotonic()
            connection.execute(_CLEAN)
        given = {"this": subject, "most": limit.most, "seconds": limit.seconds}
        return connection.execute(_TAKE[connection.dialect.name], given).one()

    def _remember(self, subject: str, seconds: float) -> None:
        now = time.monotonic()
        if len(self._refused) >= MOST_REFUSED:
            self._refused = {each: until for each, until in self._refused.items() if until > now}
        if len(self._refused) < MOST_REFUSED:
            self._refused[subject] = now + seconds


def _one_too_many(limit: Limit, left: float) -> RateLimited:
    # Whole seconds, so that the answer and its Retry-After header say the same.
    wait = max(1, math.ceil(left))
    complaint = f"more than {limit.most} requests in {limit.seconds:g} seconds. Wait {wait} seconds."
    return RateLimited(complaint, retry_after=wait)
