"""Passages without an answer."""

from __future__ import annotations

from fastapi import APIRouter, Response
from starlette.responses import JSONResponse

from bythebook.web.bodies import StrictRoute
from bythebook.web.door import TheDoor
from bythebook.web.wire import FAILURES, RetrievalContext, SearchRequest
from bythebook.wire import as_json

router = APIRouter(route_class=StrictRoute, tags=["search"])


@router.post("/v1/search", response_model=RetrievalContext, responses=FAILURES)
async def search(wanted: SearchRequest, door: TheDoor) -> Response:
    """The passages that bear most on the query, best first. None is not an error."""
    found = await door.book.search(wanted.query, top_k=wanted.top_k, filters=wanted.filters.noun())
    return JSONResponse(as_json(found))
