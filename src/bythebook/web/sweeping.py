"""Sweeping: what nobody came back for is forgotten, at the start and then every hour."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NoReturn

from bythebook.conversations.repeats import Repeats
from bythebook.errors import BookError
from bythebook.observe import log

if TYPE_CHECKING:
    from bythebook.assemble import Book

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
