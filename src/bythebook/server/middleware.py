"""ASGI middleware, in the order of this module from the outside in. Plain ASGI, so that streams are not buffered.

Telemetry comes first, so that it sees every request. Errors become responses before any check. The size of the body and
the capacity are checked last: a client that sends its body slowly does not hold a slot.
"""

import asyncio
import re
import time
import uuid
from collections.abc import Collection
from contextlib import nullcontext
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bythebook.access import Caller
from bythebook.concurrency import fair_yield
from bythebook.errors import BookError, DeadlineExceeded, Forbidden, TooLarge
from bythebook.server import cors
from bythebook.server.admission import AdmissionController
from bythebook.server.auth import Authenticator, is_loopback
from bythebook.server.endpoints import RouteTable, get_route_path
from bythebook.server.errors import error_to_response
from bythebook.server.streams import ClientDisconnectedError
from bythebook.telemetry import log, metric, redact, request_id, span

CLIENT_CLOSED_REQUEST = 499
"""The status, in logs and metrics, of a request whose client disconnected before there was a response."""

MAX_BODY_BYTES = 1_000_000
BODY_TIMEOUT_SECONDS = 20.0
"""How long a client may take to send a body."""

OTHER = "other"
METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})
PROBE_ROUTES = frozenset({"/health", "/health/live", "/health/ready", "/metrics"})
"""Requested by machines every few seconds: logged only when they fail."""

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{8,64}")


class TelemetryMiddleware:
    """Gives each request an id, and logs, counts and traces it.

    Only low-cardinality values are recorded: the route instead of the address, and no header, query or body.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        record = _RequestRecord(scope, send, _choose_request_id(headers.get(b"x-request-id", b"").decode("latin-1")))
        token = request_id.set(record.request_id)
        traceparent = headers.get(b"traceparent", b"").decode("latin-1")
        try:
            with span("request", method=record.method, traceparent=traceparent):
                try:
                    await self._app(scope, receive, record.send)
                except Exception:
                    record.status = record.status or 500
                    raise
                finally:
                    record.report()
        finally:
            request_id.reset(token)


class _RequestRecord:
    """The measurements of one request."""

    def __init__(self, scope: Scope, send: Send, request_id: str) -> None:
        scope.setdefault("state", {})["request_id"] = request_id
        self.request_id = request_id
        self.method = scope["method"] if scope["method"] in METHODS else OTHER
        self.status = 0
        self._scope = scope
        self._send = send
        self._bytes = 0
        self._started = time.perf_counter()

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = [(name, value) for name, value in message.get("headers", []) if name.lower() != b"x-request-id"]
            headers += [(b"x-request-id", self.request_id.encode()), *self._scope["state"].get("headers", ())]
            if self._is_private and b"cache-control" not in dict(headers):
                headers.append((b"cache-control", b"no-store"))
            message = {**message, "headers": headers}
        else:
            self._bytes += len(message.get("body", b""))
        await self._send(message)

    @property
    def _is_private(self) -> bool:
        """Whether the response is of one reader, so that no cache may store it."""
        return str(self._scope["state"].get("route", "")).startswith("/v1/")

    def report(self) -> None:
        seconds = time.perf_counter() - self._started
        route = self._scope["state"].get("route", OTHER)
        status = self.status or CLIENT_CLOSED_REQUEST
        metric("requests", method=self.method, route=route, status=str(status))
        metric("request_seconds", seconds, route=route)
        if route not in PROBE_ROUTES or status >= 500:
            log("request", method=self.method, route=route, status=status, seconds=seconds, bytes=self._bytes)


def _choose_request_id(sent: str) -> str:
    """The client's id if it is well-formed and contains no secret, else a new one."""
    return sent if _REQUEST_ID.fullmatch(sent) and redact(sent) == sent else uuid.uuid4().hex


class HeadMiddleware:
    """Turns HEAD into GET for the routes. The web server knows the original method and sends no body."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "HEAD":
            scope = {**scope, "method": "GET"}
        await self._app(scope, receive, send)


class CorsMiddleware:
    """Answers preflight requests, adds CORS headers, and marks requests from unlisted origins as cross-origin."""

    def __init__(self, app: ASGIApp, *, authenticator: Authenticator) -> None:
        self._app = app
        self._authenticator = authenticator

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(raw=scope.get("headers", []))
        if scope["type"] != "http" or "origin" not in headers:
            await self._app(scope, receive, send)
            return
        origin = cors.parse_origin_header(headers.getlist("origin"))
        try:
            listed = await self._authenticator.origins()
        except BookError:
            listed = frozenset()  # the same failure makes the response an error
        if scope["method"] == "OPTIONS":
            await Response(status_code=204, headers=cors.preflight_headers(origin, listed))(scope, receive, send)
            return
        added = [
            (name.lower().encode(), value.encode()) for name, value in cors.response_headers(origin, listed).items()
        ]

        async def send_with_origin(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", []), *added]}
            await send(message)

        same_origin = urlsplit(origin or "").netloc == headers.get("host")
        scope.setdefault("state", {})["cross_origin"] = not same_origin and not cors.is_listed(origin, listed)
        await self._app(scope, receive, send_with_origin)


class ErrorMiddleware:
    """Turns every exception into an error response."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        response_started = False

        async def track_and_send(message: Message) -> None:
            nonlocal response_started
            response_started = True
            await send(message)

        try:
            await self._app(scope, receive, track_and_send)
        except ClientDisconnectedError:
            pass
        except Exception as error:
            if response_started:
                raise
            await error_to_response(scope, error)(scope, receive, send)


