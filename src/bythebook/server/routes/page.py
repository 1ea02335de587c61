"""The chat page, the widget script for other sites, and the API reference."""

import hashlib
from functools import cache
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from fastapi import APIRouter, Request, Response
from starlette.responses import HTMLResponse, JSONResponse

from bythebook.errors import NotFound
from bythebook.qa.suggestions import Introduction
from bythebook.server.api_docs import content_security_policy, render_reference
from bythebook.server.endpoints import ContextDep, public

router = APIRouter(tags=["page"])

_NO_BOOK = Introduction("By the Book", sections=(), questions=())

_SCRIPT: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/javascript": {"schema": {"type": "string"}}}},
    304: {"description": "The client's copy is current."},
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
@public
async def page(context: ContextDep) -> Response:
    """The chat page."""
    try:
        introduction = await context.book.introduction()
    except NotFound:
        introduction = _NO_BOOK
    values = {
        "name": introduction.name,
        "questions": "|".join(introduction.questions),
        "sections": "|".join(introduction.sections),
        "site": context.settings.page_token,
    }
    html = Template(_file("page.html")).substitute({name: escape(value) for name, value in values.items()})
    headers = {"content-security-policy": _POLICY, "cache-control": "no-cache", "x-content-type-options": "nosniff"}
    return HTMLResponse(html, headers=headers)


@router.get("/widget.js", response_class=Response, responses=_SCRIPT)
@public
async def widget(request: Request) -> Response:
    """The script that authors include in their site."""
    code, tag = _widget()
    headers = {"etag": tag, "cache-control": "public, max-age=3600", "x-content-type-options": "nosniff"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    headers["cross-origin-resource-policy"] = "cross-origin"
    return Response(code, media_type="text/javascript", headers=headers)


@router.get("/docs", response_class=HTMLResponse)
@public
async def docs(request: Request) -> Response:
    """The API reference."""
    headers = {
        "content-security-policy": content_security_policy(),
        "cache-control": "no-cache",
        "x-content-type-options": "nosniff",
    }
    return HTMLResponse(render_reference(request.app.openapi()), headers=headers)


@router.get("/openapi.json", include_in_schema=False)
@public
async def openapi(request: Request) -> Response:
    """The OpenAPI document."""
    root_path = request.scope.get("root_path")
    return JSONResponse(request.app.openapi() | ({"servers": [{"url": root_path}]} if root_path else {}))


@cache
def _widget() -> tuple[str, str]:
    code = _file("widget.js")
    return code, f'"{hashlib.sha256(code.encode()).hexdigest()[:16]}"'


def _file(name: str) -> str:
    return (files("bythebook.server") / "static" / name).read_text(encoding="utf-8")
