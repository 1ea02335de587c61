"""Passage search without an answer."""

from fastapi import APIRouter, Response
from starlette.responses import JSONResponse

from bythebook.access import Scope
from bythebook.errors import InputError
from bythebook.serialization import to_json
from bythebook.server.endpoints import CallerDep, ContextDep, StrictJsonRoute, requires
from bythebook.server.schemas import ERROR_RESPONSES, RetrievalContext, SearchRequest

router = APIRouter(route_class=StrictJsonRoute, tags=["search"])


@router.post("/v1/search", response_model=RetrievalContext, responses=ERROR_RESPONSES)
@requires(Scope.SEARCH, admission=True)
async def search(body: SearchRequest, context: ContextDep, caller: CallerDep) -> Response:
    """The passages most relevant to the query, best first. An empty result is not an error."""
    if caller.is_site_reader and (body.top_k or 0) > 10:
        raise InputError("top_k: a reader of a site gets at most 10 passages.")
    filters = body.filters.to_domain()
    found = await context.book.search(body.query, top_k=body.top_k, threshold=body.threshold, filters=filters)
    return JSONResponse(to_json(found))
