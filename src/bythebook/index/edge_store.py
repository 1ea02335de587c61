"""The embedded engine: one Qdrant Edge shard in a folder, in this process.

A chunk as it is stored: under the names a stored chunk has everywhere.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from uuid import UUID

import qdrant_edge as edge

from bythebook.chunking import Chunk
from bythebook.errors import RetrievalError
from bythebook.index import Candidate, Filters, Passage, best_first

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from bythebook.embeddings import Vector
    from bythebook.index.terms import Words


DENSE = "dense"
BM25 = "bm25"
DEPTH = 100
"""How many chunks each ranking puts forward at least."""
_BATCH = 256
_EVERY_ONE = edge.SearchParams(exact=True)

# The fields a filter looks at. A URL is matched by its beginning.
_INDEXED = {
    "module_name": edge.KeywordIndexParams(),
    "chapter_id": edge.KeywordIndexParams(),
    "url": edge.KeywordIndexParams(prefix=True),
}


class EdgeStore:
    """The passages of one generation. Without its log a shard may be read by many processes at once; `change` is
    for the one that is writing a generation nobody reads yet, and lasts only once `close` has returned.

    The engine keeps the interpreter to itself while it searches and reads, so that another thread would only add the
    way there and back.
    """

    def __init__(self, shard: edge.EdgeShard, words: Words) -> None:
        self._shard = shard
        self._words = words
        self._asked: tuple[Vector, edge.Query] | None = None

    @classmethod
    def create(cls, folder: Path, words: Words, *, dimension: int) -> EdgeStore:
        config = edge.EdgeConfig(
            vectors={DENSE: edge.EdgeVectorParams(size=dimension, distance=edge.Distance.Cosine)},
            sparse_vectors={BM25: edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf)},
            # Otherwise the engine drops the texts from the page cache, and a question waits for the disk.
            payload_memory=edge.Memory.Cached,
            # A second thread waits for the first: each search would only be handed over.
            max_search_threads=1,
            wal_enabled=False,
        )
        with _SpeakingToTheEngine(f"create the index in {folder}"):
            shard = edge.EdgeShard.create(str(folder), config)
            for name, params in _INDEXED.items():
                shard.update(edge.UpdateOperation.create_field_index(name, params))
        return cls(shard, words)

    @classmethod
    def open(cls, folder: Path, words: Words) -> EdgeStore:
        with _SpeakingToTheEngine(f"open the index in {folder}"):
            return cls(edge.EdgeShard.load(str(folder)), words)

    def close(self) -> None:
        with _SpeakingToTheEngine("write the index"):
            self._shard.close()

    async def candidates(self, vector: Vector | None, text: str, *, limit: int, filters: Filters) -> list[Candidate]:
        depth = max(limit, DEPTH)
        sides = self._sides(vector, text, depth=depth, filters=filters)
        if not sides:
            return []
        # One more than is wanted. Where it equals the last, it is chance which of the two comes first: then all are
        # looked at.
        found = self._fused(sides, limit=limit + 1)
        if len(found) > limit and found[limit].score == found[limit - 1].score:
            found = self._fused(sides, limit=2 * depth)
        candidates = [Candidate(point.id.int, point.score) for point in found]  # type: ignore[union-attr] # ours are UUIDs
        # The engine has put them in order but for those that are equal.
        if len({point.score for point in found}) < len(found):
            candidates = best_first(candidates)
        return candidates[:limit]

    def _sides(self, vector: Vector | None, text: str, *, depth: int, filters: Filters) -> list[edge.Prefetch]:
        """The two rankings, without one that has nothing to go by."""
        queries: list[edge.Query] = []
        if vector is not None:
            queries.append(self._nearest(vector))
        words = self._words.query(text)
        if words.indices:
            queries.append(edge.Query.Nearest(words, using=BM25))
        where = _where(filters)
        return [edge.Prefetch(limit=depth, query=query, filter=where) for query in queries]

    def _nearest(self, vector: Vector) -> edge.Query:
        # A question is put twice: to all chunks, and to those that were chosen.
        if self._asked is None or self._asked[0] is not vector:
            self._asked = (vector, edge.Query.Nearest(vector.tolist(), using=DENSE))
        return self._asked[1]

    def _fused(self, sides: list[edge.Prefetch], *, limit: int) -> list[edge.ScoredPoint]:
        request = edge.QueryRequest(limit=limit, prefetches=sides, query=edge.Fusion.Dbsf())  # type: ignore[arg-type]
        with _SpeakingToTheEngine("search the index"):
            return self._shard.query(request)

    async def compare(self, vector: Vector, keys: Sequence[int]) -> Mapping[int, tuple[Chunk, float]]:
        if not keys:
            return {}
        # Not by reading their vectors: the engine compares them in less time than it takes to hand them over.
        request = edge.SearchRequest(
            limit=len(keys),
            query=self._nearest(vector),
            filter=edge.Filter(must=[edge.HasIdCondition({UUID(int=key) for key in keys})]),
            params=_EVERY_ONE,
            with_payload=True,
        )
        with _SpeakingToTheEngine("read the index"):
            found = self._shard.search(request)
        return {point.id.int: (chunk_of(point.payload or {}), point.score) for point in found}  # type: ignore[union-attr]

    async def fetch(self, chunk_ids: Sequence[str]) -> Mapping[str, Passage]:
        with _SpeakingToTheEngine("read the index"):
            records = self._shard.retrieve(list(chunk_ids), with_payload=True, with_vector=[DENSE])
        return {str(record.id): _passage(record.payload or {}, record.vector) for record in records}

    async def change(self, *, put: Sequence[Passage], drop: Sequence[str]) -> None:
        await asyncio.to_thread(self._change, put, drop)

    def _change(self, put: Sequence[Passage], drop: Sequence[str]) -> None:
        with _SpeakingToTheEngine("write the index"):
            if drop:
                self._shard.update(edge.UpdateOperation.delete_points(list(drop)))
            for first in range(0, len(put), _BATCH):
                points = [self._point(passage) for passage in put[first : first + _BATCH]]
                self._shard.update(edge.UpdateOperation.upsert_points(points))

    def _point(self, passage: Passage) -> edge.Point:
        chunk = passage.chunk
        vectors = {DENSE: passage.vector.tolist(), BM25: self._words.document(chunk.embedded)}
        return edge.Point(chunk.chunk_id, vectors, payload_of(chunk))

    async def count(self, filters: Filters) -> int:
        with _SpeakingToTheEngine("count the index"):
            return self._shard.count(edge.CountRequest(filter=_where(filters)))


class _SpeakingToTheEngine:
    """Turns the engine's errors into ours, keeping the original as the cause."""

    __slots__ = ("_what",)

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _where: object) -> None:
        if isinstance(error, Exception):  # The engine has no error class of its own.
            raise RetrievalError(f"could not {self._what}: {error}") from error


