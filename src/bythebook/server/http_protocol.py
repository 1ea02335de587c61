"""uvicorn's HTTP protocol with limits of time, and uvicorn's server without signal handling.

The parser is uvicorn's standard one, h11, with its limit on the size of a head. What is added here only closes
connections: uvicorn itself waits forever for a first request, for the rest of a head and for a client that does not
read.
"""

import asyncio
import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from bythebook.errors import InputError
from bythebook.server.errors import describe_error

MAX_HEAD_BYTES = 65_536
_SLICE_BYTES = 4_096
"""What is given to the parser at once. It checks the size of a head only while the head is incomplete."""


_TWO_LENGTHS = frozenset((b"content-length", b"transfer-encoding"))
_LEAST_READ = 1_024
"""How many bytes a client must read between two looks at the connection, if that many wait for it."""


class HttpProtocol(H11Protocol):
    """One connection. It answers one request after the other: a request that is sent before the last is answered is
    not read, and the connection closes after that answer.
    """

    head_timeout = 20.0
    """How many seconds a client may take to send the head of a request."""
    stall_timeout = 30.0
    """How many seconds the bytes for a client may wait until it reads some of them."""
    watch_interval = 5.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # narrower, as in uvicorn
        super().connection_made(transport)
        self._unsent = 0
        self._read_at = self.loop.time()
        self._head_began: float | None = self._read_at
        """When the head began that has not arrived completely; None during a response, and between requests."""
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._watcher.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest and not self._has_request and not self.transport.is_closing():
            super().data_received(bytes(rest[:_SLICE_BYTES]))
            rest = rest[_SLICE_BYTES:]
        if self._is_answering and {name for name, _ in self.headers} >= _TWO_LENGTHS:
            # A proxy may have read the other one, and see the next request at another place.
            self.cycle.disconnected = True
            self.send_400_response("A body has either a length or chunks.")
        if self._has_request and (rest or self.conn.trailing_data[0]):
            self.cycle.keep_alive = False
            # uvicorn stops reading where the next request begins. A connection must be read to see that it was closed.
            self.flow.resume_reading()
        self._head_began = None if self._is_answering else self._head_began or self.loop.time()

    def send_400_response(self, msg: str) -> None:
        """Reject an invalid request and close the connection, which also ends a response that is being sent."""
        if not (self._is_answering and self.cycle.response_started):
            error = InputError(f"{msg} A head has at most {MAX_HEAD_BYTES:,} bytes.")
            body = json.dumps(describe_error(error, request_id=None)).encode()
            head = f"content-type: application/json\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
            self.transport.write(b"HTTP/1.1 400 Bad Request\r\n" + head.encode() + body)
        self.transport.close()

    def _should_upgrade(self) -> bool:
        return False  # a server may ignore the wish for another protocol

    @property
    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def _has_request(self) -> bool:
        """Whether a whole request has arrived that is not answered yet."""
        return self._is_answering and not self.cycle.more_body

    def _watch(self) -> None:
        """Close the connection if its head is late, and abort it if its client reads nothing."""
        now, unsent = self.loop.time(), self.transport.get_write_buffer_size()
        if unsent == 0 or unsent <= self._unsent - _LEAST_READ:
            self._read_at = now
        self._unsent = unsent
        if now - self._read_at > self.stall_timeout:
            self.transport.abort()
        elif self._head_began is not None and now - self._head_began > self.head_timeout:
            self.transport.close()
        self._watcher = self.loop.call_later(self.watch_interval, self._watch)


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
                h11_max_incomplete_event_size=MAX_HEAD_BYTES,
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
