"""A question, answered whole or as it comes."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated

from fastapi import APIRouter, Header, Request, Response

from bythebook.access import Caller
from bythebook.access.idempotency import Repeat, Repeats
from bythebook.server import errors
from bythebook.server.auth import Purse
from bythebook.server.dependencies import Door, TheCaller, TheDoor
from bythebook.server.idempotency import checked_key, once
from bythebook.server.middleware import StrictRoute
from bythebook.server.rendering import Showing, wants_html
from bythebook.server.schemas import EVENTS, FAILURES, AgentRequest, AgentResponse
from bythebook.server.streams import Asked, EventStream, Stream, answered_before, happenings, last_event, plainly

router = APIRouter(route_class=StrictRoute, tags=["ask"])

IdempotencyKey = Annotated[str, Header(description="A request that comes again under the same key is answered once.")]
LastEventId = Annotated[str, Header(alias="Last-Event-ID", description="Take a stream up again after this event.")]


@router.post("/v1/ask", response_model=AgentResponse, responses=FAILURES | EVENTS)
async def ask(
    body: AgentRequest,
    request: Request,
    door: TheDoor,
    caller: TheCaller,
    idempotency_key: IdempotencyKey = "",
    last_event_id: LastEventId = "",
) -> Response:
    """Ask the book. The answer comes whole, or as events where `stream` or the Accept header asks for them."""
    fingerprint = hashlib.sha256(body.model_dump_json(exclude={"stream"}).encode()).hexdigest()
    asked = Asked(caller.user_id, fingerprint, errors.request_id(request.scope), checked_key(idempotency_key))
    stream, after = door.desk.resume(asked, last_event_id) or (await _begun(door, caller, asked, body), 0)
    tell = Showing().tell if wants_html(request) else plainly
    if body.stream or "text/event-stream" in request.headers.get("accept", ""):
        return EventStream(stream, after=after, heartbeat=door.settings.heartbeat_seconds, tell=tell)
    end = await last_event(stream, request.receive)
    if end.name == "error":
        return errors.failed(request.scope, json.loads(end.data))
    return Response(tell(end), media_type="application/json")


async def _begun(door: Door, caller: Caller, asked: Asked, body: AgentRequest) -> Stream:
    """The stream that answers: a new one, or the one that a request with the same key has begun."""
    question = body.noun()
    repeat = Repeat(asked.user_id, asked.key, asked.fingerprint, question.session_id)
    repeats = Repeats(await door.book.database()) if asked.key else None
    if repeats and (answer := await repeats.answer(repeat)) is not None:
        return answered_before(asked, answer)
    purse = await Purse.opened(await door.gate.budgets(), caller)
    if stream := door.desk.repeated(asked):
        await purse.refund()
        return stream
    work = happenings(door.book.stream(question, user_id=asked.user_id), sources=body.include_sources)
    return door.desk.begin(asked, purse.spent_on(once(repeats, repeat, work) if repeats else work))
