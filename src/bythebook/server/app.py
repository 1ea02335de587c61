"""The app: a book becomes a web server's application.

The document: what OpenAPI says of the routes, with examples, and with what only the guard knows: who may call.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.routing import Route

from bythebook.errors import BookError
from bythebook.server.admission import Desk
from bythebook.server.auth import Gate
from bythebook.server.dependencies import Door
from bythebook.server.errors import handle_failures
from bythebook.server.examples import EXAMPLES
from bythebook.server.maintenance import keep_sweeping
from bythebook.server.middleware import Bodies, Callers, Failures, Heads, Hosts, Origins, Places
from bythebook.server.permissions import PUBLIC, SCOPES
from bythebook.server.routes import ask, completions, feedback, health, page, search, sessions
from bythebook.server.routes.mcp import OtherPrograms
from bythebook.server.telemetry import Observed
from bythebook.telemetry import log

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine

    from fastapi.routing import APIRoute

    from bythebook.book import Book
    from bythebook.settings import Settings


logger = logging.getLogger(__name__)


def create_app(book: Book, settings: Settings) -> FastAPI:
    """An ASGI app that answers from this open book. Who opened the book closes it, after the app has ended.

    `app.state.door.desk` is where a server says that it is shutting down.
    """
    desk = Desk(places=settings.max_readers)
    gate = Gate(book, settings)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        async with desk, asyncio.TaskGroup() as tasks:
            work = (book.prepare(), keep_sweeping(book, session_days=settings.session_days))
            aside = [tasks.create_task(_aside(each)) for each in work]
            yield
            for task in aside:
                task.cancel()

    app = Documented(
        title="By the Book",
        summary="Answers questions only from a book's pages, and proves every sentence with a quote.",
        version=version("bythebook"),
        lifespan=lifespan,
        # Both load their scripts from elsewhere; the reference is a page of our own.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=plain_name,
        middleware=[
            Middleware(Observed),
            Middleware(Heads),
            Middleware(Origins, gate=gate),
            Middleware(Failures),
            Middleware(Hosts, host=settings.host, allowed=settings.allowed_hosts),
            Middleware(Callers, gate=gate, desk=desk),
            Middleware(Bodies),
            Middleware(Places, desk=desk),
        ],
    )
    app.state.door = Door(book, settings, desk, gate)
    handle_failures(app)
    for routes in (page, ask, sessions, search, feedback, completions, health):
        app.include_router(routes.router)
    app.include_router(health.metrics_router)
    app.router.routes.append(Route("/mcp", OtherPrograms(book, origins=settings.cors_origins)))
    return app


async def _aside(work: Coroutine[Any, Any, None]) -> None:
    """Work that nobody waits for. However it ends, questions are answered, and meet by themselves what it has met."""
    try:
        await work
    except BookError as error:
        log("aside_failed", error=error.code)
    except Exception as error:
        log("aside_failed", error=type(error).__name__)
        logger.error("work beside answering failed unexpectedly", exc_info=error)


KEY = "key"
"""The name of the one way to show who one is."""


def plain_name(route: APIRoute) -> str:
    """What a call is named in clients that are made of the document."""
    return route.name


class Documented(FastAPI):
    """An app with such a document."""

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            document = super().openapi()
            # Examples in the types themselves would lose what is null in them.
            for name, examples in EXAMPLES.items():
                document["components"]["schemas"][name]["examples"] = examples
            _add_keys(document)
        return super().openapi()


def _add_keys(document: dict[str, Any]) -> None:
    """Say which key each route needs, where the server has keys at all."""
    about = "A key, or the token of a site. A server that has neither answers without."
    document["components"]["securitySchemes"] = {KEY: {"type": "http", "scheme": "bearer", "description": about}}
    for path, methods in document["paths"].items():
        for method, call in methods.items():
            needed = SCOPES.get((method.upper(), path), PUBLIC)
            call["security"] = [] if needed == PUBLIC else [{KEY: [needed.value]}, {}]
