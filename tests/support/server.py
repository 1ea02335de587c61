"""The book behind a real server, in the test's own event loop, with a scripted model behind it if wanted."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI

from bythebook import Book, Settings
from bythebook.server.app import create_app
from bythebook.server.http_protocol import HttpServer
from bythebook.testing import CompletionScript, ScriptedServer


@dataclass(frozen=True, slots=True)
class ServedBook:
    """What a test talks to."""

    url: str
    client: httpx.AsyncClient
    app: FastAPI
    book: Book
    settings: Settings
    model: ScriptedServer | None


@asynccontextmanager
async def listen(app: FastAPI) -> AsyncIterator[str]:
    """The app on a free port of this machine, until the block ends."""
    started = asyncio.Event()
    server = HttpServer(app, started=started.set)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        task = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            await asyncio.wait([task, asyncio.ensure_future(started.wait())], return_when=asyncio.FIRST_COMPLETED)
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            await task


@asynccontextmanager
async def serve_book(settings: Settings, *, script: CompletionScript | None = None) -> AsyncIterator[ServedBook]:
    """The book of these settings on the network, asking a model that follows the script."""
    async with AsyncExitStack() as stack:
        model = await stack.enter_async_context(ScriptedServer(script)) if script is not None else None
        if model:
            given = {name: getattr(settings, name) for name in settings.origins}
            settings = Settings.load(
                given | {"base_url": model.base_url, "model": "scripted"}, folder=settings.data_dir
            )
        book = await stack.enter_async_context(Book.open(settings))
        app = create_app(book, settings)
        url = await stack.enter_async_context(listen(app))
        client = await stack.enter_async_context(httpx.AsyncClient(base_url=url, timeout=60, trust_env=False))
        yield ServedBook(url, client, app, book, settings, model)


ServeBook = Callable[..., AbstractAsyncContextManager[ServedBook]]


def settings_for(shelved: Path, model_folder: Path, tmp_path: Path, **more: object) -> Settings:
    """The small book in a data folder of the test's own: a key closes it for every later server."""
    data = tmp_path / "data"
    data.mkdir(exist_ok=True)
    if not (data / "index").exists():
        (data / "index").symlink_to(shelved / "index")
    chosen: dict[str, object] = {"data_dir": data, "model_folder": model_folder}
    chosen["database_url"] = f"sqlite:///{tmp_path / 'talks.db'}"
    return Settings.load(chosen | more, folder=tmp_path)


@dataclass(frozen=True, slots=True)
class ReceivedEvent:
    """One server-sent event."""

    id: str
    name: str
    data: Any


async def read_events(response: httpx.Response) -> AsyncIterator[ReceivedEvent]:
    """The events of a response, as they come. Comments are passed over."""
    found: dict[str, str] = {}
    async for line in response.aiter_lines():
        if line and not line.startswith(":"):
            name, _, value = line.partition(": ")
            found[name] = value
        elif not line and found:
            yield ReceivedEvent(found["id"], found["event"], json.loads(found["data"]))
            found = {}


async def ask_for_events(served: ServedBook, body: dict[str, Any], **headers: str) -> list[ReceivedEvent]:
    """Ask, and hear all events."""
    told = {"accept": "text/event-stream"} | {name.replace("_", "-"): value for name, value in headers.items()}
    async with served.client.stream("POST", "/v1/ask", json=body, headers=told) as response:
        assert response.status_code == 200, await response.aread()
        return [event async for event in read_events(response)]


async def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for something that tells nobody when it is so, and not for ever."""
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)
