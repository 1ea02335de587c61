"""MCP over streamable HTTP: one ASGI app without sessions, so that any worker can take any request."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse

from bythebook.mcp.server import server_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from starlette.types import ASGIApp, Receive, Scope, Send

    from bythebook.book import Book
    from bythebook.mcp.server import Context

LARGEST_BODY = 1_000_000
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def _nobody(_scope: Scope) -> str:
    return ""


def asgi_app(
    book: Book,
    *,
    reader: Callable[[Scope], str] = _nobody,
    hosts: Collection[str] | None = LOOPBACK,
    origins: Collection[str] = (),
) -> ASGIApp:
    """The book's MCP endpoint. It needs no lifespan; give it to a route of the path it shall have.

    `reader` says whose request it is. `hosts` are the names this server is called by, None for any. A request with an
    Origin comes from a web page: it must be one of `origins`, or a page of one of the `hosts`.
    """
    return _Endpoint(book, reader, hosts, frozenset(origins))


class _Endpoint:
    def __init__(
        self, book: Book, reader: Callable[[Scope], str], hosts: Collection[str] | None, origins: frozenset[str]
    ) -> None:
        def whose(context: Context) -> str:
            return reader(context.request.scope) if context.request is not None else ""

        self._server = server_of(book, reader=whose)
        self._hosts = hosts
        self._origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if refusal := self._refused(scope["method"], Headers(scope=scope)):
            await refusal(scope, receive, send)
            return
        # Nothing is remembered between requests, so each has a manager of its own and nothing must be started first.
        manager = StreamableHTTPSessionManager(self._server, stateless=True, max_request_body_size=LARGEST_BODY)
        async with manager.run():
            await manager.handle_request(scope, receive, send)

    def _refused(self, method: str, headers: Headers) -> PlainTextResponse | None:
        """Whether a web page may be behind this that has no business here: of another site, or under a rebound name."""
        if self._hosts is not None and _host(f"//{headers.get('host', '')}") not in self._hosts:
            return PlainTextResponse("This server is not called by that name.", status_code=421)
        origin = headers.get("origin")
        if origin is not None and origin not in self._origins and _host(origin) not in (self._hosts or ()):
            return PlainTextResponse("Pages of that origin may not use this server.", status_code=403)
        if method != "POST":
            return PlainTextResponse("Use POST: this server keeps no streams.", 405, headers={"Allow": "POST"})
        return None


def _host(address: str) -> str:
    """The name in an address, without the port; empty for what is no address."""
    try:
        parts = urlsplit(address)
        return "" if "@" in parts.netloc or parts.port == 0 else parts.hostname or ""
    except ValueError:
        return ""
