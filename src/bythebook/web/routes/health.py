"""Whether this process runs, and whether it can answer. Neither costs anything anywhere."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from fastapi import APIRouter
from sqlalchemy import text

from bythebook.errors import BookError, Unavailable
from bythebook.web.door import Door, TheDoor
from bythebook.web.wire import FAILURES, Health

if TYPE_CHECKING:
    from sqlalchemy import Connection

router = APIRouter(tags=["health"])

PATIENCE_SECONDS = 2.0


@router.get("/health/live", response_model=Health)
async def live() -> Health:
    """This process runs."""
    return Health(status="alive")


@router.get("/health/ready", response_model=Health, responses=FAILURES)
async def ready(door: TheDoor) -> Health:
    """This process can answer: it is not shutting down, there is a book, and the database can be reached."""
    if door.desk.closing:
        raise Unavailable("the server is shutting down.", retry_after=1)
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await _look(door)
    except BookError as error:
        raise Unavailable(f"not ready: {error}", retry_after=1) from error
    except TimeoutError as error:
        raise Unavailable("not ready: the book or the database does not answer.", retry_after=1) from error
    return Health(status="ready")


async def _look(door: Door) -> None:
    async with door.book.edition():
        pass
    await (await door.book.database()).read(_touch)


def _touch(connection: Connection) -> None:
    connection.execute(text("SELECT 1"))
