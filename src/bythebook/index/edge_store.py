"""The passage store of the embedded engine: one Qdrant Edge shard in a folder, searched in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any
from uuid import UUID

import qdrant_edge as edge

from bythebook.chunking import Chunk
from bythebook.embeddings import Vector
from bythebook.errors import RetrievalError
from bythebook.index import Candidate, Filters, Passage, sort_candidates
from bythebook.index.terms import Bm25Terms

DENSE = "dense"
BM25 = "bm25"
MIN_RANKING_DEPTH = 100
"""The least number of candidates of each ranking."""
_BATCH = 256
_EXACT = edge.SearchParams(exact=True)

# The payload fields of filters. A URL is matched by its prefix.
_INDEXED = {
    "module_name": edge.KeywordIndexParams(),
    "chapter_id": edge.KeywordIndexParams(),
    "url": edge.KeywordIndexParams(prefix=True),
}


class EdgeStore:
    """The passages of one generation.

    A shard without a write-ahead log can be read by many processes. `update` is for the single writer of an
    unpublished generation; its changes are durable once `close` has returned.

    The engine holds the interpreter lock while it searches and reads, so a thread would only add overhead.
    """

    def __init__(self, shard: edge.EdgeShard, bm25: Bm25Terms) -> None:
        self._shard = shard
        self._bm25 = bm25
        self._last_query: tuple[Vector, edge.Query] | None = None

    @classmethod
    def create(cls, folder: Path, bm25: Bm25Terms, *, dimension: int) -> EdgeStore:
        config = edge.EdgeConfig(
            vectors={DENSE: edge.EdgeVectorParams(size=dimension, distance=edge.Distance.Cosine)},
            sparse_vectors={BM25: edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf)},
            # By default the engine drops payloads from the page cache, and a question would wait for the disk.
            payload_memory=edge.Memory.Cached,
            # Searches are serialised anyway, so a second thread would only add a handover.
            max_search_threads=1,
            wal_enabled=False,
        )
        with _translate_errors(f"create the index in {folder}"):
            shard = edge.EdgeShard.create(str(folder), config)
            for name, params in _INDEXED.items():
                shard.update(edge.UpdateOperation.create_field_index(name, params))
        return cls(shard, bm25)

    @classmethod
    def open(cls, folder: Path, bm25: Bm25Terms) -> EdgeStore:
        with _translate_errors(f"open the index in {folder}"):
            return cls(edge.EdgeShard.load(str(folder)), bm25)

    def close(self) -> None:
        with _translate_errors("write the index"):
            self._shard.close()

    async def search(self, vector: Vector | None, text: str, *, limit: int, filters: Filters) -> list[Candidate]:
        depth = max(limit, MIN_RANKING_DEPTH)
        rankings = self._rankings(vector, text, depth=depth, filters=filters)
        if not rankings:
            return []
        # Request one more than the limit. If its score equals the last one, the cut between the two is arbitrary:
        # then fetch all candidates and cut in our own order.
        found = self._fuse(rankings, limit=limit + 1)
        if len(found) > limit and found[limit].score == found[limit - 1].score:
            found = self._fuse(rankings, limit=2 * depth)
        candidates = [Candidate(point.id.int, point.score) for point in found]  # type: ignore[union-attr] # our ids are UUIDs
        # The engine has sorted them by score. Only equal scores need our order.
        if len({point.score for point in found}) < len(found):
            candidates = sort_candidates(candidates)
        return candidates[:limit]

    def _rankings(self, vector: Vector | None, text: str, *, depth: int, filters: Filters) -> list[edge.Prefetch]:
        """The dense and the sparse ranking, without one that has no vector or no terms."""
        queries: list[edge.Query] = []
        if vector is not None:
            queries.append(self._nearest(vector))
        terms = self._bm25.query_vector(text)
        if terms.indices:
            queries.append(edge.Query.Nearest(terms, using=BM25))
        where = _to_filter(filters)
        return [edge.Prefetch(limit=depth, query=query, filter=where) for query in queries]

    def _nearest(self, vector: Vector) -> edge.Query:
        # The same vector is used twice: to search all chunks, and to compare the chosen ones.
        if self._last_query is None or self._last_query[0] is not vector:
            self._last_query = (vector, edge.Query.Nearest(vector.tolist(), using=DENSE))
        return self._last_query[1]

    def _fuse(self, rankings: list[edge.Prefetch], *, limit: int) -> list[edge.ScoredPoint]:
        request = edge.QueryRequest(limit=limit, prefetches=rankings, query=edge.Fusion.Dbsf())  # type: ignore[arg-type]
        with _translate_errors("search the index"):
            return self._shard.query(request)

    async def compare(self, vector: Vector, keys: Sequence[int]) -> Mapping[int, tuple[Chunk, float]]:
        if not keys:
            return {}
        # The engine computes the cosines faster than it could return the vectors.
        request = edge.SearchRequest(
            limit=len(keys),
            query=self._nearest(vector),
            filter=edge.Filter(must=[edge.HasIdCondition({UUID(int=key) for key in keys})]),
            params=_EXACT,
            with_payload=True,
        )
        with _translate_errors("read the index"):
            found = self._shard.search(request)
        return {point.id.int: (from_payload(point.payload or {}), point.score) for point in found}  # type: ignore[union-attr]

    async def fetch(self, chunk_ids: Sequence[str]) -> Mapping[str, Passage]:
        with _translate_errors("read the index"):
            records = self._shard.retrieve(list(chunk_ids), with_payload=True, with_vector=[DENSE])
        return {str(record.id): _passage(record.payload or {}, record.vector) for record in records}

    async def update(self, *, put: Sequence[Passage], drop: Sequence[str]) -> None:
        await asyncio.to_thread(self._change, put, drop)

    def _change(self, put: Sequence[Passage], drop: Sequence[str]) -> None:
        with _translate_errors("write the index"):
            if drop:
                self._shard.update(edge.UpdateOperation.delete_points(list(drop)))
            for first in range(0, len(put), _BATCH):
                points = [self._point(passage) for passage in put[first : first + _BATCH]]
                self._shard.update(edge.UpdateOperation.upsert_points(points))

    def _point(self, passage: Passage) -> edge.Point:
        chunk = passage.chunk
        vectors = {DENSE: passage.vector.tolist(), BM25: self._bm25.document_vector(chunk.embedded)}
        return edge.Point(chunk.chunk_id, vectors, to_payload(chunk))

    async def count(self, filters: Filters) -> int:
        with _translate_errors("count the index"):
            return self._shard.count(edge.CountRequest(filter=_to_filter(filters)))


@contextmanager
def _translate_errors(action: str) -> Iterator[None]:
    """Translate the engine's errors into RetrievalError, with the original as the cause."""
    try:
        yield
    except Exception as error:  # The engine raises plain Exception.
        raise RetrievalError(f"could not {action}: {error}") from error


