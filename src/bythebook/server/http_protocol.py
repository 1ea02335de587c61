"""The protocol: what comes over a connection becomes requests.

uvicorn's own, by httptools: it takes a third of the time of the other one to read a request and write an answer, but
keeps as much of a request's head as somebody sends, for as long as they take. Here both have an end.

Listening: uvicorn as this server uses it. It does the talking; when to begin and to end is decided elsewhere.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from bythebook.errors import InputError
from bythebook.server.errors import described

if TYPE_CHECKING:
    import asyncio
    import socket
    from collections.abc import Callable, Iterator

    from starlette.types import ASGIApp


LARGEST_HEAD = 65_536


class Protocol(HttpToolsProtocol):
    """One connection."""

    head_seconds = 20.0
    """How long somebody may take to send the head of a request."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._unread = 0
        """How many bytes have come that are neither a whole head nor part of a body."""
        self._patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._unread += len(data)
        super().data_received(data)
        if self._unread > LARGEST_HEAD and not self.transport.is_closing():
            self.send_400_response(f"the head of the request is larger than {LARGEST_HEAD:,} bytes.")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._wait_for_head()

    def on_headers_complete(self) -> None:
        self._unread = 0
        self._stop_waiting()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unread = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._unread = 0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request, and hear no more from there. An answer that is under way ends with it."""
        if not self._answering:
            said = json.dumps(described(InputError(msg), request_id=None)).encode()
            head = f"content-type: application/json\r\ncontent-length: {len(said)}\r\nconnection: close\r\n\r\n"
            self.transport.write(b"HTTP/1.1 400 Bad Request\r\n" + head.encode() + said)
        self.transport.close()

    @property
    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _wait_for_head(self) -> None:
        self._stop_waiting()
        self._patience = self.loop.call_later(self.head_seconds, self._hang_up)

    def _hang_up(self) -> None:
        # An answer that is under way goes on. Behind it an idle connection is closed in any case.
        if not self._answering:
            self.transport.close()

    def _stop_waiting(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None


LAST_WORDS_SECONDS = 1
"""How long a reader may take, at the very end, to receive what was written to it."""

KEEP_ALIVE_SECONDS = 65
"""How long an idle connection stays open: longer than the minute after which proxies let go of theirs."""


class Server(uvicorn.Server):
    """Answers on a socket that was given to it, from `serve` until `should_exit` is set."""

    def __init__(self, app: ASGIApp, *, started: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                lifespan="on",
                http=Protocol,
                ws="none",
                log_config=None,
                # That it begins and ends is said where it is started.
                log_level="warning",
                access_log=False,
                server_header=False,
                # Who is trusted to name another address than its own is decided by the guard.
                proxy_headers=False,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=LAST_WORDS_SECONDS,
            )
        )
        self._report = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._report()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone: whoever runs this process has said already what they mean."""
        yield

    def stop_listening(self) -> None:
        """Let somebody else have the address, while those who are connected are answered."""
        for listener in self.servers if self.started else []:
            listener.close()
