"""Sessions: conversations a reader can come back to. Another reader's is as absent as one that never was."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter, Request, Response
from starlette.responses import JSONResponse

from bythebook.serialization import as_json
from bythebook.server.dependencies import TheDoor, UserId
from bythebook.server.middleware import StrictRoute
from bythebook.server.rendering import shown, wants_html
from bythebook.server.schemas import FAILURES, Messages, Session, SessionRequest

if TYPE_CHECKING:
    from bythebook.conversations import Conversation

router = APIRouter(route_class=StrictRoute, tags=["sessions"], responses=FAILURES)


@router.post("/v1/sessions", response_model=Session, status_code=201)
async def create_session(door: TheDoor, user_id: UserId, wanted: SessionRequest | None = None) -> Response:  # noqa: ARG001 - only its being empty is checked
    """Begin a session. Its id goes into the `session_id` of the questions that belong to it."""
    begun = await door.book.conversation(user_id=user_id)
    return JSONResponse(_session(begun), 201, headers={"location": f"/v1/sessions/{begun.id}"})


@router.get("/v1/sessions/{session_id}", response_model=Session)
async def read_session(session_id: str, door: TheDoor, user_id: UserId) -> Response:
    """How far the session has come."""
    return JSONResponse(_session(await door.book.conversation(session_id, user_id=user_id)))


@router.get("/v1/sessions/{session_id}/messages", response_model=Messages)
async def read_messages(session_id: str, request: Request, door: TheDoor, user_id: UserId) -> Response:
    """What was asked and answered since the session was last reset, oldest first."""
    found = await door.book.conversation(session_id, user_id=user_id)
    # The instructions to the model are the owner's, not the reader's.
    said = [as_json(message) for message in found.messages if message.role != "system"]
    if wants_html(request):
        said = [shown(message, text="content") for message in said]
    return JSONResponse({"session_id": found.id, "messages": said})


@router.post("/v1/sessions/{session_id}/reset", response_model=Session)
async def reset_session(session_id: str, door: TheDoor, user_id: UserId) -> Response:
    """Start afresh under the same id: what was said before is no longer part of the conversation."""
    await (await door.book.conversations()).reset(session_id, user_id=user_id)
    return JSONResponse(_session(await door.book.conversation(session_id, user_id=user_id)))


@router.delete("/v1/sessions/{session_id}", status_code=204)
async def delete_session(session_id: str, door: TheDoor, user_id: UserId) -> Response:
    """Forget the session with everything in it."""
    await (await door.book.conversations()).delete(session_id, user_id=user_id)
    return Response(status_code=204)


def _session(conversation: Conversation) -> dict[str, object]:
    return {name: as_json(getattr(conversation, name)) for name in Session.model_fields}