def _to_filter(filters: Filters) -> edge.Filter | None:
    conditions: list[tuple[str, edge.MatchValue | edge.MatchPrefix]] = []
    if filters.module:
        conditions.append(("module_name", edge.MatchValue(filters.module)))
    if filters.chapter:
        conditions.append(("chapter_id", edge.MatchValue(filters.chapter)))
    if filters.url_prefix:
        conditions.append(("url", edge.MatchPrefix(filters.url_prefix)))
    return (
        edge.Filter(must=[edge.FieldCondition(key=key, match=match) for key, match in conditions])
        if conditions
        else None
    )


def _passage(payload: dict[str, Any], vector: Any) -> Passage:
    # Imported here because it takes most of the start-up time, and other modules load in the meantime.
    import numpy as np

    return Passage(from_payload(payload), np.asarray(vector[DENSE], dtype=np.float32))


_STORED_FIELDS = tuple(field.name for field in fields(Chunk) if field.name not in ("text", "end"))


def to_payload(chunk: Chunk) -> dict[str, Any]:
    """The payload of a chunk: its fields by name, but `content` for the text, and no `end`, which follows from it."""
    payload = {name: getattr(chunk, name) for name in _STORED_FIELDS}
    return payload | {
        "content": chunk.text,
        "heading_hierarchy": list(chunk.heading_hierarchy),
        "inline_code": [list(place) for place in chunk.inline_code],
    }


def from_payload(payload: dict[str, Any]) -> Chunk:
    """The chunk of a payload. The payload is consumed."""
    text = payload.pop("content")
    headings = tuple(payload.pop("heading_hierarchy"))
    code = tuple((start, end) for start, end in payload.pop("inline_code", ()))
    end = payload["start"] + len(text)
    return Chunk(text=text, end=end, heading_hierarchy=headings, inline_code=code, **payload)
