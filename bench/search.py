"""Hybrid search against the engine's own: `python -m bench.search CHUNKS FOLDER` prints milliseconds as JSON.

Both search the same shard with the same vectors and words. The engine's own query fuses 100 candidates of each side and
returns the five best with their payloads. Ours is the whole way from a question with a known vector to the passages:
the same candidates, fused with the evidence of their pages, without near-duplicates, each with its cosine. They run
alternately, so that each runs as often after itself as after the other: the first affects the processor's caches.
The engine's own query is also timed in a thread, as an event loop would usually call it, and separately, because a
thread leaves the caches colder. The vectors are random; the texts are not, so that words have their usual frequencies.
"""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import statistics
import sys
import time
import uuid
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import qdrant_edge as edge

from bench.synthetic_book import Author, things
from bythebook.chunking import Chunk
from bythebook.embeddings import EmbedderId, iterate_texts
from bythebook.index import NO_FILTERS, Passage
from bythebook.index.catalog import Catalog
from bythebook.index.edge_store import BM25, DENSE, MIN_RANKING_DEPTH, EdgeStore
from bythebook.index.provider import IndexSnapshot
from bythebook.index.terms import Bm25Terms
from bythebook.retrieval.calibration import UNCALIBRATED
from bythebook.retrieval.retriever import Retriever

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence

    from bythebook.embeddings import Texts, Vector

DIMENSION, WORDS = 384, Bm25Terms(90.5)
CHUNKS_OF_A_PAGE, SENTENCES, POOL = 10, 7, 20_000
FOUND = 5
QUERIES, WARMING = 300, 10
_AT_ONCE = 2_000


class Known:
    """An embedder that was asked before: the vectors of the questions are at hand."""

    identity = EmbedderId("known", DIMENSION)

    def __init__(self, vectors: dict[str, Vector]) -> None:
        self._vectors = vectors

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    async def embed_documents(self, texts: Texts) -> AsyncGenerator[Vector]:
        async for text in iterate_texts(texts):
            yield self._vectors[text]

    async def embed_query(self, text: str) -> Vector:
        return self._vectors[text]


def build(folder: Path, *, chunks: int) -> None:
    """Write a shard of that many chunks, unless it exists."""
    if (folder / "done").exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    asyncio.run(_fill(folder / "shard", chunks))
    (folder / "done").touch()


async def _fill(folder: Path, chunks: int) -> None:
    numbers = np.random.default_rng(11)
    with closing(EdgeStore.create(folder, WORDS, dimension=DIMENSION)) as store:
        batch: list[Passage] = []
        for chunk in _chunks(chunks):
            batch.append(Passage(chunk, unit_vector(numbers)))
            if len(batch) == _AT_ONCE or chunk.start == chunks - 1:
                await store.update(put=batch, drop=[])
                batch = []


def unit_vector(numbers: np.random.Generator) -> Vector:
    vector = numbers.standard_normal(DIMENSION, dtype=np.float32)
    return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)


def _chunks(count: int) -> Iterator[Chunk]:
    chance = random.Random(13)  # noqa: S311 - the same every time is the point
    author, names = Author(seed=17), things()
    pool = [author.sentence(chance.choice(names)) for _ in range(POOL)]
    for number in range(count):
        page, index = divmod(number, CHUNKS_OF_A_PAGE)
        text = " ".join(chance.choices(pool, k=SENTENCES))
        document = uuid.uuid5(uuid.NAMESPACE_URL, str(page))
        yield Chunk(
            chunk_id=str(uuid.UUID(int=(document.int >> 64 << 64) | (0b10 << 62) | index)),
            document_id=str(document),
            url=f"https://book.example/{page}",
            title=names[page % len(names)],
            text=text,
            start=number,
            end=number + len(text),
            chunk_index=index,
            token_count=180,
            heading_hierarchy=(names[page % len(names)],),
            anchor="",
            module_name=names[page % len(names)].split()[1],
            chapter_id=str(page),
            content_hash=str(number),
            created_at="",
        )


async def measure(folder: Path, *, chunks: int) -> dict[str, float]:
    """Milliseconds of ours, of the engine's, and of the engine's in a thread."""
    numbers, author, names = np.random.default_rng(19), Author(seed=23), things()
    questions = [author.sentence(names[index]) for index in range(QUERIES + WARMING)]
    vectors = {question: unit_vector(numbers) for question in questions}
    with closing(Catalog.edit(folder / "nothing.db")) as catalog:
        shard = edge.EdgeShard.load(str(folder / "shard"))
        store = EdgeStore(shard, WORDS)
        snapshot = IndexSnapshot("bench", store, catalog, WORDS, chunks, UNCALIBRATED)
        retriever = Retriever(Known(vectors))

        async def ours(question: str) -> None:
            await retriever.retrieve(snapshot, question, top_k=FOUND, filters=NO_FILTERS)

        async def engine(question: str) -> None:
            _own_query(shard, question, vectors[question])

        async def in_a_thread(question: str) -> None:
            await asyncio.to_thread(_own_query, shard, question, vectors[question])

        taken = await _taking_turns({"ours": ours, "engine": engine}, questions)
        taken |= await _taking_turns({"engine in a thread": in_a_thread}, questions)
    return {f"{name} {label}": value for name, times in taken.items() for label, value in _percentiles(times).items()}


async def _taking_turns(
    ways: dict[str, Callable[[str], Awaitable[None]]], questions: Sequence[str]
) -> dict[str, list[float]]:
    """Milliseconds of every way to search, for each question but the first few, the other way round each time."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for number, question in enumerate(questions):
        for name in reversed(ways) if number % 2 else ways:
            started = time.perf_counter()
            await ways[name](question)
            if number >= WARMING:
                taken[name].append((time.perf_counter() - started) * 1000)
    return taken


def _own_query(shard: edge.EdgeShard, question: str, vector: Vector) -> list[tuple[object, ...]]:
    sides = [
        edge.Prefetch(limit=MIN_RANKING_DEPTH, query=edge.Query.Nearest(vector.tolist(), using=DENSE)),
        edge.Prefetch(limit=MIN_RANKING_DEPTH, query=edge.Query.Nearest(WORDS.query_vector(question), using=BM25)),
    ]
    request = edge.QueryRequest(limit=FOUND, prefetches=sides, query=edge.Fusion.Dbsf(), with_payload=True)  # type: ignore[arg-type]
    return [(point.id, point.score, point.payload) for point in shard.query(request)]


def _percentiles(times: list[float]) -> dict[str, float]:
    return {"p50 ms": statistics.median(times), "p95 ms": statistics.quantiles(times, n=20)[-1]}


if __name__ == "__main__":
    wanted, place = int(sys.argv[1]), Path(sys.argv[2])
    build(place, chunks=wanted)
    print(json.dumps(asyncio.run(measure(place, chunks=wanted))))
