"""Observed: every request has an id, is logged, counted and traced. Plain ASGI, outermost, so that nothing escapes it.

Only what is the same for many requests is told: the route, never the address; no header, no query, no body.
"""

from __future__ import annotations

import re
import sys
import time
import uuid
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from bythebook.telemetry import figure, listening, log, masked, request_id, span
from bythebook.telemetry.logging import Logs, logging_to
from bythebook.telemetry.prometheus import Metrics
from bythebook.telemetry.redaction import hide

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from bythebook.settings import Settings
    from bythebook.telemetry import Listener

READER_LEFT = 499
"""The status, in logs and figures, of a request whose reader left before there was one."""

OTHER = "other"
METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})
QUIET = frozenset({"/health/live", "/health/ready", "/metrics"})
"""Asked for every few seconds by machines: not worth a line each while all is well."""

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{8,64}")


@contextmanager
def observing(settings: Settings, *, folder: Path | None = None) -> Iterator[None]:
    """Log, count and trace what this process does until the block ends, as the settings say.

    The workers of a crew keep their figures in one `folder`, where they are added up.
    """
    hide(settings.secrets())
    content = settings.log_content == "on"
    with ExitStack() as stack:
        listeners: list[Listener] = [Logs(content=content), Metrics(folder)]
        trace: Callable[[], str] = str
        if settings.traces == "on":
            from bythebook.telemetry.tracing import Traces, current_trace, exporting

            listeners.append(Traces(stack.enter_context(exporting())))
            trace = current_trace
        form, level = settings.log_format, settings.log_level
        stack.enter_context(logging_to(sys.stderr, level=level, form=form, content=content, trace=trace))
        stack.enter_context(listening(*listeners))
        yield


class Observed:
    """An app whose requests are told to whoever listens."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        seen = _Seen(scope, send, _identity(headers.get(b"x-request-id", b"").decode("latin-1")))
        before = request_id.set(seen.identity)
        traceparent = headers.get(b"traceparent", b"").decode("latin-1")
        try:
            with span("request", method=seen.method, traceparent=traceparent):
                try:
                    await self._app(scope, receive, seen.send)
                except Exception:
                    seen.status = seen.status or 500
                    raise
                finally:
                    seen.tell()
        finally:
            request_id.reset(before)


class _Seen:
    """What there is to say about one request."""

    def __init__(self, scope: Scope, send: Send, identity: str) -> None:
        scope.setdefault("state", {})["request_id"] = identity
        self.identity = identity
        self.method = scope["method"] if scope["method"] in METHODS else OTHER
        self.status = 0
        self._scope = scope
        self._send = send
        self._bytes = 0
        self._started = time.perf_counter()

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            others = [(name, value) for name, value in message.get("headers", []) if name.lower() != b"x-request-id"]
            message = {**message, "headers": [*others, (b"x-request-id", self.identity.encode())]}
        else:
            self._bytes += len(message.get("body", b""))
        await self._send(message)

    def tell(self) -> None:
        seconds = time.perf_counter() - self._started
        route = self._scope["state"].get("route", OTHER)
        status = self.status or READER_LEFT
        figure("requests", method=self.method, route=route, status=str(status))
        figure("request_seconds", seconds, route=route)
        if route not in QUIET or status >= 500:
            log("request", method=self.method, route=route, status=status, seconds=seconds, bytes=self._bytes)


def _identity(given: str) -> str:
    """The caller's own id where it can be one and is no secret, or else a new one."""
    return given if _REQUEST_ID.fullmatch(given) and masked(given) == given else uuid.uuid4().hex
