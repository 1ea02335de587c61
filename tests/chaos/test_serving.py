"""A server in trouble: its model fails, its readers leave, too many come, its book changes, its disk is full.

Small, it is a handful of readers and what must hold on any machine. With `--full-size` it is as many, for as long and
as quickly as promised.
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
from bythebook.index.provider import CATALOGUE
from bythebook.testing import EVERYDAY_FAULTS, Fault, Faults, Reply, Request, ScriptedServer, cooperative_model
from tests.conftest import LIGHTHOUSE
from tests.support.live_server import Live, Told, ask, eventually, is_ready, live, reading, session, stream
from tests.support.reader_load import come_and_go, slow_and_endless_for_leavers

pytestmark = pytest.mark.asyncio(loop_scope="module")

QUESTION = "How often does the fog horn sound?"
HORN = "The horn gives two blasts of three seconds every ninety seconds."

# A hang or a drip lasts as long as an answer may, which is too long for every day.
QUICK_FAULTS = tuple(fault for fault in EVERYDAY_FAULTS if fault not in (Fault.HANG, Fault.DRIP))


@dataclass
class Model:
    """A model whose behaviour a test may change, and who waits where it is told to."""

    script: Callable[[Request], Reply] = cooperative_model
    asked: list[Request] = field(default_factory=list)

    def __call__(self, request: Request) -> Reply:
        self.asked.append(request)
        return self.script(request)


@dataclass
class House:
    """The small book on a server with few places, and a model behind it that a test may change."""

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
        """How often the model was asked. What it was asked, it remembers of the last few only."""
        return self.provider.counters["requests"]

    @property
    def generation(self) -> str:
        return (self.data / "index" / "CURRENT").read_text()

    async def turns(self, session_id: str) -> list[ConversationTurn]:
        """What was written down of the session."""
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
            "max_readers": places,
        }
        if not full:
            settings |= {"first_token_seconds": 60, "answer_seconds": 120}  # however slow the machine is
        with live(folder, "--data-dir", folder / "data", "--ingest", pages, "--watch", **settings) as server:
            async with reading(server.url) as client:
                yield House(server, client, provider, model, pages, folder / "data", places)


@pytest_asyncio.fixture(loop_scope="module")
async def calm(house: House) -> AsyncIterator[House]:
    """The server with nothing the matter, before and after."""
    house.model.script = cooperative_model
    await eventually(lambda: _answers(house), "an answer")
    house.model.asked.clear()
    yield house
    house.model.script = cooperative_model


async def _answers(house: House) -> bool:
    return (await ask(house.client, QUESTION)).status_code == 200


# R1: a model that fails every fifth time.


async def test_whatever_a_model_does_every_reader_is_told_an_end_and_every_turn_is_kept(
    calm: House, full: bool
) -> None:
    readers, seconds, turns = (50, 60.0, 10_000) if full else (4, 600.0, 3)
    faults = Faults(0.2, seed=7, kinds=EVERYDAY_FAULTS if full else QUICK_FAULTS)
    calm.model.script = lambda request: faults.spoil(cooperative_model(request), request.number)
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
    """What is written down is what the reader was told, turn by turn."""
    assert [turn.number for turn in turns] == list(range(1, len(told) + 1))
    for turn, heard in zip(turns, told, strict=True):
        if heard.end == "answer":
            assert turn.state is TurnState.COMPLETED
            assert turn.response is not None
            assert (heard.data["session_id"], heard.data["turn_number"]) == (session_id, turn.number)
            assert (turn.response["answer"], turn.response["id"]) == (heard.data["answer"], heard.data["id"])
        else:
            assert turn.state is TurnState.FAILED, heard


# R3: readers who leave.


@pytest.mark.parametrize("words", [pytest.param(0, id="before the first word"), pytest.param(3, id="in the middle")])
async def test_when_a_reader_leaves_the_model_is_not_kept_working(calm: House, words: int) -> None:
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


async def test_readers_who_come_and_go_leave_nothing_behind(calm: House, full: bool) -> None:
    readers, warm_up, seconds = (50, 60.0, 600.0) if full else (2, 0.0, 0.0)
    enough = 1000 if full else 0  # to fill what remembers what was asked last
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
    """How many file handles the server has once everybody has gone: the fewest of a few looks."""
    looks = []
    for _ in range(5):
        await asyncio.sleep(1)
        looks.append(house.server.files())
    return min(looks)


# R7: more readers than places.


async def test_readers_beyond_the_places_are_turned_away_at_once(calm: House, full: bool) -> None:
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


async def test_a_crowd_is_noticed_by_nobody_who_has_a_place(full: bool, tmp_path: Path) -> None:
    if not full:
        pytest.skip("times hold on a quiet machine only: run it with --full-size")
    from bench.crowding import measured
    from bench.processes import bythebook, run
    from bench.readers import DOCS

    await asyncio.to_thread(run, bythebook("ingest", DOCS, "--data-dir", tmp_path, "--json"))
    figures = await asyncio.to_thread(lambda: list(measured(tmp_path, places=50, seconds=30)))
    sys.stderr.write("\n".join(map(str, figures)) + "\n")
    assert all(figure.passed for figure in figures)


# R12: a book that changes while it is read.


async def test_a_book_that_is_read_in_again_fails_nobody(calm: House, full: bool) -> None:
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


# R13: what a server needs is taken away, and given back.


async def test_without_space_on_the_disk_no_half_turn_is_kept(calm: House) -> None:
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
    """As long as this lasts, the server can write to no file."""
    before = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (1, before[1]))
    try:
        yield
    finally:
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, before)


async def test_while_the_database_is_locked_that_is_said_and_afterwards_all_is_well(calm: House) -> None:
    mine = await session(calm.client)
    with closing(sqlite3.connect(calm.data / "conversations.db", isolation_level=None)) as database:
        database.execute("BEGIN IMMEDIATE")
        refused = await ask(calm.client, QUESTION, session_id=mine)
        assert (refused.status_code, refused.json()["error"]) == (503, "unavailable")
        await _assert_alive_but_not_ready(calm)
        database.execute("ROLLBACK")
    await eventually(lambda: is_ready(calm.client), "ready again")
    assert (await ask(calm.client, QUESTION, session_id=mine)).status_code == 200


async def test_a_book_made_with_other_vectors_is_not_searched(calm: House) -> None:
    with _other_vectors(calm.data / "index"):
        refused = await ask(calm.client, QUESTION)
        assert refused.json()["error"] == "configuration_error"
        assert "ingest --rebuild" in refused.json()["message"]
        await _assert_alive_but_not_ready(calm)
    await eventually(lambda: is_ready(calm.client), "ready again")
    assert (await ask(calm.client, QUESTION)).status_code == 200


@contextmanager
def _other_vectors(index: Path) -> Iterator[None]:
    """As long as this lasts, the book is one whose vectors have another dimension."""
    current = (index / "CURRENT").read_text()
    copy_tree(index / current, index / "g999999")
    with closing(sqlite3.connect(index / "g999999" / CATALOGUE)) as catalogue, catalogue:
        changed = catalogue.execute("UPDATE facts SET value = replace(value, '384', '512') WHERE name = 'identity'")
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