def _where(filters: Filters) -> edge.Filter | None:
    wanted: list[tuple[str, edge.MatchValue | edge.MatchPrefix]] = []
    if filters.module:
        wanted.append(("module_name", edge.MatchValue(filters.module)))
    if filters.chapter:
        wanted.append(("chapter_id", edge.MatchValue(filters.chapter)))
    if filters.url_prefix:
        wanted.append(("url", edge.MatchPrefix(filters.url_prefix)))
    return edge.Filter(must=[edge.FieldCondition(key=key, match=match) for key, match in wanted]) if wanted else None


def _passage(payload: dict[str, Any], vector: Any) -> Passage:
    # Not above: it takes most of the time of a start, and everything else loads meanwhile.
    import numpy as np

    return Passage(chunk_of(payload), np.asarray(vector[DENSE], dtype=np.float32))


def payload_of(chunk: Chunk) -> dict[str, Any]:
    return {
        "content": chunk.text,
        "url": chunk.url,
        "chunk_id": chunk.chunk_id,
        "document_id": chunk.document_id,
        "title": chunk.title,
        "chunk_index": chunk.chunk_index,
        "created_at": chunk.created_at,
        "heading_hierarchy": list(chunk.heading_hierarchy),
        "module_name": chunk.module_name,
        "chapter_id": chunk.chapter_id,
        "anchor": chunk.anchor,
        "token_count": chunk.token_count,
        "content_hash": chunk.content_hash,
        "start": chunk.start,
        "fence": chunk.fence,
    }


def chunk_of(payload: dict[str, Any]) -> Chunk:
    """The chunk a payload of ours was made from. The payload is used up."""
    text = payload.pop("content")
    headings = tuple(payload.pop("heading_hierarchy"))
    return Chunk(text=text, end=payload["start"] + len(text), heading_hierarchy=headings, **payload)
