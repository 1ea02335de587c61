"""The MCP endpoint of the book, imported on the first request."""

import asyncio
from collections.abc import Collection
from importlib import import_module

from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as AsgiScope

from bythebook.access import Caller, Scope
from bythebook.book import Book
from bythebook.server.endpoints import RoutePolicy


class McpEndpoint:
    """MCP over HTTP. Importing its library takes a second, so it is not imported when the server starts."""

    policy = RoutePolicy(Scope.ASK, admission=True, site_tokens=False)

    def __init__(self, book: Book, *, origins: Collection[str]) -> None:
        self._book = book
        self._origins = origins
        self._app: ASGIApp | None = None

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        if self._app is None:
            http = await asyncio.to_thread(import_module, "bythebook.mcp.http")
            # The middleware has checked the Host and Origin headers.
            self._app = http.asgi_app(self._book, get_user_id=_get_user_id, hosts=None, origins=self._origins)
        await self._app(scope, receive, send)


def _get_user_id(scope: AsgiScope) -> str:
    caller: Caller = scope["state"]["caller"]
    return caller.user_id
