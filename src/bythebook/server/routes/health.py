"""Whether this process runs, and whether it can answer. Neither costs anything anywhere.

The figures of this server, for Prometheus.
"""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter, Request, Response

from bythebook.errors import NotFound, Unavailable
from bythebook.server.dependencies import TheDoor
from bythebook.server.maintenance import Readiness
from bythebook.server.schemas import FAILURES, Health
from bythebook.telemetry import prometheus

router = APIRouter(tags=["health"])
metrics_router = APIRouter(tags=["operating"])


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


_TEXT: dict[int | str, dict[str, Any]] = {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}}


@metrics_router.get("/metrics", response_class=Response, responses=FAILURES | _TEXT)
async def figures() -> Response:
    """How many requests, questions and calls there were, how they ended and how long they took."""
    kept = prometheus.installed()
    if kept is None:
        raise NotFound("this server keeps no figures.")
    # The files of many workers take a while to read; nobody's answer waits for that.
    text, kind = await asyncio.to_thread(kept.render)
    return Response(text, media_type=kind)
