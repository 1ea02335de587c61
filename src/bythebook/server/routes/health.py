"""Liveness, readiness and Prometheus metrics. No probe calls an outside service."""

import asyncio
from typing import Any

from fastapi import APIRouter, Request, Response

from bythebook.access import Scope
from bythebook.errors import NotFound, Unavailable
from bythebook.server.endpoints import ContextDep, public, requires
from bythebook.server.maintenance import ReadinessProbe
from bythebook.server.schemas import ERROR_RESPONSES, Health
from bythebook.telemetry import prometheus

router = APIRouter(tags=["health"])
metrics_router = APIRouter(tags=["operating"])


@router.get("/health/live", response_model=Health)
@public
async def live() -> Health:
    """Report that this process runs."""
    return Health(status="alive")


@router.get("/health", name="health", response_model=Health, responses=ERROR_RESPONSES)
@router.get("/health/ready", response_model=Health, responses=ERROR_RESPONSES)
@public
async def ready(request: Request, context: ContextDep) -> Health:
    """Report whether this process can answer: not shutting down, with an index and a writable database."""
    if context.admission.closing:
        raise Unavailable("the server is shutting down.", retry_after=1)
    state = request.app.state
    if not hasattr(state, "readiness"):
        state.readiness = ReadinessProbe(context.book)
    await state.readiness.check()
    return Health(status="ready")


_TEXT: dict[int | str, dict[str, Any]] = {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}}


@metrics_router.get("/metrics", response_class=Response, responses=ERROR_RESPONSES | _TEXT)
@requires(Scope.METRICS)
async def metrics() -> Response:
    """The metrics in the text format of Prometheus."""
    listener = prometheus.find_listener()
    if listener is None:
        raise NotFound("this server collects no metrics.")
    # Reading the files of many workers takes time and must not block the event loop.
    text, kind = await asyncio.to_thread(listener.render)
    return Response(text, media_type=kind)
