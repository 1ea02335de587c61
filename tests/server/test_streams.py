"""Streams that are interrupted, abandoned, resumed, or requested twice."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import httpx
import pytest

from bythebook.conversations import TurnState
from bythebook.server.admission import AdmissionController
from bythebook.server.streams import AnswerStream, StreamEvent, StreamKey
from bythebook.testing import Fault, ScriptedReply
from tests.server.conftest import HORN, Part
from tests.support.server import ServeBook, ServedBook, ask_for_events, read_events, wait_until

pytestmark = pytest.mark.asyncio(loop_scope="session")

QUESTION = {"query": "How often does the fog horn sound?"}
ANSWER = f"{HORN[:-1]} [1]."


async def asked(house: ServedBook, body: dict[str, Any], **headers: str) -> httpx.Response:
    told = {name.replace("_", "-"): value for name, value in headers.items()}
    return await house.client.post("/v1/ask", json=body, headers=told)


async def test_an_idle_stream_gets_heartbeat_comments(house: ServedBook, part: Part) -> None:
    part.reply = ScriptedReply(f"{HORN} [1]", delay_first=0.7)
    response = await house.client.post("/v1/ask", json=QUESTION | {"stream": True})
    assert ": still here" in response.text
    assert "event: answer" in response.text


async def test_a_resumed_stream_continues_after_the_last_received_event(house: ServedBook) -> None:
    told = await ask_for_events(house, QUESTION)
    calls = len(house.model.exchanges) if house.model else 0
    again = await ask_for_events(house, QUESTION, last_event_id=told[2].id)
    assert again == told[3:]
    assert house.model
    assert len(house.model.exchanges) == calls


async def test_the_last_event_is_sent_again_on_resume(house: ServedBook) -> None:
    told = await ask_for_events(house, QUESTION)
    assert await ask_for_events(house, QUESTION, last_event_id=told[-1].id) == told[-1:]


@pytest.mark.parametrize(
    "lost",
    ["nonsense", ".", "1.1", f"{'5e' * 16}.3", f"{'5e' * 16}.{'9' * 40}", "x.²"],
)
async def test_an_unknown_stream_is_answered_by_a_new_question(house: ServedBook, lost: str) -> None:
    told = await ask_for_events(house, QUESTION, last_event_id=lost.encode("ascii", "replace").decode())
    assert told[0].data == {"state": "received"}
    assert told[-1].data["answer"] == ANSWER


async def test_the_stream_of_another_question_is_not_resumed(house: ServedBook) -> None:
    told = await ask_for_events(house, QUESTION)
    other = await ask_for_events(house, {"query": "How many blasts does the horn give?"}, last_event_id=told[-1].id)
    assert other[0].id != told[-1].id
    assert other[0].data == {"state": "received"}


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("words", [0, 3], ids=["before the first word", "in the middle"])
async def test_a_disconnect_cancels_the_question(house: ServedBook, part: Part, words: int, *, streamed: bool) -> None:
    assert house.model
    session = (await house.client.post("/v1/sessions")).json()["id"]
    before = house.model.counters["requests"]
    part.reply = ScriptedReply(f"{HORN} [1]", fault=Fault.HANG, fault_after=words)
    body = QUESTION | {"stream": streamed, "session_id": session}
    async with httpx.AsyncClient(base_url=house.url, timeout=60, trust_env=False) as reader:
        asking = asyncio.create_task(reader.post("/v1/ask", json=body))
        await asyncio.wait_for(house.model.wait_for_requests(before + 1), 60)
        asking.cancel()
        await asyncio.wait([asking])
    exchange = house.model.exchanges[-1]
    await asyncio.wait_for(exchange.ended.wait(), 20)

    conversations = await house.book.conversations()
    await wait_until(lambda: house.app.state.context.admission.active == 0)
    await wait_until(lambda: not house.app.state.context.admission.running)
    (turn,) = await conversations.turns(session, user_id="")
    assert (turn.state, turn.error) == (TurnState.FAILED, "cancelled")


async def test_an_abandoned_question_can_be_asked_again_in_its_session(house: ServedBook, part: Part) -> None:
    session = (await house.client.post("/v1/sessions")).json()["id"]
    body = QUESTION | {"session_id": session}
    part.reply = ScriptedReply(f"{HORN} [1]", fault=Fault.HANG, fault_after=3)
    last = ""
    told = {"accept": "text/event-stream"}
    async with house.client.stream("POST", "/v1/ask", json=body, headers=told) as response:
        async for event in read_events(response):
            last = event.id
            if event.name == "delta":
                break
    part.reply = ScriptedReply(f"{HORN} [1]")
    again = await ask_for_events(house, body, last_event_id=last)
    assert again[-1].data["answer"] == ANSWER
    assert again[-1].data["turn_number"] == 2


async def test_an_incomplete_request_holds_no_slot(house: ServedBook) -> None:
    host, port = house.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as half:
        half.sendall(b"POST /v1/ask HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 50\r\n\r\n{")
        assert (await house.client.get("/health/live")).status_code == 200
        assert house.app.state.context.admission.active == 0


async def test_ten_concurrent_requests_with_one_key_are_one_question(house: ServedBook) -> None:
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
    streamed = await ask_for_events(house, body, idempotency_key="one-and-ten")
    assert streamed[-1].data == later.json()
    assert house.model.counters["requests"] == calls + 1


async def test_an_idempotency_key_with_another_question_is_a_conflict(house: ServedBook) -> None:
    assert (await asked(house, QUESTION, idempotency_key="taken")).status_code == 200
    other = await asked(house, {"query": "Who keeps the light?"}, idempotency_key="taken")
    assert (other.status_code, other.json()["error"]) == (409, "conflict")
    streamed = await asked(house, {"query": "Who keeps the light?", "stream": True}, idempotency_key="taken")
    assert streamed.status_code == 409


@pytest.mark.parametrize("key", ["x" * 256, "a\tb"])
async def test_an_invalid_idempotency_key_is_rejected(house: ServedBook, key: str) -> None:
    assert (await asked(house, QUESTION, idempotency_key=key)).status_code == 400


async def test_the_last_follower_to_leave_cancels_the_question() -> None:
    go_on, ended = asyncio.Event(), asyncio.Event()
    key = StreamKey("", "same", idempotency_key="shared")

    async def work(stream: AnswerStream) -> None:
        try:
            stream.publish(StreamEvent("state", "{}"))
            await go_on.wait()
            stream.publish(StreamEvent("answer", "{}"))
        finally:
            ended.set()

    async with AdmissionController(capacity=1) as admission:
        stream = admission.start(key, work)
        with stream.follow() as second:
            with stream.follow():
                assert stream.followers == 2
                assert admission.find_running(key) is stream
            go_on.set()
            assert [(await second.get()).name for _ in range(2)] == ["state", "answer"]
        assert not stream.abandoned

        go_on.clear()
        ended.clear()
        left = admission.start(key, work)
        with left.follow() as only:
            await only.get()
        await ended.wait()
        assert left.abandoned
        assert admission.find_running(key) is None


async def test_a_failure_is_not_stored_under_its_idempotency_key(served: ServeBook) -> None:
    replies = [ScriptedReply(status=400, error_message="no")] * 2 + [ScriptedReply(f"{HORN} [1]")]
    async with served(replies, retrieval_mode="prefetch") as book:
        failed = await asked(book, QUESTION, idempotency_key="again")
        while failed.status_code != 200:
            assert failed.status_code == 502
            failed = await asked(book, QUESTION, idempotency_key="again")
    assert failed.json()["answer"] == ANSWER


async def test_shutdown_ends_streams_with_an_error(served: ServeBook) -> None:
    async with served(ScriptedReply(fault=Fault.HANG), retrieval_mode="prefetch") as book:
        assert book.model
        asking = asyncio.create_task(ask_for_events(book, QUESTION))
        await asyncio.wait_for(book.model.wait_for_requests(1), 60)
        await book.app.state.context.admission.close(grace=0)
        told = await asking
        turned_away = await asked(book, QUESTION)
        ready = await book.client.get("/health/ready")
        assert (await book.client.get("/health/live")).status_code == 200
    assert (told[-1].name, told[-1].data["error"]) == ("error", "unavailable")
    assert (turned_away.status_code, turned_away.json()["error"]) == (503, "unavailable")
    assert turned_away.headers["retry-after"] == str(turned_away.json()["retry_after"])
    assert ready.status_code == 503
