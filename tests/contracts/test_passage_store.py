"""The contract of every passage store."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING

import numpy as np
import pytest
import pytest_asyncio

from bythebook.index import NO_FILTERS, Filters, Passage, PassageStore
from bythebook.index.edge_store import EdgeStore
from bythebook.index.qdrant.client import QdrantAddress, QdrantServer, open_server
from bythebook.index.qdrant.generations import CollectionParams, ServerGenerations
from bythebook.index.qdrant.store import QdrantStore
from bythebook.index.terms import Bm25Terms
from tests.support.passages import passage
from tests.support.qdrant_book import AVERAGE, MANIFEST
from tests.support.qdrant_server import LIVE, live_server, running_qdrant
from tests.support.word_embedder import DIMENSION, vector_of

if TYPE_CHECKING:
    from bythebook.embeddings import Vector


@asynccontextmanager
async def edge(folder: Path) -> AsyncIterator[PassageStore]:
    store = EdgeStore.create(folder / "shard", Bm25Terms(AVERAGE), dimension=DIMENSION)
    yield store
    store.close()


@asynccontextmanager
async def qdrant_server(_folder: Path) -> AsyncIterator[PassageStore]:
    """A collection of a server, with the Qdrant client library over a socket."""
    with running_qdrant() as here:
        async with open_server(QdrantAddress(here.url), reading_seconds=60.0) as server:
            yield await _collection(server)


@asynccontextmanager
async def qdrant_live(_folder: Path) -> AsyncIterator[PassageStore]:
    """A collection of the server at QDRANT_URL, removed at the end."""
    async with live_server() as server:
        there = ServerGenerations(server, f"bythebook-contract-{uuid.uuid4()}")
        name = await there.begin(MANIFEST, CollectionParams())
        try:
            yield QdrantStore(server, there.collection(name), Bm25Terms(AVERAGE))
        finally:
            await there.remove(name)


async def _collection(server: QdrantServer) -> QdrantStore:
    there = ServerGenerations(server, "book")
    name = await there.begin(MANIFEST, CollectionParams())
    return QdrantStore(server, there.collection(name), Bm25Terms(AVERAGE))


ADAPTERS: list[Callable[[Path], AbstractAsyncContextManager[PassageStore]]] = [
    edge,
    qdrant_server,
    *([qdrant_live] if LIVE else []),
]
"""Each creates an empty store for vectors of DIMENSION, with BM25 weights for chunks of AVERAGE terms."""


@pytest.fixture(params=ADAPTERS, ids=lambda adapter: adapter.__name__)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[PassageStore]:
    async with request.param(tmp_path) as opened:
        yield opened


LAMP = passage("The lamp burns colza oil.", url="https://book.example/keeping/lamp", module_name="Keeping")
HORN = passage("The horn warns ships in fog.", url="https://book.example/signals/horn", module_name="Signals")
FLAG = passage(
    "A red flag means danger.",
    url="https://book.example/signals/flags",
    module_name="Signals",
    chapter_id="signals/flags",
)
ALL = [LAMP, HORN, FLAG]


@pytest_asyncio.fixture(params=ADAPTERS, ids=lambda adapter: adapter.__name__, scope="module", loop_scope="module")
async def filled(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[PassageStore]:
    """A store with three passages, for tests that only read."""
    async with request.param(tmp_path_factory.mktemp("filled")) as opened:
        await opened.update(put=ALL, drop=[])
        yield opened


ONLY_LOOKS = pytest.mark.asyncio(loop_scope="module")


async def ids(store: PassageStore, question: str, *, limit: int = 10, filters: Filters = NO_FILTERS) -> list[str]:
    found = await store.search(vector_of(question), question, limit=limit, filters=filters)
    return [candidate.chunk_id for candidate in found]


def same(one: Passage, other: Passage) -> bool:
    return one.chunk == other.chunk and one.vector.tobytes() == other.vector.tobytes()


async def test_an_empty_store_finds_nothing(store: PassageStore) -> None:
    assert await store.search(vector_of("lamp"), "lamp", limit=5, filters=NO_FILTERS) == []
    assert await store.fetch([LAMP.chunk.chunk_id]) == {}
    assert await store.fetch([]) == {}
    assert await store.count(NO_FILTERS) == 0


async def test_returns_a_passage_bit_for_bit(store: PassageStore) -> None:
    strange = passage(
        "```py\n\tprint('ß 中文 🚀')\r\n\u00a0",
        index=7,
        start=12345,
        title="A “title”",
        heading_hierarchy=("A", "", "b > c"),
        anchor="größe",
        module_name="Module 1",
        chapter_id="a/b",
        created_at="",
        fence="````py",
        table_header="| a |\n| --- |",
        inline_code=((0, 3), (4, 9)),
    )
    await store.update(put=[*ALL, strange], drop=[])
    wanted = [strange, HORN]

    got = await store.fetch([kept.chunk.chunk_id for kept in wanted])

    assert all(same(got[kept.chunk.chunk_id], kept) for kept in wanted)
    assert len(got) == 2


async def test_missing_chunks_are_left_out(store: PassageStore) -> None:
    await store.update(put=[LAMP], drop=[])
    assert list(await store.fetch([HORN.chunk.chunk_id, LAMP.chunk.chunk_id])) == [LAMP.chunk.chunk_id]


async def test_an_upsert_replaces_a_passage(store: PassageStore) -> None:
    await store.update(put=ALL, drop=[])
    moved = passage(LAMP.chunk.text, vector=vector_of("something else"), url=LAMP.chunk.url, module_name="Moved")
    assert moved.chunk.chunk_id == LAMP.chunk.chunk_id

    await store.update(put=[moved], drop=[])

    assert await store.count(NO_FILTERS) == 3
    assert same((await store.fetch([LAMP.chunk.chunk_id]))[LAMP.chunk.chunk_id], moved)
    assert await store.count(Filters(module="Keeping")) == 0


async def test_an_upsert_of_everything_twice_stores_each_once(store: PassageStore) -> None:
    await store.update(put=ALL, drop=[])
    await store.update(put=ALL, drop=[])
    assert await store.count(NO_FILTERS) == 3
    found = await ids(store, "lamp oil")
    assert len(found) == len(set(found)) == 3


async def test_a_deleted_passage_is_gone_from_both_rankings(store: PassageStore) -> None:
    await store.update(put=ALL, drop=[])
    await store.update(put=[], drop=[HORN.chunk.chunk_id, "00000000-0000-4000-8000-000000000000"])

    assert HORN.chunk.chunk_id not in await ids(store, "The horn warns ships in fog.")
    assert await store.fetch([HORN.chunk.chunk_id]) == {}
    assert await store.count(NO_FILTERS) == 2


async def test_one_update_deletes_and_upserts(store: PassageStore) -> None:
    await store.update(put=[LAMP], drop=[])
    await store.update(put=[HORN], drop=[LAMP.chunk.chunk_id])
    assert set(await store.fetch([kept.chunk.chunk_id for kept in ALL])) == {HORN.chunk.chunk_id}


async def test_an_empty_update_is_allowed(store: PassageStore) -> None:
    await store.update(put=[], drop=[])
    assert await store.count(NO_FILTERS) == 0


def on_their_scale(scores: dict[str, float]) -> dict[str, float]:
    """Three standard deviations below the mean become 0, three above become 1."""
    mean, spread = fmean(scores.values()), stdev(scores.values())
    return {name: (score - mean) / (6 * spread) + 0.5 for name, score in scores.items()}


async def test_scores_are_the_normalised_scores_of_both_rankings(store: PassageStore) -> None:
    more = passage("The flag, the flag: the flag of danger.", url="https://book.example/signals/more")
    everything = [*ALL, more]
    await store.update(put=everything, drop=[])
    question = "Which flag means danger?"

    async def look(vector: Vector | None, text: str) -> dict[str, float]:
        found = await store.search(vector, text, limit=10, filters=NO_FILTERS)
        return {candidate.chunk_id: candidate.score for candidate in found}

    both, near, worded = (
        await look(vector_of(question), question),
        await look(vector_of(question), ""),
        await look(None, question),
    )

    cosines = {kept.chunk.chunk_id: float(kept.vector @ vector_of(question)) for kept in everything}
    assert near == pytest.approx(on_their_scale(cosines), abs=1e-4)
    assert set(worded) == {FLAG.chunk.chunk_id, more.chunk.chunk_id}
    assert sum(worded.values()) == pytest.approx(1)
    assert both == pytest.approx({name: near[name] + worded.get(name, 0.0) for name in near}, abs=1e-4)
    assert list(both.values()) == sorted(both.values(), reverse=True)


@ONLY_LOOKS
async def test_a_search_without_vector_and_terms_is_empty(filled: PassageStore) -> None:
    assert await filled.search(None, "the of", limit=10, filters=NO_FILTERS) == []


async def test_returns_the_best_candidates_up_to_the_limit(store: PassageStore) -> None:
    many = [passage(f"The lamp number {number} burns. " * (number % 7), index=number) for number in range(1, 40)]
    await store.update(put=many, drop=[])
    look = partial(store.search, vector_of("lamp"), "lamp number 7", filters=NO_FILTERS)

    assert await look(limit=7) == (await look(limit=100))[:7]


async def test_each_ranking_contributes_at_least_a_hundred_candidates(store: PassageStore) -> None:
    near = [passage(f"Number {number}", vector=vector_of("zebra"), index=number) for number in range(100)]
    far = passage("A zebra.", vector=-vector_of("zebra"), url="https://book.example/far")
    await store.update(put=[*near, far], drop=[])

    assert far.chunk.chunk_id in await ids(store, "zebra", limit=1000)
    assert len(await ids(store, "zebra", limit=1000)) == 101
    nearest = await store.search(vector_of("zebra"), "", limit=100, filters=NO_FILTERS)
    assert far.chunk.chunk_id not in [candidate.chunk_id for candidate in nearest]


@ONLY_LOOKS
async def test_compares_chunks_with_a_vector(filled: PassageStore) -> None:
    vector = vector_of("Which flag means danger?")
    keys = {uuid.UUID(kept.chunk.chunk_id).int: kept for kept in (LAMP, FLAG)}

    compared = await filled.compare(vector, [*keys, uuid.UUID("00000000-0000-4000-8000-000000000000").int])

    assert {key: chunk for key, (chunk, _) in compared.items()} == {key: kept.chunk for key, kept in keys.items()}
    for key, kept in keys.items():
        assert compared[key][1] == pytest.approx(float(kept.vector @ vector), abs=1e-5)
    assert await filled.compare(vector, []) == {}


@ONLY_LOOKS
@pytest.mark.parametrize(
    "text",
    ["", "?!", "the of and", "zzz qqq", "lamp " * 300, "🚀", "\x00"],
    ids=["nothing", "marks", "stop words", "unknown words", "a long text", "emoji", "a null"],
)
async def test_accepts_any_query_text(filled: PassageStore, text: str) -> None:
    found = await filled.search(vector_of(text), text, limit=10, filters=NO_FILTERS)
    assert {candidate.chunk_id for candidate in found} == {kept.chunk.chunk_id for kept in ALL}


@ONLY_LOOKS
@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        pytest.param(NO_FILTERS, [LAMP, HORN, FLAG], id="everywhere"),
        pytest.param(Filters(module="Signals"), [HORN, FLAG], id="a module"),
        pytest.param(Filters(module="Signal"), [], id="half of a module's name"),
        pytest.param(Filters(chapter="signals/flags"), [FLAG], id="a chapter"),
        pytest.param(Filters(url_prefix="https://book.example/signals/"), [HORN, FLAG], id="the beginning of a URL"),
        pytest.param(Filters(url_prefix="https://book.example/signals/horn"), [HORN], id="a whole URL"),
        pytest.param(Filters(url_prefix="signals"), [], id="the middle of a URL"),
        pytest.param(Filters(module="Signals", url_prefix="https://book.example/keeping"), [], id="both must hold"),
    ],
)
async def test_filters(filled: PassageStore, filters: Filters, expected: list[Passage]) -> None:

    assert set(await ids(filled, "lamp horn flag", filters=filters)) == {kept.chunk.chunk_id for kept in expected}
    assert await filled.count(filters) == len(expected)


async def test_candidates_are_deterministic(store: PassageStore) -> None:
    # Many have equal scores, so that only their ids decide the order.
    many = [passage(f"Page {number}", vector=vector_of("same"), index=number) for number in range(60)]
    await store.update(put=many, drop=[])
    names = sorted(kept.chunk.chunk_id for kept in many)
    for _ in range(5):
        found = await store.search(vector_of("same"), "page", limit=20, filters=NO_FILTERS)
        assert [candidate.chunk_id for candidate in found] == names[:20]


@ONLY_LOOKS
async def test_concurrent_searches(filled: PassageStore) -> None:
    questions = ["lamp oil", "horn fog", "red flag"] * 10
    alone = [await ids(filled, question) for question in questions]

    async with asyncio.TaskGroup() as group:
        together = [group.create_task(ids(filled, question)) for question in questions]

    assert [task.result() for task in together] == alone


async def test_stores_many_passages(store: PassageStore) -> None:
    vectors = np.random.default_rng(7).standard_normal((700, DIMENSION)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    many = [passage(f"Line {number}.", vector=vectors[number], index=number) for number in range(700)]
    await store.update(put=many, drop=[])
    await store.update(put=[], drop=[kept.chunk.chunk_id for kept in many[::2]])

    got = await store.fetch([kept.chunk.chunk_id for kept in many])

    assert await store.count(NO_FILTERS) == len(got) == 350
    assert all(same(got[kept.chunk.chunk_id], kept) for kept in many[1::2])
