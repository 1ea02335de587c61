"""A server under faults: model failures, disconnects, overload, a changing book, a full disk.

By default a few readers and the invariants. With `--full-size` the promised load, duration and latency.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import resource
import shutil
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

from bythebook.conversations import ConversationTurn, TurnState
from bythebook.conversations.store import open_conversations
from bythebook.index.generations import copy_tree
from bythebook.index.provider import CATALOG_FILE
from bythebook.testing import (
    DEFAULT_FAULTS,
    CompletionRequest,
    Fault,
    Faults,
    ScriptedReply,
    ScriptedServer,
    cooperative_model,
)
from tests.conftest import LIGHTHOUSE
from tests.support.live_server import Live, Told, ask, eventually, is_ready, live, reading, session, stream
from tests.support.reader_load import come_and_go, slow_and_endless_for_leavers

pytestmark = pytest.mark.asyncio(loop_scope="module")

QUESTION = "How often does the fog horn sound?"
HORN = "The horn gives two blasts of three seconds every ninety seconds."

# HANG and DRIP last until the deadline of the answer, which takes too long by default.
QUICK_FAULTS = tuple(fault for fault in DEFAULT_FAULTS if fault not in (Fault.HANG, Fault.DRIP))


@dataclass
class Model:
    """A model whose script a test can replace."""

    script: Callable[[CompletionRequest], ScriptedReply] = cooperative_model
    asked: list[CompletionRequest] = field(default_factory=list)

    def __call__(self, request: CompletionRequest) -> ScriptedReply:
        self.asked.append(request)
        return self.script(request)


@dataclass
class House:
    """A server with low capacity, the small book, and a model whose script a test can replace."""

    server: Live
    client: httpx.AsyncClient
    provider: ScriptedServer
    model: Model
    pages: Path
    data: Path
    places: int

    @property
    def database(self) -> str:
        return f"sqlite:///{self.data / 'conversations.db'}"

    @property
    def asked(self) -> int:
        """The number of model calls. The server records only the latest ones."""
        return self.provider.counters["requests"]

    @property
    def generation(self) -> str:
        return (self.data / "index" / "CURRENT").read_text()

    async def turns(self, session_id: str) -> list[ConversationTurn]:
        """The stored turns of the session."""
        async with open_conversations(self.database) as conversations:
            return await conversations.turns(session_id, user_id="")


@pytest.fixture(scope="module")
def full(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--full-size"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def house(model_folder: Path, tmp_path_factory: pytest.TempPathFactory, full: bool) -> AsyncIterator[House]:
    folder = tmp_path_factory.mktemp("house")
    pages = Path(shutil.copytree(LIGHTHOUSE, folder / "pages"))
    model, places = Model(), 50 if full else 8
    async with ScriptedServer(model) as provider:
        settings: dict[str, object] = {
            "model_folder": model_folder,
            "base_url": provider.base_url,
            "max_concurrent_requests": places,
        }
        if not full:
            settings |= {"first_token_seconds": 60, "answer_seconds": 120}  # however slow the machine is
        with live(folder, "--data-dir", folder / "data", "--ingest", pages, "--watch", **settings) as server:
            async with reading(server.url) as client:
                yield House(server, client, provider, model, pages, folder / "data", places)


@pytest_asyncio.fixture(loop_scope="module")
async def calm(house: House) -> AsyncIterator[House]:
    """The server works normally before and after the test."""
    house.model.script = cooperative_model
    await eventually(lambda: _answers(house), "an answer")
    house.model.asked.clear()
    yield house
    house.model.script = cooperative_model


async def _answers(house: House) -> bool:
    return (await ask(house.client, QUESTION)).status_code == 200


# R1: every fifth model call fails.


async def test_every_stream_ends_and_every_turn_is_stored_whatever_the_model_does(calm: House, full: bool) -> None:
    readers, seconds, turns = (50, 60.0, 10_000) if full else (4, 600.0, 3)
    faults = Faults(0.2, seed=7, kinds=DEFAULT_FAULTS if full else QUICK_FAULTS)
    calm.model.script = lambda request: faults.inject(cooperative_model(request), request.number)
    until = time.monotonic() + seconds

    async def read(reader: int) -> tuple[str, list[Told]]:
        mine, told = await session(calm.client), list[Told]()
        question, chance = f"How often does the fog horn of reader{reader} sound?", random.Random(reader)  # noqa: S311
        while len(told) < turns and time.monotonic() < until:
            await asyncio.sleep(chance.uniform(1, 3) if full else 0)  # readers think
            told.append(await stream(calm.client, question, session_id=mine))
        return mine, told

    heard = await asyncio.gather(*map(read, range(readers)))
    ends = Counter(told.end for _, all_told in heard for told in all_told)
    assert set(ends) <= {"answer", "error"}, ends
    for reader, (mine, told) in enumerate(heard):
        _assert_kept(await calm.turns(mine), told, mine)
        assert all(f"reader{reader} " in turn.question for turn in await calm.turns(mine))
    for request in calm.model.asked:
        assert len(set(re.findall(r"reader[0-9]+", json.dumps(request.body)))) <= 1, "two readers in one prompt"
    if full:
        sys.stderr.write(f"{dict(ends)}\n")
        assert ends["answer"] >= 0.97 * ends.total(), ends


def _assert_kept(turns: list[ConversationTurn], told: list[Told], session_id: str) -> None:
    """The stored turns match what the reader got."""
    assert [turn.number for turn in turns] == list(range(1, len(told) + 1))
    for turn, heard in zip(turns, told, strict=True):
        if heard.end == "answer":
            assert turn.state is TurnState.COMPLETED
            assert turn.response is not None
            assert (heard.data["session_id"], heard.data["turn_number"]) == (session_id, turn.number)
            assert (turn.response["answer"], turn.response["id"]) == (heard.data["answer"], heard.data["id"])
        else:
            assert turn.state is TurnState.FAILED, heard


# R3: disconnects.


@pytest.mark.parametrize("words", [pytest.param(0, id="before the first word"), pytest.param(3, id="in the middle")])
async def test_a_disconnect_stops_the_model(calm: House, words: int) -> None:
    calm.model.script = lambda request: replace(cooperative_model(request), fault=Fault.HANG, fault_after=words)
    mine = await session(calm.client)
    before = calm.asked
    reader = asyncio.create_task(stream(calm.client, QUESTION, session_id=mine))
    await eventually(lambda: calm.asked > before, "the model is asked")
    reader.cancel()
    await asyncio.wait([reader])
    await eventually(lambda: calm.provider.exchanges[-1].left_at is not None, "the model is left alone")
    await eventually(lambda: _all_ended(calm, mine), "the turn ends")
    (turn,) = await calm.turns(mine)
    assert (turn.state, turn.error) == (TurnState.FAILED, "cancelled")


async def _all_ended(house: House, session_id: str) -> bool:
    return all(turn.state is not TurnState.RUNNING for turn in await house.turns(session_id))


async def test_disconnecting_readers_leak_no_resources(calm: House, full: bool) -> None:
    readers, warm_up, seconds = (50, 60.0, 600.0) if full else (2, 0.0, 0.0)
    enough = 1000 if full else 0  # fills the record of the latest requests
    calm.model.script = slow_and_endless_for_leavers
    await come_and_go(calm.server.url, calm.provider, readers=readers, seconds=warm_up, questions=enough)
    files, memory = await _files_at_rest(calm) if full else 0, calm.server.memory()
    delays, ends = await come_and_go(calm.server.url, calm.provider, readers=readers, seconds=seconds)
    assert delays
    if full:
        more_files, more_memory = await _files_at_rest(calm) - files, calm.server.memory() - memory
        sys.stderr.write(f"{dict(ends)}, {len(delays)} left, the model knew after {max(delays):.2f} s at most; ")
        sys.stderr.write(f"memory {more_memory / 1e6:+.1f} MB, file handles {more_files:+}\n")
        assert ends["answer"] > 0.9 * ends.total(), ends
        assert max(delays) <= 1
        assert more_files <= 0
        assert more_memory <= 10_000_000


async def _files_at_rest(house: House) -> int:
    """The minimum number of open files of the server after all readers have disconnected."""
    looks = []
    for _ in range(5):
        await asyncio.sleep(1)
        looks.append(house.server.files())
    return min(looks)


# R7: more requests than capacity.


async def test_requests_over_capacity_are_rejected_immediately(calm: House, full: bool) -> None:
    calm.model.script = lambda request: replace(cooperative_model(request), fault=Fault.HANG)
    before = calm.asked
    seated = [asyncio.create_task(stream(calm.client, QUESTION)) for _ in range(calm.places)]
    await eventually(lambda: calm.asked >= before + calm.places, "every place is taken")
    calm.model.script = cooperative_model

    refused = await ask(calm.client, QUESTION)
    assert (refused.status_code, refused.json()["error"]) == (503, "unavailable")
    assert int(refused.headers["retry-after"]) >= 1
    assert (await calm.client.get("/health/live")).status_code == 200
    assert not any(reader.done() for reader in seated)

    seated.pop().cancel()
    await eventually(lambda: _answers(calm), "a place is free again")
    for reader in seated:
        reader.cancel()
    await asyncio.wait(seated)


async def test_a_burst_does_not_slow_admitted_requests(full: bool, tmp_path: Path) -> None:
    if not full:
        pytest.skip("times hold on a quiet machine only: run it with --full-size")
    from bench.overload import measured
    from bench.processes import bythebook, run
    from bench.simulated_readers import DOCS

    await asyncio.to_thread(run, bythebook("ingest", DOCS, "--data-dir", tmp_path, "--json"))
    figures = await asyncio.to_thread(lambda: list(measured(tmp_path, places=50, seconds=30)))
    sys.stderr.write("\n".join(map(str, figures)) + "\n")
    assert all(figure.passed for figure in figures)


# R12: a book that changes during requests.


async def test_a_new_ingest_fails_no_request(calm: House, full: bool) -> None:
    readers, times, pause = (50, 20, 0.0) if full else (2, 1, 0.1)
    page, said = calm.pages / "signals" / "fog.md", {calm.generation: "ninety"}
    text, finished, told = page.read_text(), asyncio.Event(), list[Told]()

    async def read() -> None:
        while not finished.is_set():
            told.append(await stream(calm.client, QUESTION))
            await asyncio.sleep(pause)

    async with asyncio.TaskGroup() as group:
        for _ in range(readers):
            group.create_task(read())
        for number in range(times):
            page.write_text(text.replace("ninety", f"{number + 100}"))
            await eventually(lambda: calm.generation not in said, "a new generation")
            said[calm.generation] = str(number + 100)
            enough = len(told) + 2 * readers
            await eventually(partial(_has, told, enough), "readers who saw it")
        finished.set()

    assert Counter(reader.code or reader.end for reader in told) == {"answer": len(told)}
    assert {reader.data["metadata"]["index_generation"] for reader in told} == set(said)
    for reader in told:
        quotes = [citation["quote"] for citation in reader.data["citations"] if "every" in citation["quote"]]
        assert all(f"every {said[reader.data['metadata']['index_generation']]} seconds" in quote for quote in quotes)
        assert quotes


def _has(told: list[Told], enough: int) -> bool:
    return len(told) >= enough


# R13: resources that fail and recover.


async def test_a_full_disk_stores_no_partial_turn(calm: House) -> None:
    mine = await session(calm.client)
    with _no_space(calm.server):
        refused = await ask(calm.client, QUESTION, session_id=mine)
        assert (refused.status_code, refused.json()["error"]) == (503, "unavailable")
        await _assert_alive_but_not_ready(calm)
    await eventually(lambda: is_ready(calm.client), "ready again")
    assert (await ask(calm.client, QUESTION, session_id=mine)).status_code == 200
    assert [turn.state for turn in await calm.turns(mine) if turn.state is not TurnState.FAILED] == [
        TurnState.COMPLETED
    ]


@contextmanager
def _no_space(server: Live) -> Iterator[None]:
    """Inside this context the server cannot write to any file."""
    before = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (1, before[1]))
    try:
        yield
    finally:
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, before)


async def test_a_locked_database_is_reported_and_recovers(calm: House) -> None:
    mine = await session(calm.client)
    with closing(sqlite3.connect(calm.data / "conversations.db", isolation_level=None)) as database:
        database.execute("BEGIN IMMEDIATE")
        refused = await ask(calm.client, QUESTION, session_id=mine)
        assert (refused.status_code, refused.json()["error"]) == (503, "unavailable")
        await _assert_alive_but_not_ready(calm)
        database.execute("ROLLBACK")
    await eventually(lambda: is_ready(calm.client), "ready again")
    assert (await ask(calm.client, QUESTION, session_id=mine)).status_code == 200


async def test_an_index_of_another_dimension_is_not_searched(calm: House) -> None:
    with _other_vectors(calm.data / "index"):
        refused = await ask(calm.client, QUESTION)
        assert refused.json()["error"] == "configuration_error"
        assert "ingest --rebuild" in refused.json()["message"]
        await _assert_alive_but_not_ready(calm)
    await eventually(lambda: is_ready(calm.client), "ready again")
    assert (await ask(calm.client, QUESTION)).status_code == 200


@contextmanager
def _other_vectors(index: Path) -> Iterator[None]:
    """Inside this context the index has vectors of another dimension."""
    current = (index / "CURRENT").read_text()
    copy_tree(index / current, index / "g999999")
    (index / "g999999" / "MANIFEST").unlink()
    with closing(sqlite3.connect(index / "g999999" / CATALOG_FILE)) as catalog, catalog:
        changed = catalog.execute("UPDATE facts SET value = replace(value, '384', '512') WHERE name = 'identity'")
        assert changed.rowcount == 1
    try:
        (index / "CURRENT").write_text("g999999")
        yield
    finally:
        (index / "CURRENT").write_text(current)
        shutil.rmtree(index / "g999999")


async def _assert_alive_but_not_ready(house: House) -> None:
    ready = await house.client.get("/health/ready")
    assert (ready.status_code, ready.json()["error"]) == (503, "unavailable")
    assert (await house.client.get("/health/live")).status_code == 200
