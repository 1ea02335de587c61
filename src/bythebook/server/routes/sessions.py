"""Sessions: stored conversations of a user. The session of another user is reported as not found."""

from fastapi import APIRouter, Request, Response
from starlette.responses import JSONResponse

from bythebook.access import Scope
from bythebook.conversations import Conversation
from bythebook.serialization import to_json
from bythebook.server.endpoints import ContextDep, StrictJsonRoute, UserIdDep, requires
from bythebook.server.rendering import add_html, wants_html
from bythebook.server.schemas import ERROR_RESPONSES, Messages, Session, SessionRequest

router = APIRouter(route_class=StrictJsonRoute, tags=["sessions"], responses=ERROR_RESPONSES)


@router.post("/v1/sessions", response_model=Session, status_code=201)
@requires(Scope.ASK)
async def create_session(
    request: Request,
    context: ContextDep,
    user_id: UserIdDep,
    body: SessionRequest | None = None,  # noqa: ARG001 - validated to be empty
) -> Response:
    """Create a session. Send its id as the `session_id` of the questions that belong to it."""
    session = await context.book.conversation(user_id=user_id)
    location = f"{request.scope.get('root_path', '')}/v1/sessions/{session.id}"
    return JSONResponse(to_response(session), 201, headers={"location": location})


@router.get("/v1/sessions/{session_id}", response_model=Session)
@requires(Scope.ASK)
async def read_session(session_id: str, context: ContextDep, user_id: UserIdDep) -> Response:
    """The state of a session."""
    return JSONResponse(to_response(await context.book.conversation(session_id, user_id=user_id)))


@router.get("/v1/sessions/{session_id}/messages", response_model=Messages)
@requires(Scope.ASK)
async def read_messages(session_id: str, request: Request, context: ContextDep, user_id: UserIdDep) -> Response:
    """The messages since the session was last reset, oldest first."""
    session = await context.book.conversation(session_id, user_id=user_id)
    # The system message contains the instructions of the operator.
    messages = [to_json(message) for message in session.messages if message.role != "system"]
    if wants_html(request):
        messages = [add_html(message, text="content") for message in messages]
    return JSONResponse({"session_id": session.id, "messages": messages})


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


def to_response(conversation: Conversation) -> dict[str, object]:
    """The state of a session as JSON."""
    return {name: to_json(getattr(conversation, name)) for name in Session.model_fields}
