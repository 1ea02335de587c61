"""Streams that are lost, left, taken up again, or asked for twice."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator
from typing import Any

import httpx
import pytest

from bythebook.conversations import TurnState
from bythebook.server.admission import Desk
from bythebook.server.streams import Asked, Happening
from bythebook.testing import Fault, Reply
from tests.server.conftest import HORN, Part
from tests.support.server import Served, Serving, events, heard, until

pytestmark = pytest.mark.asyncio(loop_scope="session")

QUESTION = {"query": "How often does the fog horn sound?"}
ANSWER = f"{HORN[:-1]} [1]."


async def asked(house: Served, body: dict[str, Any], **headers: str) -> httpx.Response:
    told = {name.replace("_", "-"): value for name, value in headers.items()}
    return await house.client.post("/v1/ask", json=body, headers=told)


async def test_a_silent_stream_is_kept_open_with_comments(house: Served, part: Part) -> None:
    part.reply = Reply(f"{HORN} [1]", delay_first=0.7)
    response = await house.client.post("/v1/ask", json=QUESTION | {"stream": True})
    assert ": still here" in response.text
    assert "event: answer" in response.text


async def test_a_lost_stream_goes_on_after_the_last_event_that_was_heard(house: Served) -> None:
    told = await heard(house, QUESTION)
    calls = len(house.model.exchanges) if house.model else 0
    again = await heard(house, QUESTION, last_event_id=told[2].id)
    assert again == told[3:]
    assert house.model
    assert len(house.model.exchanges) == calls


async def test_the_last_event_is_told_again_to_who_has_heard_it(house: Served) -> None:
    told = await heard(house, QUESTION)
    assert await heard(house, QUESTION, last_event_id=told[-1].id) == told[-1:]


@pytest.mark.parametrize(
    "lost",
    ["nonsense", ".", "1.1", f"{'5e' * 16}.3", f"{'5e' * 16}.{'9' * 40}", "x.²"],
)
async def test_a_stream_nobody_knows_is_asked_afresh(house: Served, lost: str) -> None:
    told = await heard(house, QUESTION, last_event_id=lost.encode("ascii", "replace").decode())
    assert told[0].data == {"state": "received"}
    assert told[-1].data["answer"] == ANSWER


async def test_the_stream_of_another_question_is_not_given(house: Served) -> None:
    told = await heard(house, QUESTION)
    other = await heard(house, {"query": "How many blasts does the horn give?"}, last_event_id=told[-1].id)
    assert other[0].id != told[-1].id
    assert other[0].data == {"state": "received"}


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("words", [0, 3], ids=["before the first word", "in the middle"])
async def test_who_leaves_ends_the_work(house: Served, part: Part, words: int, *, streamed: bool) -> None:
    assert house.model
    session = (await house.client.post("/v1/sessions")).json()["id"]
    before = house.model.counters["requests"]
    part.reply = Reply(f"{HORN} [1]", fault=Fault.HANG, fault_after=words)
    body = QUESTION | {"stream": streamed, "session_id": session}
    async with httpx.AsyncClient(base_url=house.url, timeout=60, trust_env=False) as reader:
        asking = asyncio.create_task(reader.post("/v1/ask", json=body))
        await asyncio.wait_for(house.model.arrived(before + 1), 60)
        asking.cancel()
        await asyncio.wait([asking])
    exchange = house.model.exchanges[-1]
    await asyncio.wait_for(exchange.ended.wait(), 20)

    conversations = await house.book.conversations()
    await until(lambda: house.app.state.door.desk.taken == 0)
    await until(lambda: not house.app.state.door.desk.running)
    (turn,) = await conversations.turns(session, user_id="")
    assert (turn.state, turn.error) == (TurnState.FAILED, "cancelled")


async def test_a_stream_that_was_left_is_asked_afresh_in_its_session(house: Served, part: Part) -> None:
    session = (await house.client.post("/v1/sessions")).json()["id"]
    body = QUESTION | {"session_id": session}
    part.reply = Reply(f"{HORN} [1]", fault=Fault.HANG, fault_after=3)
    last = ""
    told = {"accept": "text/event-stream"}
    async with house.client.stream("POST", "/v1/ask", json=body, headers=told) as response:
        async for event in events(response):
            last = event.id
            if event.name == "delta":
                break
    part.reply = Reply(f"{HORN} [1]")
    again = await heard(house, body, last_event_id=last)
    assert again[-1].data["answer"] == ANSWER
    assert again[-1].data["turn_number"] == 2


async def test_a_reader_of_half_a_request_holds_nothing_up(house: Served) -> None:
    host, port = house.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as half:
        half.sendall(b"POST /v1/ask HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 50\r\n\r\n{")
        assert (await house.client.get("/health/live")).status_code == 200
        assert house.app.state.door.desk.taken == 0


async def test_ten_at_once_under_one_key_are_one_question(house: Served) -> None:
    assert house.model
    session = (await house.client.post("/v1/sessions")).json()["id"]
    calls = house.model.counters["requests"]
    body = QUESTION | {"session_id": session}
    answers = await asyncio.gather(*(asked(house, body, idempotency_key="one-and-ten") for _ in range(10)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1
    assert house.model.counters["requests"] == calls + 1
    assert (await house.client.get(f"/v1/sessions/{session}")).json()["turn_count"] == 1

    later = await asked(house, body, idempotency_key="one-and-ten")
    assert later.content == answers[0].content
    streamed = await heard(house, body, idempotency_key="one-and-ten")
    assert streamed[-1].data == later.json()
    assert house.model.counters["requests"] == calls + 1


async def test_the_same_key_for_another_question_is_a_conflict(house: Served) -> None:
    assert (await asked(house, QUESTION, idempotency_key="taken")).status_code == 200
    other = await asked(house, {"query": "Who keeps the light?"}, idempotency_key="taken")
    assert (other.status_code, other.json()["error"]) == (409, "conflict")
    streamed = await asked(house, {"query": "Who keeps the light?", "stream": True}, idempotency_key="taken")
    assert streamed.status_code == 409


@pytest.mark.parametrize("key", ["x" * 256, "a\tb"])
async def test_a_key_that_is_none_is_refused(house: Served, key: str) -> None:
    assert (await asked(house, QUESTION, idempotency_key=key)).status_code == 400


async def test_the_last_of_several_readers_to_leave_ends_the_work() -> None:
    go_on, ended = asyncio.Event(), asyncio.Event()

    async def work() -> AsyncGenerator[Happening]:
        try:
            yield Happening("state", "{}")
            await go_on.wait()
            yield Happening("answer", "{}")
        finally:
            ended.set()

    async with Desk(places=1) as desk:
        stream = desk.begin(Asked("", "same", key="shared"), work())
        with stream.follow() as second:
            with stream.follow():
                assert stream.followers == 2
                assert desk.repeated(Asked("", "same", key="shared")) is stream
            go_on.set()
            assert [(await second.get()).name for _ in range(2)] == ["state", "answer"]
        assert not stream.abandoned

        go_on.clear()
        ended.clear()
        left = desk.begin(Asked("", "same", key="shared"), work())
        with left.follow() as only:
            await only.get()
        await ended.wait()
        assert left.abandoned
        assert desk.repeated(Asked("", "same", key="shared")) is None


async def test_a_failure_is_not_kept_under_its_key(served: Serving) -> None:
    replies = [Reply(status=400, error_message="no")] * 2 + [Reply(f"{HORN} [1]")]
    async with served(replies, retrieval_mode="prefetch") as book:
        failed = await asked(book, QUESTION, idempotency_key="again")
        while failed.status_code != 200:
            assert failed.status_code == 502
            failed = await asked(book, QUESTION, idempotency_key="again")
    assert failed.json()["answer"] == ANSWER


async def test_streams_end_in_an_error_when_the_server_shuts_down(served: Serving) -> None:
    async with served(Reply(fault=Fault.HANG), retrieval_mode="prefetch") as book:
        assert book.model
        asking = asyncio.create_task(heard(book, QUESTION))
        await asyncio.wait_for(book.model.arrived(1), 60)
        await book.app.state.door.desk.close(grace=0)
        told = await asking
        turned_away = await asked(book, QUESTION)
        ready = await book.client.get("/health/ready")
        assert (await book.client.get("/health/live")).status_code == 200
    assert (told[-1].name, told[-1].data["error"]) == ("error", "unavailable")
    assert (turned_away.status_code, turned_away.json()["error"]) == (503, "unavailable")
    assert turned_away.headers["retry-after"] == str(turned_away.json()["retry_after"])
    assert ready.status_code == 503
