"""uvicorn's HTTP protocol with limits for the head of a request, and uvicorn's server without signal handling.

The httptools protocol needs a third of the time of the h11 one for a request, but limits neither the size of the head
nor the time to send it. Both limits are added here.
"""

import asyncio
import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from bythebook.errors import InputError
from bythebook.server.errors import describe_error

MAX_HEAD_BYTES = 65_536


class HttpProtocol(HttpToolsProtocol):
    """One connection, with a limit on the size and the duration of request heads."""

    head_timeout = 20.0
    """How many seconds a client may take to send the head of a request."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._head_bytes = 0
        """How many bytes have arrived since the last complete head or part of a body."""
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # narrower, as in uvicorn
        super().connection_made(transport)
        self._start_head_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_head_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._head_bytes += len(data)
        super().data_received(data)
        if self._head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
            self.send_400_response(f"the head of the request is larger than {MAX_HEAD_BYTES:,} bytes.")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._start_head_timer()

    def on_headers_complete(self) -> None:
        self._head_bytes = 0
        self._cancel_head_timer()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._head_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._head_bytes = 0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Reject an invalid request and close the connection, which also ends a response that is being sent."""
        if not self._is_responding:
            body = json.dumps(describe_error(InputError(msg), request_id=None)).encode()
            head = f"content-type: application/json\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
            self.transport.write(b"HTTP/1.1 400 Bad Request\r\n" + head.encode() + body)
        self.transport.close()

    @property
    def _is_responding(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _start_head_timer(self) -> None:
        self._cancel_head_timer()
        self._head_timer = self.loop.call_later(self.head_timeout, self._on_head_timeout)

    def _on_head_timeout(self) -> None:
        # Do not interrupt a response. After it, the keep-alive timeout closes the connection.
        if not self._is_responding:
            self.transport.close()

    def _cancel_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


FLUSH_SECONDS = 1
"""How long a client may take, at shutdown, to receive the bytes already written."""

KEEP_ALIVE_SECONDS = 65
"""How long an idle connection stays open: longer than the 60 seconds after which proxies close theirs."""


class HttpServer(uvicorn.Server):
    """A uvicorn server on a given socket, from `serve` until `should_exit` is set."""

    def __init__(self, app: ASGIApp, *, started: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                lifespan="on",
                http=HttpProtocol,
                ws="none",
                log_config=None,
                # The caller reports start and end.
                log_level="warning",
                access_log=False,
                server_header=False,
                # client_ip.py decides which proxies are trusted.
                proxy_headers=False,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=FLUSH_SECONDS,
            )
        )
        self._report = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._report()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do nothing: signals.py handles them."""
        yield

    def stop_listening(self) -> None:
        """Free the address for another process, while open connections are served."""
        for listener in self.servers if self.started else []:
            listener.close()
