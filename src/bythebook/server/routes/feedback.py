"""Ratings of answers."""

from fastapi import APIRouter, Response
from starlette.responses import JSONResponse

from bythebook.access import Scope
from bythebook.serialization import to_json
from bythebook.server.endpoints import ContextDep, StrictJsonRoute, UserIdDep, requires
from bythebook.server.schemas import ERROR_RESPONSES, Feedback, FeedbackRequest

router = APIRouter(route_class=StrictJsonRoute, tags=["feedback"])


@router.post("/v1/feedback", response_model=Feedback, responses=ERROR_RESPONSES)
@requires(Scope.FEEDBACK)
async def rate(body: FeedbackRequest, context: ContextDep, user_id: UserIdDep) -> Response:
    """Rate an answer by its `id`. A later rating replaces the earlier one."""
    feedback = await context.book.rate(body.response_id, body.rating, body.reason, user_id=user_id)
    return JSONResponse(to_json(feedback))
