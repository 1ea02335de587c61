"""Sessions: stored conversations of a user. The session of another user is reported as not found."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from starlette.responses import JSONResponse

from bythebook.access import Scope
from bythebook.conversations import Conversation
from bythebook.errors import Forbidden, NotFound
from bythebook.serialization import to_json
from bythebook.server.auth import is_local
from bythebook.server.endpoints import ContextDep, StrictJsonRoute, UserIdDep, requires
from bythebook.server.rendering import add_html, wants_html
from bythebook.server.schemas import ERROR_RESPONSES, Messages, Session, SessionRequest, Sessions, Turns

router = APIRouter(route_class=StrictJsonRoute, tags=["sessions"], responses=ERROR_RESPONSES)

Limit = Annotated[int, Query(ge=1, le=1000, description="The maximum number of entries.")]
After = Annotated[str, Query(max_length=100, description="The id of the last entry that you have.")]


@router.post("/v1/sessions", response_model=Session, status_code=201)
@requires(Scope.ASK)
async def create_session(
    request: Request,
    context: ContextDep,
    user_id: UserIdDep,
    body: SessionRequest | None = None,  # noqa: ARG001 - validated to be empty
) -> Response:
    """Create a session. Send its id as the `session_id` of the questions that belong to it."""
    session = to_response(await context.book.conversation(user_id=user_id))
    location = f"{request.scope.get('root_path', '')}/v1/sessions/{session['id']}"
    return JSONResponse(session, 201, headers={"location": location})


@router.get("/v1/sessions", response_model=Sessions)
@requires(Scope.ASK)
async def list_sessions(
    request: Request, context: ContextDep, user_id: UserIdDep, limit: Limit = 20, after: After = ""
) -> Response:
    """The sessions of the caller, the latest first."""
    if not user_id and not is_local(request.scope):
        # Without keys and names, all callers are one user.
        raise Forbidden("without a key, sessions are listed only for a reader that is named with X-Reader.")
    found = await (await context.book.conversations()).latest(user_id=user_id, limit=limit + 1, after=after)
    return _page("sessions", to_json(found), limit)


@router.get("/v1/sessions/{session_id}", response_model=Session)
@requires(Scope.ASK)
async def read_session(session_id: str, context: ContextDep, user_id: UserIdDep) -> Response:
    """The state of a session."""
    return JSONResponse(to_response(await context.book.conversation(session_id, user_id=user_id)))


@router.get("/v1/sessions/{session_id}/messages", response_model=Messages)
@requires(Scope.ASK)
async def read_messages(
    session_id: str,
    request: Request,
    context: ContextDep,
    user_id: UserIdDep,
    limit: Limit = 1000,
    after: After = "",
) -> Response:
    """The messages since the session was last reset, oldest first."""
    session = await context.book.conversation(session_id, user_id=user_id)
    # The system message contains the instructions of the operator.
    messages = _skip([to_json(message) for message in session.messages if message.role != "system"], after)
    if wants_html(request):
        messages = [add_html(message, text="content") for message in messages]
    return _page("messages", messages, limit)


@router.get("/v1/sessions/{session_id}/turns", response_model=Turns)
@requires(Scope.ASK)
async def read_turns(
    session_id: str, context: ContextDep, user_id: UserIdDep, limit: Limit = 100, after: After = ""
) -> Response:
    """The questions of a session with their results, oldest first, including failed ones and those before a reset."""
    turns = await (await context.book.conversations()).turns(session_id, user_id=user_id)
    return _page("turns", _skip([to_json(turn) for turn in turns], after), limit)


@router.post("/v1/sessions/{session_id}/reset", response_model=Session)
@requires(Scope.ASK)
async def reset_session(session_id: str, context: ContextDep, user_id: UserIdDep) -> Response:
    """Clear the history of a session. Its id stays the same."""
    await (await context.book.conversations()).reset(session_id, user_id=user_id)
    return JSONResponse(to_response(await context.book.conversation(session_id, user_id=user_id)))


@router.delete("/v1/sessions/{session_id}", status_code=204)
@requires(Scope.ASK)
async def delete_session(session_id: str, context: ContextDep, user_id: UserIdDep) -> Response:
    """Delete a session with all its messages."""
    await (await context.book.conversations()).delete(session_id, user_id=user_id)
    return Response(status_code=204)


def to_response(conversation: Conversation) -> dict[str, Any]:
    """The state of a session as JSON."""
    return {name: to_json(getattr(conversation, name)) for name in Session.model_fields}


def _skip(entries: list[dict[str, Any]], after: str) -> list[dict[str, Any]]:
    """The entries that follow the one with this id."""
    place = next((place for place, entry in enumerate(entries, start=1) if entry["id"] == after), 0)
    if after and not place:
        raise NotFound("`after` is not the id of an entry of this list.")
    return entries[place:]


def _page(name: str, entries: Sequence[Any], limit: int) -> JSONResponse:
    return JSONResponse({name: entries[:limit], "has_more": len(entries) > limit})
