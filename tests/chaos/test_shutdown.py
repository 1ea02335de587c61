"""Shutdown and kills of a server: no turn is lost, and every stream ends with an event.

With `--full-size` there are fifty streams at shutdown, and two hundred kills.
"""

from __future__ import annotations

import asyncio
import random
import signal
import time
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from bythebook.conversations import ConversationTurn, TurnState
from bythebook.conversations.store import open_conversations
from bythebook.testing import CompletionRequest, Fault, ScriptedReply, ScriptedServer, cooperative_model
from tests.support.live_server import Live, Told, ask, eventually, live, reading, session, stream

QUESTION = "How often does the fog horn sound?"


async def kept(database: Path, session_id: str) -> list[ConversationTurn]:
    """The stored turns of a session, read after the end of the server."""
    async with open_conversations(f"sqlite:///{database}") as conversations:
        return await conversations.turns(session_id, user_id="")


# R10: shutdown.


async def test_a_shutdown_finishes_answers_and_ends_the_rest(
    shelved: Path, model_folder: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    full = bool(request.config.getoption("--full-size"))
    readers, grace = (50, 8.0) if full else (4, 3.0)
    database = tmp_path / "talks.db"

    def script(asked: CompletionRequest) -> ScriptedReply:
        """Every other reader gets a slow answer. For the rest, the model hangs."""
        reply = replace(cooperative_model(asked), delay_token=0.02)
        return reply if asked.number % 2 else replace(reply, fault=Fault.HANG, fault_after=2)

    async with ScriptedServer(script) as model:
        settings = {"data_dir": shelved, "model_folder": model_folder, "base_url": model.base_url}
        settings |= {"database_url": f"sqlite:///{database}", "shutdown_seconds": grace}
        settings |= {"first_token_seconds": 60, "answer_seconds": 120}  # every question reaches the model, however late
        with live(tmp_path, **settings) as server:
            async with reading(server.url) as client:
                sessions = [await session(client) for _ in range(readers)]
                tasks = [asyncio.create_task(stream(client, QUESTION, session_id=mine)) for mine in sessions]
                await model.wait_for_requests(readers)
                server.tell(signal.SIGTERM)
                told_at = time.monotonic()
                await _assert_closed(server, tasks)
                told = await asyncio.gather(*tasks)
            code = await asyncio.to_thread(server.ended)
    assert code == 0
    if full:
        assert time.monotonic() - told_at <= 10
    for mine, heard in zip(sessions, told, strict=True):
        _assert_finished(await kept(database, mine), heard)
    assert {heard.end for heard in told} == {"answer", "error"}


async def _assert_closed(server: Live, streams: list[asyncio.Task[Told]]) -> None:
    """During shutdown, new requests are rejected."""
    async with reading(server.url) as newcomer:

        async def is_closed() -> bool:
            return (await newcomer.get("/health/ready")).status_code == 503 or all(map(_is_done, streams))

        await eventually(is_closed, "not ready")
        try:
            refused = await ask(newcomer, QUESTION)
        except httpx.TransportError:
            assert all([(await told).end for told in streams]), "it left before its readers"
        else:
            assert (refused.status_code, refused.json()["error"]) == (503, "unavailable")
            assert int(refused.headers["retry-after"]) >= 1


def _is_done(task: asyncio.Task[Told]) -> bool:
    return task.done()


def _assert_finished(turns: list[ConversationTurn], heard: Told) -> None:
    (turn,) = turns
    if heard.end == "answer":
        assert turn.state is TurnState.COMPLETED
        assert turn.response is not None
        assert turn.response["answer"] == heard.data["answer"]
    else:
        assert heard.code == "unavailable", heard
        assert turn.state is TurnState.FAILED


# R9: killed.


async def test_a_killed_server_loses_no_delivered_answer(
    shelved: Path, model_folder: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    full = bool(request.config.getoption("--full-size"))
    kills, readers = (200, 10) if full else (1, 2)
    database, chance = tmp_path / "talks.db", random.Random(readers)  # noqa: S311 - the same every time
    settings = {"data_dir": shelved, "model_folder": model_folder, "database_url": f"sqlite:///{database}"}
    settings |= {"max_conversation_turns": 100_000}
    talks: dict[str, list[Told]] = {}
    starts: list[float] = []
    for kill in range(kills + 1):
        before = time.monotonic()
        with live(tmp_path, **settings) as server:
            starts.append(time.monotonic() - before)
            async with reading(server.url) as client:
                if not talks:
                    talks = {await session(client): [] for _ in range(readers)}
                if kill < kills:
                    await _talk_until_killed(server, client, talks, chance)
                else:
                    for mine, told in talks.items():
                        told.append(await stream(client, QUESTION, session_id=mine))
    if full:
        assert max(starts) <= 3, starts
    for mine, told in talks.items():
        _assert_nothing_lost(await kept(database, mine), told)


async def _talk_until_killed(
    server: Live, client: httpx.AsyncClient, talks: dict[str, list[Told]], chance: random.Random
) -> None:
    """Every reader asks until the server is killed, which is soon after each has had an answer."""

    async def talk(mine: str, told: list[Told]) -> None:
        while not told or told[-1].end != "cut":
            told.append(await stream(client, QUESTION, session_id=mine))

    before = {mine: len(told) for mine, told in talks.items()}
    async with asyncio.TaskGroup() as group:
        for mine, told in talks.items():
            if told:  # the last stream was interrupted
                told.append(await stream(client, QUESTION, session_id=mine))
            group.create_task(talk(mine, told))
        await eventually(lambda: all(len(told) > before[mine] for mine, told in talks.items()), "an answer for each")
        await asyncio.sleep(chance.uniform(0, 0.2))
        server.tell(signal.SIGKILL)


def _assert_nothing_lost(turns: list[ConversationTurn], told: list[Told]) -> None:
    assert [turn.number for turn in turns] == list(range(1, len(turns) + 1))
    completed = {turn.response["id"]: (turn.number, turn.response["answer"]) for turn in turns if turn.response}
    given = [heard.data for heard in told if heard.end == "answer"]
    assert [completed[answer["id"]] for answer in given] == [(a["turn_number"], a["answer"]) for a in given]
    assert {turn.state for turn in turns} <= {TurnState.COMPLETED, TurnState.INTERRUPTED}
    assert {heard.end for heard in told} <= {"answer", "cut"}
    assert told[-1].end == "answer"
