"""Maintenance: the hourly deletion of expired records, and the readiness probe."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import NoReturn

from sqlalchemy import Connection, text

from bythebook.access.idempotency import IdempotencyStore
from bythebook.book import Book
from bythebook.errors import BookError, Unavailable
from bythebook.telemetry import log

CLEANUP_INTERVAL_SECONDS = 3600.0


async def run_cleanup_loop(book: Book, *, session_days: float) -> NoReturn:
    """Delete expired records now and then every hour. If the database is unavailable, try again at the next turn."""
    while True:
        try:
            await delete_stale_rows(book, session_days=session_days)
        except BookError as error:
            log("cleanup_failed", error=error.code)
        await asyncio.sleep(CLEANUP_INTERVAL_SECONDS)


async def delete_stale_rows(book: Book, *, session_days: float) -> int:
    """Delete expired idempotency keys and the sessions idle for `session_days` (0: none). Returns the session count."""
    await IdempotencyStore(await book.database()).delete_stale_rows()
    if not session_days:
        return 0
    return await (await book.conversations()).expire(datetime.now(UTC) - timedelta(days=session_days))


PROBE_TIMEOUT_SECONDS = 2.0
"""How long a check may take before it counts as failed."""

PROBE_TTL_SECONDS = 1.0
"""How long a result is reused. The probe is public, so its cost must not depend on how often it is called."""


class ReadinessProbe:
    """Checks that there is an index to search and that the database is writable."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._check: asyncio.Task[None] | None = None
        self._valid_until = 0.0

    async def check(self) -> None:
        """Raise Unavailable, with the reason, if a question cannot be answered now."""
        check = self._current_check()
        await asyncio.wait([check], timeout=PROBE_TIMEOUT_SECONDS)
        if not check.done():
            raise Unavailable("not ready: the book or the database does not answer.", retry_after=1)
        try:
            check.result()
        except BookError as error:
            raise Unavailable(f"not ready: {error}", retry_after=1) from error

    def _current_check(self) -> asyncio.Task[None]:
        """The check that is running or recently finished, or else a new one: there are never two at once."""
        now = asyncio.get_running_loop().time()
        if self._check is None or (self._check.done() and now >= self._valid_until):
            self._valid_until = now + PROBE_TTL_SECONDS
            self._check = asyncio.create_task(self._run_checks())
            self._check.add_done_callback(lambda check: check.cancelled() or check.exception())
        return self._check

    async def _run_checks(self) -> None:
        async with self._book.snapshot():
            pass
        await (await self._book.database()).write(_check_writable)


def _check_writable(connection: Connection) -> None:
    if connection.dialect.name == "sqlite":
        # Writes an unused number unchanged: fails on a full disk or a locked file, as storing a turn would.
        connection.execute(text("PRAGMA user_version = 0"))
    else:
        connection.execute(text("SELECT 1"))
