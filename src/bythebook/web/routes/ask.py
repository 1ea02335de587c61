"""A question, answered whole or as it comes."""

from __future__ import annotations

import hashlib
from typing import Any

from fastapi import APIRouter, Request, Response

from bythebook.web import failures
from bythebook.web.bodies import StrictRoute
from bythebook.web.door import TheDoor, UserId
from bythebook.web.events import EventStream, last_event
from bythebook.web.wire import FAILURES, AgentRequest, AgentResponse

router = APIRouter(route_class=StrictRoute, tags=["ask"])

_EVENTS: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}}


@router.post("/v1/ask", response_model=AgentResponse, responses=FAILURES | _EVENTS)
async def ask(asked: AgentRequest, request: Request, door: TheDoor, user_id: UserId) -> Response:
    """Ask the book. The answer comes whole, or as events when `stream` is true or the client accepts only them."""
    question = asked.noun()
    stream = door.desk.answer(
        door.book.stream(question, user_id=user_id),
        user_id=user_id,
        asked=hashlib.sha256(asked.model_dump_json().encode()).hexdigest(),
        request_id=failures.request_id(request.scope),
        sources=asked.include_sources,
    )
    if asked.stream or request.headers.get("accept", "").startswith("text/event-stream"):
        return EventStream(stream, heartbeat=door.settings.heartbeat_seconds)
    end = await last_event(stream, request.receive)
    return Response(end.data, end.status, media_type="application/json")
