"""Passages without an answer."""

from __future__ import annotations

from fastapi import APIRouter, Response
from starlette.responses import JSONResponse

from bythebook.serialization import as_json
from bythebook.server.dependencies import TheDoor
from bythebook.server.middleware import StrictRoute
from bythebook.server.schemas import FAILURES, RetrievalContext, SearchRequest

router = APIRouter(route_class=StrictRoute, tags=["search"])


@router.post("/v1/search", response_model=RetrievalContext, responses=FAILURES)
async def search(wanted: SearchRequest, door: TheDoor) -> Response:
    """The passages that bear most on the query, best first. None is not an error."""
    found = await door.book.search(wanted.query, top_k=wanted.top_k, filters=wanted.filters.noun())
    return JSONResponse(as_json(found))
