"""The book inside another app, and behind a prefix (integrator)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from bythebook import Book
from bythebook.server.app import create_app, mount_app
from tests.support.server import ServeBook, listen, settings_for

QUESTION = {"query": "How often does the fog horn sound?"}


@asynccontextmanager
async def mounted(shelved: Path, model_folder: Path, folder: Path) -> AsyncIterator[httpx.AsyncClient]:
    settings = settings_for(shelved, model_folder, folder)
    events: list[str] = []

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[dict[str, str]]:
        events.append("started")
        yield {"colour": "red"}

    async with Book.open(settings) as book:
        parent = FastAPI(lifespan=lifespan)
        mount_app(parent, "/book", create_app(book, settings))
        async with listen(parent) as url, httpx.AsyncClient(base_url=url, timeout=60, trust_env=False) as client:
            yield client
    assert events == ["started"]


async def test_a_mounted_book_answers_with_its_pages_and_links(
    shelved: Path, model_folder: Path, tmp_path: Path
) -> None:
    async with mounted(shelved, model_folder, tmp_path) as client:
        answer = (await client.post("/book/v1/ask", json=QUESTION)).json()
        assert answer["outcome"] == "answered"
        session = await client.post("/book/v1/sessions")
        assert session.headers["location"] == f"/book/v1/sessions/{session.json()['id']}"
        assert (await client.get(session.headers["location"])).json() == session.json()
        page = await client.get("/book", follow_redirects=True)
        assert page.url.path == "/book/"
        assert (await client.get(str(page.url.join("widget.js")))).headers["content-type"].startswith("text/javascript")
        assert (await client.get("/book/docs")).status_code == 200
        document = (await client.get("/book/openapi.json")).json()
        assert document["servers"] == [{"url": "/book"}]
        refused = (await client.post("/book/v1/chat/completions", json={"messages": []})).json()
        assert refused["error"]["type"] == "invalid_request_error"
        assert (await client.get("/book/nowhere")).json()["error"] == "not_found"
        assert (await client.get("/nowhere")).json() == {"detail": "Not Found"}


@pytest.mark.parametrize("prefix", ["", "/book"], ids=["the proxy removes the prefix", "the proxy keeps the prefix"])
async def test_a_server_behind_a_prefix_knows_its_address(served: ServeBook, prefix: str) -> None:
    async with served(root_path="/book") as house:
        session = await house.client.post(f"{prefix}/v1/sessions")
        assert session.headers["location"].startswith("/book/v1/sessions/")
        assert (await house.client.get(f"{prefix}/openapi.json")).json()["servers"] == [{"url": "/book"}]
