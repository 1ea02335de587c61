"""The guard: what a request passes before any route sees it, outermost first. Plain ASGI, so that streams stay streams.

A request is sure of an answer, is read whole if it is small enough, and takes a place if it asks for work.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from starlette.datastructures import Headers

from bythebook.errors import DeadlineExceeded, TooLarge
from bythebook.web.events import ReaderLeftError
from bythebook.web.failures import failure

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from bythebook.web.desk import Desk

LARGEST_BODY = 1_000_000
BODY_SECONDS = 20.0
"""How long a reader may take to send a body."""


class Failures:
    """Gives every failure an answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = False

        async def send_and_see(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, send_and_see)
        except ReaderLeftError:
            pass
        except Exception as error:
            if begun:
                raise
            await failure(scope, error)(scope, receive, send)


class Bodies:
    """Reads the body before anything else happens with it, and never more of it than is allowed."""

    def __init__(self, app: ASGIApp, *, largest: int = LARGEST_BODY) -> None:
        self._app = app
        self._largest = largest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = await self._read(scope, receive)
        given = False

        async def replay() -> Message:
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self._app(scope, replay, send)

    async def _read(self, scope: Scope, receive: Receive) -> bytes:
        announced = Headers(scope=scope).get("content-length", "0")
        if not announced.isdecimal() or int(announced) > self._largest:
            raise self._too_large()
        parts: list[bytes] = []
        try:
            async with asyncio.timeout(BODY_SECONDS):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ReaderLeftError
                    parts.append(message.get("body", b""))
                    if sum(map(len, parts)) > self._largest:
                        raise self._too_large()
                    if not message.get("more_body", False):
                        return b"".join(parts)
        except TimeoutError as exc:
            raise DeadlineExceeded("the body of the request did not come in time.", stage="reading") from exc

    def _too_large(self) -> TooLarge:
        return TooLarge(f"the body is larger than {self._largest:,} bytes. Send less.")


class Places:
    """Lets in as many requests for work as there are places, and turns the others away at once."""

    def __init__(self, app: ASGIApp, *, desk: Desk) -> None:
        self._app = app
        self._desk = desk

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        with self._desk.place():
            await self._app(scope, receive, send)