class TrustedHostMiddleware:
    """Rejects requests whose Host header is not a name of this server: protection against DNS rebinding."""

    def __init__(self, app: ASGIApp, *, host: str, allowed: Collection[str]) -> None:
        self._app = app
        self._any = not allowed and not is_loopback(host)
        self._allowed = frozenset(name.lower() for name in allowed)
        self._local = is_loopback(host)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not self._any:
            name = _remove_port(Headers(scope=scope).get("host", "")).lower()
            if name not in self._allowed and not (self._local and is_loopback(name)):
                raise Forbidden("this server is not known under that name. Its owner can list it in allowed_hosts.")
        await self._app(scope, receive, send)


def _remove_port(host: str) -> str:
    """The name or address in a Host header."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if host.count(":") == 1 else host


class AuthMiddleware:
    """Finds the route, authenticates the caller and checks the scope that the route requires."""

    def __init__(
        self, app: ASGIApp, *, routes: RouteTable, authenticator: Authenticator, admission: AdmissionController
    ) -> None:
        self._app = app
        self._routes = routes
        self._authenticator = authenticator
        self._admission = admission

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            state = scope.setdefault("state", {})
            state["route"] = self._routes.find_path(get_route_path(scope))
            state["policy"] = policy = self._routes.find_policy(state["route"], scope["method"])
            if state.get("cross_origin") and scope["method"] != "GET":
                raise Forbidden("pages of this origin may not call the server. Its owner can list it in cors_origins.")
            if policy.scope is not None:
                state["caller"] = caller = await self._authenticate(scope)
                if not caller.has_scope(policy.scope) or (caller.is_site_reader and not policy.site_tokens):
                    raise Forbidden(f"this key may not do that. It needs the scope {policy.scope.value!r}.")
        await self._app(scope, receive, send)

    async def _authenticate(self, scope: Scope) -> Caller:
        # Authentication reads the database, so a request over capacity is rejected before it.
        with self._admission.reserve() if scope["state"]["policy"].admission else nullcontext():
            return await self._authenticator.authenticate(scope, Headers(scope=scope))


class BodyLimitMiddleware:
    """Reads the whole body, within a limit of size and time, before the route is called."""

    def __init__(self, app: ASGIApp, *, max_bytes: int = MAX_BODY_BYTES) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = await self._read(scope, receive)
        replayed = False

        async def replay() -> Message:
            nonlocal replayed
            if replayed:
                return await receive()
            replayed = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self._app(scope, replay, send)

    async def _read(self, scope: Scope, receive: Receive) -> bytes:
        content_length = Headers(scope=scope).get("content-length", "0")
        if not content_length.isdecimal() or int(content_length) > self._max_bytes:
            raise self._too_large()
        parts, received = list[bytes](), 0
        try:
            async with asyncio.timeout(BODY_TIMEOUT_SECONDS):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ClientDisconnectedError
                    parts.append(message.get("body", b""))
                    received += len(parts[-1])
                    if received > self._max_bytes:
                        raise self._too_large()
                    if not message.get("more_body", False):
                        return b"".join(parts)
        except TimeoutError as exc:
            raise DeadlineExceeded("the body of the request did not arrive in time.", stage="reading") from exc

    def _too_large(self) -> TooLarge:
        return TooLarge(f"the body is larger than {self._max_bytes:,} bytes. Send less.")


class AdmissionMiddleware:
    """Holds a slot of the admission controller during requests whose route asks for it."""

    def __init__(self, app: ASGIApp, *, admission: AdmissionController) -> None:
        self._app = app
        self._admission = admission

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["state"]["policy"].admission:
            await self._app(scope, receive, send)
            return
        with self._admission.acquire():
            # Requests over capacity are rejected before the admitted ones start CPU-bound work.
            await fair_yield()
            await self._app(scope, receive, send)
