"""Listening: uvicorn as this server uses it. It does the talking; when to begin and to end is decided elsewhere."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import uvicorn

from bythebook.web.protocol import Protocol

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator

    from starlette.types import ASGIApp

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
