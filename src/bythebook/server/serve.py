"""Serving: one process that answers readers, from the moment its book is open until it is told to stop.

The event loop of a server: uvloop, which spends less on every word that is passed on. Windows has none.

Binding: the address readers come to, taken before anything slow begins.
"""

from __future__ import annotations

import asyncio
import errno
import gc
import socket
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, TypeVar

from bythebook.errors import ConfigurationError, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator
    from pathlib import Path
    from typing import Any

    from fastapi import FastAPI

    from bythebook.book import Book
    from bythebook.server.signals import Stop
    from bythebook.settings import Settings


CLOSING_SECONDS = 1.5
"""How long it takes, at most, to say the last words to every reader and to close everything."""

NEW_OBJECTS = 10_000
"""How many more objects there must be than before until garbage is looked for."""

NEEDED = (
    "bythebook.server.app",
    "bythebook.server.http_protocol",
    "bythebook.conversations.store",
    "bythebook.access.api_keys",
)


@dataclass(frozen=True, slots=True)
class Ready:
    """What a server says of itself once it answers."""

    generation: str
    chunks: int
    open: bool
    """Whether anybody may ask, because no key has ever been made."""


async def work(
    settings: Settings,
    bound: socket.socket,
    *,
    stop: Stop,
    ready: Callable[[Ready], None],
    say: Callable[[str], None],
    figures: Path | None = None,
) -> None:
    """Answer readers on this socket until told to stop; then finish what was begun, as far as the time allows.

    Several processes add up what they count in the folder `figures`.
    """
    from bythebook.book import Book
    from bythebook.server.telemetry import observing

    with _taking_turns_often(), observing(settings, folder=figures):
        importing = asyncio.create_task(asyncio.to_thread(_import))
        try:
            async with Book.open(settings, say=say) as book:
                await importing
                app, found = await _application(book, settings)

                def started() -> None:
                    # What has been loaded stays: looking through it for garbage would make readers wait. So would
                    # looking often, as nearly everything a question leaves behind is freed without that.
                    gc.freeze()
                    gc.set_threshold(NEW_OBJECTS)
                    ready(found)

                await _answer(app, bound, stop=stop, started=started, grace=settings.shutdown_seconds)
        finally:
            await importing


@contextmanager
def _taking_turns_often() -> Iterator[None]:
    """Whichever waits for its turn must not wait long: model, index and libraries, which load side by side, and later
    the threads that embed and write, which would have to give way to every other reader's words."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.0005)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def _import() -> None:
    for name in NEEDED:
        import_module(name)


async def _application(book: Book, settings: Settings) -> tuple[FastAPI, Ready]:
    """The app for this book, and what there is to say about both. Raises NotFound before the first ingest."""
    from bythebook.server.app import create_app

    async with book.edition() as edition:
        found = Ready(edition.name, edition.chunk_count, open=await _is_open(book))
    return create_app(book, settings), found


async def _is_open(book: Book) -> bool:
    from bythebook.access.api_keys import Keyring

    try:
        return await Keyring(await book.database()).is_open()
    except Unavailable:
        return False  # Without its database a server is alive, not ready, and closed.


async def _answer(app: FastAPI, bound: socket.socket, *, stop: Stop, started: Callable[[], None], grace: float) -> None:
    from bythebook.server.http_protocol import Server

    server = Server(app, started=started)
    serving = asyncio.create_task(server.serve(sockets=[bound]))
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait([serving, stopping], return_when=asyncio.FIRST_COMPLETED)
        if stop.abandoned:
            server.stop_listening()
        if stop:
            await app.state.door.desk.close(grace=grace)
    finally:
        stopping.cancel()
        server.should_exit = True
        await serving


T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    """Do a server's work to its end."""
    with asyncio.Runner(loop_factory=_factory()) as runner:
        return runner.run(work)


def _factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        from uvloop import new_event_loop
    except ModuleNotFoundError:
        return None
    return new_event_loop


def bind(host: str, port: int) -> socket.socket:
    """A socket at this address. Nobody can connect before it listens. Port 0 is any that is free."""
    family, kind, protocol, _, address = _resolved(host, port)
    bound = socket.socket(family, kind, protocol)
    try:
        # A server that has just been stopped leaves its port in a state in which it cannot be taken otherwise.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError as exc:
        bound.close()
        raise ConfigurationError(_reason(exc, host, port)) from exc
    return bound


def url_of(bound: socket.socket) -> str:
    """Where the socket is reached from this machine."""
    host, port = bound.getsockname()[:2]
    if ip_address(host).is_unspecified:  # every address there is, and none that a browser would go to
        host = "::1" if ":" in host else "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _resolved(host: str, port: int) -> tuple[Any, ...]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as exc:
        raise ConfigurationError(f"there is no address {host!r}. {_HOSTS}") from exc
    # Most clients that are told "localhost" try this one, whatever comes first here.
    return min(found, key=lambda entry: entry[0] != socket.AF_INET)


_HOSTS = "Use --host 127.0.0.1 for this machine alone, or 0.0.0.0 for every address it has."


def _reason(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} of {host} is in use. Stop what listens there, or choose another port with --port."
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"port {port} may not be taken by this user. Choose one above 1023 with --port."
    if error.errno == errno.EADDRNOTAVAIL:
        return f"this machine does not have the address {host}. {_HOSTS}"
    return f"there can be no server on port {port} of {host}: {error.strerror}."
