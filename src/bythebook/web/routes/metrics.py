"""The figures of this server, for Prometheus."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter, Response

from bythebook.errors import NotFound
from bythebook.observe import metrics
from bythebook.web.wire import FAILURES

router = APIRouter(tags=["operating"])

_TEXT: dict[int | str, dict[str, Any]] = {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}}


@router.get("/metrics", response_class=Response, responses=FAILURES | _TEXT)
async def figures() -> Response:
    """How many requests, questions and calls there were, how they ended and how long they took."""
    kept = metrics.installed()
    if kept is None:
        raise NotFound("this server keeps no figures.")
    # The files of many workers take a while to read; nobody's answer waits for that.
    text, kind = await asyncio.to_thread(kept.render)
    return Response(text, media_type=kind)
