"""The guard: what a request passes before any route sees it, outermost first. Plain ASGI, so that streams stay streams.

Browsers learn which pages may call. A request is sure of an answer and must know the server's name. If it asks for
work, there must be a place. It must have the right to what it asks for, is read whole if it is small enough, and then
takes the place: who is slow to send keeps nobody else from one.

Bodies: JSON read strictly, so that nothing gets in that JSON does not have.

Heads: a request for the headers alone is answered as GET would be. What watches a server often asks like that.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

import pydantic_core
from fastapi.routing import APIRoute
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response

from bythebook.concurrency import turn
from bythebook.errors import BookError, DeadlineExceeded, Forbidden, NotFound, TooLarge
from bythebook.server import cors
from bythebook.server.auth import is_loopback
from bythebook.server.errors import MethodNotAllowed, failure
from bythebook.server.permissions import FOR_KEYS_ONLY, PUBLIC, SCOPES, WORK, methods_of, route_of
from bythebook.server.streams import ReaderLeftError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from bythebook.access import Caller
    from bythebook.access import Scope as Access
    from bythebook.server.admission import Desk
    from bythebook.server.auth import Gate


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


class Hosts:
    """Answers only under the names this server has, so that no page on the web can pass for one of its own."""

    def __init__(self, app: ASGIApp, *, host: str, allowed: Collection[str]) -> None:
        self._app = app
        self._any = not allowed and not is_loopback(host)
        self._allowed = frozenset(name.lower() for name in allowed)
        self._local = is_loopback(host)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not self._any:
            name = _without_port(Headers(scope=scope).get("host", "")).lower()
            if name not in self._allowed and not (self._local and is_loopback(name)):
                raise Forbidden("this server is not known under that name. Its owner can list it in allowed_hosts.")
        await self._app(scope, receive, send)


def _without_port(host: str) -> str:
    """The name or address in a Host header."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if host.count(":") == 1 else host


class Origins:
    """Tells browsers which pages may call, and turns away what other pages send."""

    def __init__(self, app: ASGIApp, *, gate: Gate) -> None:
        self._app = app
        self._gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(raw=scope.get("headers", []))
        if scope["type"] != "http" or "origin" not in headers:
            await self._app(scope, receive, send)
            return
        origin = cors.sent_origin(headers.getlist("origin"))
        try:
            listed = await self._gate.origins()
        except BookError:
            listed = frozenset()  # whoever it is for, the answer is going to be an error
        if scope["method"] == "OPTIONS":
            await Response(status_code=204, headers=cors.asked_before(origin, listed))(scope, receive, send)
            return
        told = [(name.lower().encode(), value.encode()) for name, value in cors.answered(origin, listed).items()]

        async def send_with_origin(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", []), *told]}
            await send(message)

        own = urlsplit(origin or "").netloc == headers.get("host")
        scope.setdefault("state", {})["foreign"] = not own and not cors.is_listed(origin, listed)
        await self._app(scope, receive, send_with_origin)


class Callers:
    """Lets in who may do what the route does. A route that is not listed does not exist."""

    def __init__(self, app: ASGIApp, *, gate: Gate, desk: Desk) -> None:
        self._app = app
        self._gate = gate
        self._desk = desk

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            state = scope.setdefault("state", {})
            needed = self._needed(scope)
            if state.get("foreign") and scope["method"] != "GET":
                raise Forbidden("pages of this origin may not call the server. Its owner can list it in cors_origins.")
            if needed != PUBLIC:
                state["caller"] = caller = await self._admitted(scope)
                if not caller.may(needed) or (caller.site and state["route"] in FOR_KEYS_ONLY):
                    raise Forbidden(f"this key may not do that. It needs the scope {needed.value!r}.")
        await self._app(scope, receive, send)

    async def _admitted(self, scope: Scope) -> Caller:
        # Finding out who it is takes the database. Who cannot have a place anyway is not looked up.
        with self._desk.coming_in() if scope["state"]["route"] in WORK else nullcontext():
            return await self._gate.admit(scope, Headers(scope=scope))

    def _needed(self, scope: Scope) -> Access | Literal["public"]:
        route = route_of(scope["path"])
        if route is None:
            raise NotFound("there is no such address. /docs lists those there are.")
        scope["state"]["route"] = route
        needed = SCOPES.get((scope["method"], route))
        if needed is None:
            raise MethodNotAllowed("this address has other methods. /docs lists them.", allowed=methods_of(route))
        return needed


class Places:
    """Lets in as many requests for work as there are places, and turns the others away at once."""

    def __init__(self, app: ASGIApp, *, desk: Desk) -> None:
        self._app = app
        self._desk = desk

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["state"].get("route") not in WORK:
            await self._app(scope, receive, send)
            return
        with self._desk.place():
            # Those who found none are told so before anything is begun for those who have one.
            await turn()
            await self._app(scope, receive, send)


class _StrictRequest(Request):
    async def json(self) -> Any:
        """The body. NaN, half a surrogate pair, bytes that are no UTF-8 and nesting without end are not JSON."""
        try:
            return pydantic_core.from_json(await self.body(), allow_inf_nan=False)
        except ValueError:
            # The parser's own words may quote the body.
            raise json.JSONDecodeError("not JSON", "", 0) from None


class StrictRoute(APIRoute):
    """A route that reads its body strictly."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def strictly(request: Request) -> Response:
            return await handle(_StrictRequest(request.scope, request.receive))

        return strictly


class Heads:
    """Turns HEAD into GET for everything inside. The web server, which knows what was asked, sends no body."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "HEAD":
            scope = {**scope, "method": "GET"}
        await self._app(scope, receive, send)
