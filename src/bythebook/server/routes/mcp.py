"""Other programs: the book's MCP endpoint, opened for the first of them that comes."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from starlette.types import ASGIApp, Receive, Scope, Send

    from bythebook.access import Caller
    from bythebook.book import Book


class OtherPrograms:
    """MCP over HTTP. Its library takes a second to import, which nobody else has to wait for."""

    def __init__(self, book: Book, *, origins: Collection[str]) -> None:
        self._book = book
        self._origins = origins
        self._app: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._app is None:
            http = await asyncio.to_thread(import_module, "bythebook.mcp.http")
            # The guard has looked at the name and the origin before.
            self._app = http.asgi_app(self._book, reader=_reader, hosts=None, origins=self._origins)
        await self._app(scope, receive, send)


def _reader(scope: Scope) -> str:
    caller: Caller = scope["state"]["caller"]
    return caller.user_id
