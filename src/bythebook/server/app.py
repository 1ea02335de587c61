"""The ASGI application of a book: routes, middleware, background tasks and the OpenAPI document."""

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from bythebook.book import Book
from bythebook.errors import BookError
from bythebook.server import middleware
from bythebook.server.admission import AdmissionController
from bythebook.server.api_docs import EXAMPLES
from bythebook.server.auth import Authenticator
from bythebook.server.endpoints import AppContext, RoutePolicy, RouteTable
from bythebook.server.errors import install_error_handlers
from bythebook.server.maintenance import run_cleanup_loop
from bythebook.server.routes import ask, completions, feedback, health, page, search, sessions
from bythebook.server.routes.mcp import McpEndpoint
from bythebook.settings import Settings
from bythebook.telemetry import log

logger = logging.getLogger(__name__)


def create_app(book: Book, settings: Settings) -> FastAPI:
    """An ASGI app that answers from this open book. The caller closes the book after the app's shutdown.

    A server closes `app.state.context.admission` when it begins to shut down.
    """
    admission = AdmissionController(capacity=settings.max_concurrent_requests)
    authenticator = Authenticator(book, settings)
    routers = [module.router for module in (page, ask, sessions, search, feedback, completions, health)]
    routers.append(health.metrics_router)
    mcp = Route("/mcp", McpEndpoint(book, origins=settings.cors_origins), methods=["POST"])
    table = RouteTable([*(route for router in routers for route in router.routes), mcp])

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        async with admission, asyncio.TaskGroup() as group:
            work = (book.prepare(), run_cleanup_loop(book, session_days=settings.session_days))
            tasks = [group.create_task(_run_background_task(each)) for each in work]
            yield
            for task in tasks:
                task.cancel()

    app = DocumentedApp(
        title="By the Book",
        summary="Answers questions only from a book's pages, and proves every sentence with a quote.",
        version=version("bythebook"),
        lifespan=lifespan,
        # routes/page.py serves the document and its reference: FastAPI's pages load scripts from other hosts.
        openapi_url=None,
        redirect_slashes=False,
        generate_unique_id_function=get_operation_id,
        middleware=[
            Middleware(middleware.TelemetryMiddleware),
            Middleware(middleware.HeadMiddleware),
            Middleware(GZipMiddleware, compresslevel=5),
            Middleware(middleware.CorsMiddleware, authenticator=authenticator),
            Middleware(middleware.ErrorMiddleware),
            Middleware(middleware.TrustedHostMiddleware, host=settings.host, allowed=settings.allowed_hosts),
            Middleware(middleware.AuthMiddleware, routes=table, authenticator=authenticator, admission=admission),
            Middleware(middleware.BodyLimitMiddleware),
            Middleware(middleware.AdmissionMiddleware, admission=admission),
        ],
    )
    app.state.context = AppContext(book, settings, admission, authenticator, table)
    install_error_handlers(app)
    for router in routers:
        app.include_router(router)
    app.router.routes.append(mcp)
    return app


def mount_app(parent: FastAPI, path: str, app: FastAPI) -> None:
    """Mount the app of a book in another app, which then runs its lifespan too. Mounting alone does not run it."""
    run_parent = parent.router.lifespan_context

    @asynccontextmanager
    async def lifespan(started: FastAPI) -> AsyncIterator[Any]:
        async with app.router.lifespan_context(app), run_parent(started) as state:
            yield state

    parent.router.lifespan_context = lifespan
    parent.mount(path, app)


async def _run_background_task(work: Coroutine[Any, Any, None]) -> None:
    """Run a background task; log a failure instead of stopping the server."""
    try:
        await work
    except BookError as error:
        log("background_task_failed", error=error.code)
    except Exception as error:
        log("background_task_failed", error=type(error).__name__)
        logger.error("a background task failed unexpectedly", exc_info=error)


SECURITY_SCHEME = "key"
"""The name of the only security scheme."""


def get_operation_id(route: APIRoute) -> str:
    """The name of the operation in generated clients."""
    return route.name


class DocumentedApp(FastAPI):
    """An app whose OpenAPI document has examples and the scope of each route."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Set here, because uvicorn and FastAPI assume either that the proxy removes the prefix or that it keeps it.
        root_path = scope.get("root_path") or self.state.context.settings.root_path.rstrip("/")
        await super().__call__({**scope, "root_path": root_path}, receive, send)

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            document = super().openapi()
            # Added here, because FastAPI drops null values from examples in the models.
            for name, examples in EXAMPLES.items():
                document["components"]["schemas"][name]["examples"] = examples
            _add_security(document, self.state.context.routes.policies)
        return super().openapi()


def _add_security(document: dict[str, Any], policies: Mapping[tuple[str, str], RoutePolicy]) -> None:
    """Add the scope that each route requires. The empty alternative means a server without keys."""
    about = "A key or the token of a site. Not required while the server has neither."
    document["components"]["securitySchemes"] = {
        SECURITY_SCHEME: {"type": "http", "scheme": "bearer", "description": about}
    }
    for path, methods in document["paths"].items():
        for method, call in methods.items():
            scope = policies[method.upper(), path].scope
            call["security"] = [] if scope is None else [{SECURITY_SCHEME: [scope.value]}, {}]
