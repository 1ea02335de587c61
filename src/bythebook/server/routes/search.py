"""Passage search without an answer."""

from fastapi import APIRouter, Response
from starlette.responses import JSONResponse

from bythebook.access import Scope
from bythebook.serialization import to_json
from bythebook.server.endpoints import ContextDep, StrictJsonRoute, requires
from bythebook.server.schemas import ERROR_RESPONSES, RetrievalContext, SearchRequest

router = APIRouter(route_class=StrictJsonRoute, tags=["search"])


@router.post("/v1/search", response_model=RetrievalContext, responses=ERROR_RESPONSES)
@requires(Scope.SEARCH, admission=True)
async def search(body: SearchRequest, context: ContextDep) -> Response:
    """The passages most relevant to the query, best first. An empty result is not an error."""
    found = await context.book.search(body.query, top_k=body.top_k, filters=body.filters.to_domain())
    return JSONResponse(to_json(found))
