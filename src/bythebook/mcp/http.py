"""MCP over streamable HTTP: a stateless ASGI app, so that any worker can handle any request."""

from collections.abc import Callable, Collection
from urllib.parse import urlsplit

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from bythebook.book import Book
from bythebook.mcp.server import Context, create_server

MAX_BODY_BYTES = 1_000_000
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def asgi_app(
    book: Book,
    *,
    get_user_id: Callable[[Scope], str] = lambda _scope: "",
    hosts: Collection[str] | None = LOOPBACK,
    origins: Collection[str] = (),
) -> ASGIApp:
    """The MCP endpoint of the book, to be used as the endpoint of a route. It needs no lifespan.

    `hosts` are the accepted names of this server, None for any. A request with an Origin header comes from a web page:
    its origin must be one of `origins`, or have one of the `hosts`.
    """
    return _Endpoint(book, get_user_id, hosts, frozenset(origins))


class _Endpoint:
    def __init__(
        self, book: Book, get_user_id: Callable[[Scope], str], hosts: Collection[str] | None, origins: frozenset[str]
    ) -> None:
        def get_user(context: Context) -> str:
            return get_user_id(context.request.scope) if context.request is not None else ""

        self._server = create_server(book, get_user_id=get_user)
        self._hosts = hosts
        self._origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if refusal := self._check_access(scope["method"], Headers(scope=scope)):
            await refusal(scope, receive, send)
            return
        # Each request gets its own manager: the server is stateless and needs no lifespan.
        manager = StreamableHTTPSessionManager(self._server, stateless=True, max_request_body_size=MAX_BODY_BYTES)
        async with manager.run():
            await manager.handle_request(scope, receive, send)

    def _check_access(self, method: str, headers: Headers) -> PlainTextResponse | None:
        """The response to a rejected request: of another site's page, through DNS rebinding, or with another method."""
        if self._hosts is not None and _parse_host(f"//{headers.get('host', '')}") not in self._hosts:
            return PlainTextResponse("This server is not known under that name.", status_code=421)
        origin = headers.get("origin")
        if origin is not None and origin not in self._origins and _parse_host(origin) not in (self._hosts or ()):
            return PlainTextResponse("Pages of that origin may not use this server.", status_code=403)
        if method != "POST":
            return PlainTextResponse("Use POST: this server has no GET streams.", 405, headers={"Allow": "POST"})
        return None


def _parse_host(address: str) -> str:
    """The host name of a URL without the port; empty if the URL is invalid."""
    try:
        parts = urlsplit(address)
        return "" if "@" in parts.netloc or parts.port == 0 else parts.hostname or ""
    except ValueError:
        return ""
