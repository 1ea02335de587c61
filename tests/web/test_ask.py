"""Asking over HTTP: whole answers, events, and errors in one shape."""

from __future__ import annotations

from bythebook.testing import Fault, Reply, Usage
from served import Serving, heard

HORN = "The horn gives two blasts of three seconds every ninety seconds."
QUESTION = {"query": "How often does the fog horn sound?"}


async def test_a_question_gets_a_whole_answer(served: Serving) -> None:
    async with served() as book:
        response = await book.client.post("/v1/ask", json=QUESTION)
    said = response.json()
    assert (response.status_code, said["outcome"], said["grounded"]) == (200, "answered", True)
    assert HORN in said["answer"] or "ninety" in said["answer"]
    assert response.headers["x-request-id"]


async def test_a_stream_tells_what_happens_and_ends_with_the_answer(served: Serving) -> None:
    async with served(Reply(f"{HORN} [1]", usage=Usage(300, 20)), retrieval_mode="prefetch") as book:
        told = await heard(book, QUESTION)
    names = list(dict.fromkeys(event.name for event in told))
    assert names == ["state", "sources", "delta", "answer"]
    assert told[-1].data["answer"] == f"{HORN[:-1]} [1]."
    assert [event.id.partition(".")[2] for event in told] == [str(n) for n in range(1, len(told) + 1)]


async def test_a_failure_is_the_last_event_of_a_stream_and_the_status_of_a_whole_answer(served: Serving) -> None:
    async with served(Reply(fault=Fault.SERVER_ERROR), retrieval_mode="prefetch") as book:
        told = await heard(book, QUESTION)
        whole = await book.client.post("/v1/ask", json=QUESTION)
    assert (told[-2].data, told[-1].name, told[-1].data["error"]) == ({"state": "failed"}, "error", "api_error")
    assert (whole.status_code, whole.json()["error"]) == (502, "api_error")
    assert whole.json()["request_id"] == whole.headers["x-request-id"]


async def test_passages_are_found_without_an_answer(served: Serving) -> None:
    async with served() as book:
        found = (await book.client.post("/v1/search", json={"query": "fog horn", "top_k": 2})).json()
    assert [result["position"] for result in found["results"]] == [1, 2]


async def test_it_is_alive_and_ready(served: Serving) -> None:
    async with served() as book:
        assert (await book.client.get("/health/live")).json() == {"status": "alive"}
        assert (await book.client.get("/health/ready")).json() == {"status": "ready"}
