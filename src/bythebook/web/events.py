"""Events: a stream told to a reader over HTTP, as server-sent events or as its last event alone."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from starlette.responses import Response

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.types import Receive, Scope, Send

    from bythebook.web.streams import Happening, Stream

HEARTBEAT = b": still here\n\n"

STALLED_SECONDS = 30.0
"""How long a reader may take nothing of what is sent before it counts as gone."""


class ReaderLeftError(Exception):
    """Nobody waits for the answer any more."""


@asynccontextmanager
async def while_listening(receive: Receive) -> AsyncIterator[None]:
    """Do this while the reader is there. Raises ReaderLeftError at once when the connection is closed."""
    here = asyncio.current_task()
    left = False

    async def listen() -> None:
        nonlocal left
        while (await receive())["type"] != "http.disconnect":
            pass
        left = True
        if here:
            here.cancel()

    listening = asyncio.create_task(listen())
    try:
        yield
    except asyncio.CancelledError as cancelled:
        if left and here and here.uncancel() == 0:
            raise ReaderLeftError from cancelled
        raise
    finally:
        listening.cancel()


class EventStream(Response):
    """Server-sent events from a stream, the first `after` of them left out; comments keep a silent line open."""

    media_type = "text/event-stream"

    def __init__(self, stream: Stream, *, after: int = 0, heartbeat: float) -> None:
        super().__init__(headers={"cache-control": "no-store", "x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._stream = stream
        self._after = after
        self._heartbeat = heartbeat

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - as ASGI has it
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        try:
            async with while_listening(receive):
                async for chunk in self._chunks():
                    async with asyncio.timeout(STALLED_SECONDS):
                        await send({"type": "http.response.body", "body": chunk, "more_body": True})
        except (ReaderLeftError, TimeoutError):
            return
        await send({"type": "http.response.body", "body": b""})

    async def _chunks(self) -> AsyncIterator[bytes]:
        number, last = self._after, False
        with self._stream.follow(self._after) as heard:
            while not last:
                try:
                    async with asyncio.timeout(self._heartbeat):
                        news = [await heard.get()]
                except TimeoutError:
                    yield HEARTBEAT
                    continue
                while not heard.empty():
                    news.append(heard.get_nowait())
                last = news[-1].is_last
                yield b"".join(self._event(happening, number + place) for place, happening in enumerate(news, start=1))
                number += len(news)

    def _event(self, happening: Happening, number: int) -> bytes:
        return f"id: {self._stream.id}.{number}\nevent: {happening.name}\ndata: {happening.data}\n\n".encode()


async def last_event(stream: Stream, receive: Receive) -> Happening:
    """How the stream ended."""
    async with while_listening(receive):
        with stream.follow() as heard:
            while not (happening := await heard.get()).is_last:
                pass
            return happening
