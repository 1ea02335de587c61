"""Whether this process runs, and whether it can answer. Neither costs anything anywhere."""

from __future__ import annotations

from fastapi import APIRouter, Request

from bythebook.errors import Unavailable
from bythebook.web.door import TheDoor
from bythebook.web.readiness import Readiness
from bythebook.web.wire import FAILURES, Health

router = APIRouter(tags=["health"])


@router.get("/health/live", response_model=Health)
async def live() -> Health:
    """This process runs."""
    return Health(status="alive")


@router.get("/health/ready", response_model=Health, responses=FAILURES)
async def ready(request: Request, door: TheDoor) -> Health:
    """This process can answer: it is not shutting down, there is a book, and the database can be written."""
    if door.desk.closing:
        raise Unavailable("the server is shutting down.", retry_after=1)
    state = request.app.state
    if not hasattr(state, "readiness"):
        state.readiness = Readiness(door.book)
    await state.readiness.check()
    return Health(status="ready")
