"""Asking over HTTP: whole answers, events, and errors in one shape."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import httpx
import pytest

from bythebook import Book
from bythebook.server.app import create_app
from bythebook.testing import Fault, ScriptedReply
from tests.server.conftest import HORN, Part
from tests.support.server import ServeBook, ServedBook, ask_for_events, listen, settings_for

pytestmark = pytest.mark.asyncio(loop_scope="session")

QUESTION = {"query": "How often does the fog horn sound?"}


async def test_a_question_gets_a_whole_answer(house: ServedBook) -> None:
    response = await house.client.post("/v1/ask", json=QUESTION)
    said = response.json()
    assert (response.status_code, said["outcome"], said["grounded"]) == (200, "answered", True)
    assert said["answer"] == f"{HORN[:-1]} [1]."
    assert said["sources"]
    assert response.headers["x-request-id"]


async def test_a_stream_sends_all_events_and_ends_with_the_answer(house: ServedBook) -> None:
    told = await ask_for_events(house, QUESTION)
    assert list(dict.fromkeys(event.name for event in told)) == ["state", "sources", "delta", "answer"]
    assert [event.data["state"] for event in told if event.name == "state"] == [
        *("received", "validating", "retrieving", "generating", "completed")
    ]
    assert told[-1].data["answer"] == f"{HORN[:-1]} [1]."
    assert "".join(event.data["text"] for event in told if event.name == "delta").startswith("The horn gives")
    assert [event.id.partition(".")[2] for event in told] == [str(n) for n in range(1, len(told) + 1)]


async def test_stream_in_the_body_has_the_effect_of_the_accept_header(house: ServedBook) -> None:
    response = await house.client.post("/v1/ask", json=QUESTION | {"stream": True})
    assert response.headers["content-type"].startswith("text/event-stream")
    assert "content-length" not in response.headers


async def test_sources_are_left_out_on_request(house: ServedBook) -> None:
    told = await ask_for_events(house, QUESTION | {"include_sources": False})
    assert "sources" not in {event.name for event in told}
    assert told[-1].data["sources"] == []


async def test_a_refusal_is_not_an_error(house: ServedBook) -> None:
    response = await house.client.post("/v1/ask", json={"query": "What is the price of Bitcoin in Brazil today?"})
    assert (response.status_code, response.json()["outcome"]) == (200, "refused")


async def test_a_valid_request_id_of_the_client_is_used(house: ServedBook) -> None:
    given = await house.client.get("/health/live", headers={"x-request-id": "from-the-proxy-17"})
    assert given.headers["x-request-id"] == "from-the-proxy-17"
    strange = await house.client.get("/health/live", headers={"x-request-id": "<script>alert(1)</script>"})
    assert "<" not in strange.headers["x-request-id"]


async def test_search_returns_passages(house: ServedBook) -> None:
    found = (await house.client.post("/v1/search", json={"query": "fog horn", "top_k": 2})).json()
    assert [result["position"] for result in found["results"]] == [1, 2]


async def test_health_reports_alive_and_ready(house: ServedBook) -> None:
    assert (await house.client.get("/health/live")).json() == {"status": "alive"}
    assert (await house.client.get("/health/ready")).json() == {"status": "ready"}


async def test_a_failure_is_the_last_event_of_a_stream_and_the_status_of_a_whole_answer(served: ServeBook) -> None:
    async with served(ScriptedReply(fault=Fault.SERVER_ERROR), retrieval_mode="prefetch") as book:
        told = await ask_for_events(book, QUESTION)
        whole = await book.client.post("/v1/ask", json=QUESTION)
    assert (told[-2].data, told[-1].name, told[-1].data["error"]) == ({"state": "failed"}, "error", "api_error")
    assert (whole.status_code, whole.json()["error"]) == (502, "api_error")
    assert whole.json()["request_id"] == whole.headers["x-request-id"]


async def test_a_failing_background_task_does_not_stop_the_server(
    shelved: Path, model_folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Unprepared:
        """A book that cannot make ready what it needs later."""

        def __init__(self, book: Book) -> None:
            self._book = book
            self.tried = asyncio.Event()

        def __getattr__(self, name: str) -> Any:
            return getattr(self._book, name)

        async def prepare(self) -> None:
            self.tried.set()
            raise RuntimeError("half of it was imported")

    settings = settings_for(shelved, model_folder, tmp_path)
    async with Book.open(settings) as opened:
        book = Unprepared(opened)
        app = create_app(cast("Book", book), settings)
        async with listen(app) as url, httpx.AsyncClient(base_url=url, trust_env=False, timeout=60) as client:
            await book.tried.wait()
            answers = [await client.post("/v1/ask", json=QUESTION) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200] * 3
    assert "half of it was imported" in caplog.text


@pytest.mark.parametrize("piece", [".", "a", "(", "no "])
async def test_a_model_that_repeats_itself_without_end_is_cut_off_and_others_are_served(
    house: ServedBook, part: Part, piece: str
) -> None:
    part.reply = replace(part.reply, text=piece * (63_000 // len(piece)), letters=63)
    slowest, asked = 0.0, asyncio.create_task(ask_for_events(house, QUESTION))
    loop = asyncio.get_running_loop()
    while not asked.done():
        started = loop.time()
        assert (await house.client.get("/health/live")).status_code == 200
        slowest = max(slowest, loop.time() - started)
    events = await asked
    assert events[-1].data["outcome"] in ("refused", "answered")
    assert len("".join(event.data["text"] for event in events if event.name == "delta")) < 10_000
    assert slowest < 2.0
