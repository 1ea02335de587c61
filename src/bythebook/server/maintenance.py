"""Sweeping: what nobody came back for is forgotten, at the start and then every hour.

Readiness: whether this process could answer a question and keep the answer. It looks at most once a second.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NoReturn

from sqlalchemy import text

from bythebook.access.idempotency import Repeats
from bythebook.errors import BookError, Unavailable
from bythebook.telemetry import log

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from bythebook.book import Book


EVERY_SECONDS = 3600.0


async def keep_sweeping(book: Book, *, session_days: float) -> NoReturn:
    """Sweep for as long as the server runs. A database that is away now is swept the next time."""
    while True:
        try:
            await sweep(book, session_days=session_days)
        except BookError as error:
            log("not_swept", error=error.code)
        await asyncio.sleep(EVERY_SECONDS)


async def sweep(book: Book, *, session_days: float) -> int:
    """Forget answers kept for a repeated request, and sessions idle for so many days. Says how many sessions."""
    await Repeats(await book.database()).expire()
    if not session_days:
        return 0
    return await (await book.conversations()).expire(datetime.now(UTC) - timedelta(days=session_days))


PATIENCE_SECONDS = 2.0
"""How long a look may take before it counts as failed."""

FRESH_SECONDS = 1.0
"""How long what was seen is taken to be still so. Anybody may ask, and looking is work."""


class Readiness:
    """Looks whether there is a book that can be searched and a database that can be written."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._look: asyncio.Task[None] | None = None
        self._until = 0.0

    async def check(self) -> None:
        """Raises Unavailable, with the reason, when a question could not be answered now."""
        look = self._newest()
        await asyncio.wait([look], timeout=PATIENCE_SECONDS)
        if not look.done():
            raise Unavailable("not ready: the book or the database does not answer.", retry_after=1)
        try:
            look.result()
        except BookError as error:
            raise Unavailable(f"not ready: {error}", retry_after=1) from error

    def _newest(self) -> asyncio.Task[None]:
        """The look that is going on or has just ended, or else a new one: never two at once."""
        now = asyncio.get_running_loop().time()
        if self._look is None or (self._look.done() and now >= self._until):
            self._until = now + FRESH_SECONDS
            self._look = asyncio.create_task(self._at_everything())
            self._look.add_done_callback(lambda look: look.cancelled() or look.exception())
        return self._look

    async def _at_everything(self) -> None:
        async with self._book.edition():
            pass
        await (await self._book.database()).write(_touch)


def _touch(connection: Connection) -> None:
    if connection.dialect.name == "sqlite":
        # A number nobody uses, written as it was: a full disk or a locked file refuses it as it would a turn.
        connection.execute(text("PRAGMA user_version = 0"))
    else:
        connection.execute(text("SELECT 1"))
