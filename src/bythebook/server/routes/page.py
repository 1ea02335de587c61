"""The chat page, the widget script for other sites, the pages of the book, and the API reference."""

import asyncio
import hashlib
from functools import cache
from html import escape
from importlib.resources import files
from string import Template
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response
from starlette.responses import HTMLResponse, JSONResponse

from bythebook.access import Scope
from bythebook.errors import NotFound
from bythebook.qa.suggestions import Introduction
from bythebook.retrieval.text_fragments import title_with_page
from bythebook.serialization import to_json
from bythebook.server import schemas
from bythebook.server.api_docs import content_security_policy, render_reference
from bythebook.server.endpoints import ContextDep, public, requires
from bythebook.server.rendering import render_page

router = APIRouter(tags=["page"])

Offset = Annotated[int, Query(ge=0)]

_NO_BOOK = Introduction("By the Book", sections=(), questions=())

_PAGE: dict[int | str, dict[str, Any]] = {200: {"content": {"text/html": {"schema": {"type": "string"}}}}}
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
    return _to_response(html, policy=_POLICY)


@router.get("/v1/questions", response_model=schemas.Introduction, responses=schemas.ERROR_RESPONSES)
@requires(Scope.ASK, admission=True)
async def questions(context: ContextDep, page: Annotated[str, Query(max_length=2000)] = "") -> Response:
    """The book's name, its sections, and at most three questions that it answers.

    With the URL of a page of the book in `page`, its title and questions of its own.
    """
    return JSONResponse(to_json(await context.book.introduction(page)))


@router.get("/read/{chunk_id}", response_class=Response, responses=_PAGE | schemas.ERROR_RESPONSES)
@public
async def read(request: Request, context: ContextDep, chunk_id: UUID, start: Offset = 0, end: Offset = 0) -> Response:
    """The page of the book that has this chunk, as text. The characters from `start` to `end` of it are marked."""
    if not context.settings.page_token:  # With one, everybody may ask on the chat page.
        await context.authenticator.authenticate(request.scope, request.headers)
    chunk, text, headings = await context.book.read(str(chunk_id))
    first, last = sorted(min(chunk.start + offset, chunk.end) for offset in (start, end))
    values = {
        "book": context.settings.book_name or "By the Book",
        "title": title_with_page(chunk.title, anchor=chunk.anchor),
        "source": "" if chunk.url.startswith("file:") else chunk.url,
    }
    style = _file("read.css")
    escaped = {name: escape(value) for name, value in values.items()} | {"style": style}
    rendered = await asyncio.to_thread(render_page, text, (first, last), headings=headings)
    rendered = rendered.removeprefix(f"<h2>{escape(chunk.title)}</h2>\n")
    html = Template(_file("read.html")).substitute(escaped, text=rendered)
    return _to_response(html, policy=content_security_policy(style))


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
    policy = content_security_policy(_file("reference.css"))
    return _to_response(render_reference(request.app.openapi()), policy=policy)


def _to_response(html: str, *, policy: str) -> HTMLResponse:
    headers = {"content-security-policy": policy, "cache-control": "no-cache", "x-content-type-options": "nosniff"}
    return HTMLResponse(html, headers=headers)


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
