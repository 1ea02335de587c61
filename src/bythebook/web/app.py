"""The app: a book becomes a web server's application."""

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
from bythebook.observe import log
from bythebook.web.desk import Desk
from bythebook.web.document import Documented, plain_name
from bythebook.web.door import Door
from bythebook.web.failures import handle_failures
from bythebook.web.gate import Gate
from bythebook.web.guard import Bodies, Callers, Failures, Hosts, Origins, Places
from bythebook.web.heads import Heads
from bythebook.web.observed import Observed
from bythebook.web.programs import OtherPrograms
from bythebook.web.routes import ask, completions, feedback, health, metrics, page, search, sessions
from bythebook.web.sweeping import keep_sweeping

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine

    from bythebook.assemble import Book
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
    for routes in (page, ask, sessions, search, feedback, completions, health, metrics):
        app.include_router(routes.router)
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
