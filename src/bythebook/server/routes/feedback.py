"""What readers think of the answers they were given."""

from __future__ import annotations

from fastapi import APIRouter, Response
from starlette.responses import JSONResponse

from bythebook.serialization import as_json
from bythebook.server.dependencies import TheDoor, UserId
from bythebook.server.middleware import StrictRoute
from bythebook.server.schemas import FAILURES, Feedback, FeedbackRequest

router = APIRouter(route_class=StrictRoute, tags=["feedback"])


@router.post("/v1/feedback", response_model=Feedback, responses=FAILURES)
async def rate(given: FeedbackRequest, door: TheDoor, user_id: UserId) -> Response:
    """Rate an answer you were given, by its `id`. A later rating replaces the earlier one."""
    kept = await door.book.rate(given.response_id, given.rating, given.reason, user_id=user_id)
    return JSONResponse(as_json(kept))
