"""The route of a question. The answer is sent as a whole or as a stream of events."""

import hashlib
import json
from typing import Annotated

from fastapi import APIRouter, Header, Request, Response

from bythebook.access import Caller, Scope
from bythebook.access.idempotency import IdempotencyLock, IdempotencyStore, IdempotentRequest, validate_key
from bythebook.server import errors, streams
from bythebook.server.endpoints import AppContext, CallerDep, ContextDep, StrictJsonRoute, requires
from bythebook.server.rendering import HtmlEvents, wants_html
from bythebook.server.schemas import ERROR_RESPONSES, EVENT_STREAM_RESPONSE, AgentResponse, AskRequest

router = APIRouter(route_class=StrictJsonRoute, tags=["ask"])

IdempotencyKey = Annotated[str, Header(description="Requests with the same key are answered once.")]
LastEventId = Annotated[str, Header(alias="Last-Event-ID", description="Resume a stream after this event.")]


@router.post("/v1/ask", response_model=AgentResponse, responses=ERROR_RESPONSES | EVENT_STREAM_RESPONSE)
@requires(Scope.ASK, admission=True)
async def ask(
    body: AskRequest,
    request: Request,
    context: ContextDep,
    caller: CallerDep,
    idempotency_key: IdempotencyKey = "",
    last_event_id: LastEventId = "",
) -> Response:
    """Ask the book. The answer comes as a whole, or as events if `stream` or the Accept header asks for them."""
    fingerprint = hashlib.sha256(body.model_dump_json(exclude={"stream"}).encode()).hexdigest()
    key = streams.StreamKey(
        caller.user_id, fingerprint, errors.get_request_id(request.scope), validate_key(idempotency_key)
    )
    resumed = context.admission.resume(key, last_event_id)
    stream, after = resumed or (await _start_stream(context, caller, key, body), 0)
    encode = HtmlEvents().tell if wants_html(request) else streams.event_data
    if body.stream or "text/event-stream" in request.headers.get("accept", ""):
        heartbeat = context.settings.heartbeat_seconds
        return streams.EventStreamResponse(stream, after=after, heartbeat=heartbeat, encode=encode)
    last = await streams.wait_for_last_event(stream, request.receive)
    if last.name == "error":
        return errors.make_error_response(request.scope, json.loads(last.data))
    return Response(encode(last), media_type="application/json")


async def _start_stream(
    context: AppContext, caller: Caller, key: streams.StreamKey, body: AskRequest
) -> streams.AnswerStream:
    """The stream of the answer: a new one, or that of a running or answered request with the same key."""
    question = body.to_domain()
    lock = None
    if key.idempotency_key:
        store = IdempotencyStore(await context.book.database())
        keyed = IdempotentRequest(key.user_id, key.idempotency_key, key.fingerprint, question.session_id)
        if (answer := await store.find_answer(keyed)) is not None:
            return streams.completed_stream(key, answer)
        lock = IdempotencyLock(store, keyed)
    refund = await context.authenticator.charge(caller)
    if running := context.admission.find_running(key):
        await refund()
        return running
    events = context.book.stream(question, user_id=key.user_id)
    include_sources = body.include_sources
    return context.admission.start(
        key,
        lambda stream: streams.run_question(stream, events, refund=refund, include_sources=include_sources, lock=lock),
    )
