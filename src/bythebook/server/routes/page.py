"""The reader's side: a page to chat with the book on, and the script that brings the same to any other site."""

from __future__ import annotations

import hashlib
from functools import cache
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from fastapi import APIRouter, Request, Response
from starlette.responses import HTMLResponse

from bythebook.errors import NotFound
from bythebook.qa.suggestions import Introduction
from bythebook.server.api_docs import policy, reference
from bythebook.server.dependencies import TheDoor

router = APIRouter(tags=["page"])

_NO_BOOK = Introduction("By the Book", sections=(), questions=())

_SCRIPT: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/javascript": {"schema": {"type": "string"}}}},
    304: {"description": "It is what you have."},
}

_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "connect-src 'self'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'self'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)


@router.get("/", response_class=HTMLResponse)
async def page(door: TheDoor) -> Response:
    """A chat with the book, on a page of its own."""
    try:
        known = await door.book.introduction()
    except NotFound:
        known = _NO_BOOK
    shown = {
        "name": known.name,
        "questions": "|".join(known.questions),
        "sections": "|".join(known.sections),
        "site": door.settings.page_token,
    }
    html = Template(_file("page.html")).substitute({name: escape(value) for name, value in shown.items()})
    headers = {"content-security-policy": _POLICY, "cache-control": "no-cache", "x-content-type-options": "nosniff"}
    return HTMLResponse(html, headers=headers)


@router.get("/widget.js", response_class=Response, responses=_SCRIPT)
async def widget(request: Request) -> Response:
    """The script an author pastes into a site."""
    code, tag = _widget()
    headers = {"etag": tag, "cache-control": "public, max-age=3600", "x-content-type-options": "nosniff"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    headers["cross-origin-resource-policy"] = "cross-origin"
    return Response(code, media_type="text/javascript", headers=headers)


@router.get("/docs", response_class=HTMLResponse)
async def docs(request: Request) -> Response:
    """What can be asked of this server, for people."""
    headers = {"content-security-policy": policy(), "cache-control": "no-cache", "x-content-type-options": "nosniff"}
    return HTMLResponse(reference(request.app.openapi()), headers=headers)


@cache
def _widget() -> tuple[str, str]:
    code = _file("widget.js")
    return code, f'"{hashlib.sha256(code.encode()).hexdigest()[:16]}"'


def _file(name: str) -> str:
    return (files("bythebook.server") / "static" / name).read_text(encoding="utf-8")
