"""Serving: one process that answers readers, from the moment its book is open until it is told to stop."""

from __future__ import annotations

import asyncio
import gc
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from bythebook.errors import Unavailable

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from fastapi import FastAPI

    from bythebook.assemble import Book
    from bythebook.settings import Settings
    from bythebook.web.signals import Stop

CLOSING_SECONDS = 1.5
"""How long it takes, at most, to say the last words to every reader and to close everything."""

NEW_OBJECTS = 10_000
"""How many more objects there must be than before until garbage is looked for."""

NEEDED = ("bythebook.web.app", "bythebook.web.listening", "bythebook.conversations.sql", "bythebook.access.keyring")


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
    from bythebook.assemble import Book
    from bythebook.web.observed import observing

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
    from bythebook.web.app import create_app

    async with book.edition() as edition:
        found = Ready(edition.name, edition.chunk_count, open=await _is_open(book))
    return create_app(book, settings), found


async def _is_open(book: Book) -> bool:
    from bythebook.access.keyring import Keyring

    try:
        return await Keyring(await book.database()).is_open()
    except Unavailable:
        return False  # Without its database a server is alive, not ready, and closed.


async def _answer(app: FastAPI, bound: socket.socket, *, stop: Stop, started: Callable[[], None], grace: float) -> None:
    from bythebook.web.listening import Server

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
