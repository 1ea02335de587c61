"""Retrieval: from a question to the passages that bear on it, best first."""

from __future__ import annotations

import time
from collections import OrderedDict
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bythebook.observe import span
from bythebook.passages import Filters, RetrievalContext, RetrievalResult
from bythebook.passages.ranking import added, rank

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from contextlib import AbstractAsyncContextManager

    from bythebook.passages import Passage
    from bythebook.passages.shelf import Edition
    from bythebook.vectors import Embedder, Vector

    Bounds = Callable[[str], AbstractAsyncContextManager[None]]
    """Ends a stage that takes too long, by its name."""

CANDIDATES = 100
"""How many chunks each ranking puts forward."""
SAME = 0.9
"""Passages that share this much of their terms say the same: only the better one is shown."""
_REMEMBERED = 256


@asynccontextmanager
async def unbounded(stage: str) -> AsyncIterator[None]:
    """For callers who have all the time."""
    with span(stage):
        yield


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What was found, with the query's vector and how long each step took."""

    context: RetrievalContext
    vector: Vector
    embedding_time_ms: float
    retrieval_time_ms: float


class Retriever:
    """Searches an edition of the book. The same query within a generation is not embedded or searched twice."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._remembered: OrderedDict[tuple[str, str, tuple[str, ...], int, Filters], Retrieved] = OrderedDict()

    async def retrieve(
        self,
        edition: Edition,
        query: str,
        *,
        top_k: int,
        filters: Filters,
        also: tuple[str, ...] = (),
        within: Bounds = unbounded,
    ) -> Retrieved:
        """The `top_k` passages that bear most on `query`, without near-duplicates, always in the same order.

        What is searched for `also` adds to their rank; how near they are is measured by `query` alone.
        """
        key = (edition.name, query, also, top_k, filters)
        if found := self._remembered.get(key):
            self._remembered.move_to_end(key)
            context = replace(found.context, cache_hit=True)
            return replace(found, context=context, embedding_time_ms=0.0, retrieval_time_ms=0.0)
        found = await self._search(edition, (query, *also), top_k=top_k, filters=filters, within=within)
        self._remembered[key] = found
        if len(self._remembered) > _REMEMBERED:
            self._remembered.popitem(last=False)
        return found

    def forget(self) -> None:
        """Search again for what was searched before."""
        self._remembered.clear()

    async def _search(
        self, edition: Edition, texts: tuple[str, ...], *, top_k: int, filters: Filters, within: Bounds
    ) -> Retrieved:
        started = time.perf_counter()
        async with within("embedding"):
            vectors = [await self._embedder.query(text) for text in texts]
        embedded = time.perf_counter()
        async with within("searching"):
            found = [
                await edition.store.candidates(vector, text, limit=CANDIDATES, filters=filters)
                for vector, text in zip(vectors, texts, strict=True)
            ]
            ranked = rank(found[0]) if len(found) == 1 else added([rank(candidates) for candidates in found])
            results = await _chosen(edition, ranked, vectors[0], top_k)
        context = RetrievalContext(query=texts[0], results=results, filter_applied=str(filters))
        searched = time.perf_counter()
        return Retrieved(context, vectors[0], (embedded - started) * 1000, (searched - embedded) * 1000)


async def _chosen(
    edition: Edition, ranked: Sequence[tuple[str, float]], vector: Vector, top_k: int
) -> tuple[RetrievalResult, ...]:
    """The best distinct passages, read from the store as many at a time as are wanted."""
    chosen: list[tuple[Passage, float]] = []
    shown: list[frozenset[int]] = []
    for first in range(0, len(ranked), top_k):
        batch = ranked[first : first + top_k]
        passages = await edition.store.fetch([chunk_id for chunk_id, _ in batch])
        found = [(passages[chunk_id], score) for chunk_id, score in batch if chunk_id in passages]
        for passage, score in sorted(found, key=lambda entry: _order(*entry)):
            terms = edition.words.terms(passage.chunk.text)
            if not any(_alike(terms, other) for other in shown):
                chosen.append((passage, score))
                shown.append(terms)
            if len(chosen) == top_k:
                return _results(chosen, vector)
    return _results(chosen, vector)


def _order(passage: Passage, score: float) -> tuple[float, str, int]:
    return (-score, passage.chunk.url, passage.chunk.chunk_index)


def _alike(terms: frozenset[int], other: frozenset[int]) -> bool:
    fewer, more = sorted((len(terms), len(other)))
    if fewer < SAME * more or not more:
        return False
    common = len(terms & other)
    return common / (fewer + more - common) >= SAME


def _results(chosen: Sequence[tuple[Passage, float]], vector: Vector) -> tuple[RetrievalResult, ...]:
    return tuple(
        result_of(passage, position=position, score=float(passage.vector @ vector), rerank_score=score)
        for position, (passage, score) in enumerate(chosen, start=1)
    )


def result_of(passage: Passage, *, position: int, score: float, rerank_score: float) -> RetrievalResult:
    chunk = passage.chunk
    return RetrievalResult(
        chunk_id=chunk.chunk_id,
        document_id=chunk.document_id,
        text=chunk.text,
        score=min(max(score, 0.0), 1.0),
        position=position,
        url=chunk.url,
        title=chunk.title,
        chunk_index=chunk.chunk_index,
        token_count=chunk.token_count,
        heading_hierarchy=chunk.heading_hierarchy,
        module_name=chunk.module_name,
        chapter_id=chunk.chapter_id,
        anchor=chunk.anchor,
        rerank_score=rerank_score,
        start=chunk.start,
        fence=chunk.fence,
    )
