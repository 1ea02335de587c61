"""The passage store of a Qdrant server, which runs both searches and fuses them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import methodcaller
from typing import Any
from uuid import UUID

import numpy as np
from qdrant_client import models

from bythebook.chunking import Chunk
from bythebook.embeddings import Vector
from bythebook.errors import QdrantConnectionError
from bythebook.index import Candidate, Filters, Passage, sort_candidates, to_point_id
from bythebook.index.edge_store import BM25, DENSE, MIN_RANKING_DEPTH, from_payload, to_payload
from bythebook.index.qdrant.client import QdrantServer
from bythebook.index.terms import Bm25Terms

PointId = int | str
POINTS_PER_REQUEST = 128
"""Points in one request: a few megabytes. A server accepts 32."""


@dataclass(frozen=True, slots=True)
class CollectionLayout:
    """The names of vectors and payload fields in a collection."""

    to_chunk: Callable[[PointId, dict[str, Any]], Chunk | None]
    """Converts a point to a chunk, or None if the point has no text."""
    dense: str | None
    """The name of the dense vector. None if the collection has a single unnamed vector."""
    sparse: str = ""
    """The name of the sparse BM25 vector; empty if there is none."""
    module: str = "module_name"
    chapter: str = "chapter_id"
    url: str = "url"

    def to_filter(self, filters: Filters) -> models.Filter | None:
        must: list[Any] = []
        if filters.module:
            must.append(models.FieldCondition(key=self.module, match=models.MatchValue(value=filters.module)))
        if filters.chapter:
            must.append(models.FieldCondition(key=self.chapter, match=models.MatchValue(value=filters.chapter)))
        if filters.url_prefix:
            must.append(models.FieldCondition(key=self.url, match=models.MatchPrefix(prefix=filters.url_prefix)))
        return models.Filter(must=must) if must else None

    def dense_vector(self, vectors: Any) -> Any:
        """The dense vector of a point's vectors."""
        return vectors if self.dense is None else vectors[self.dense]


DEFAULT_LAYOUT = CollectionLayout(to_chunk=lambda _point, payload: from_payload(payload), dense=DENSE, sparse=BM25)


class QdrantStore:
    """The passages of one collection. `update` is for the single writer of an unpublished generation."""

    def __init__(
        self,
        server: QdrantServer,
        collection: str,
        bm25: Bm25Terms,
        *,
        layout: CollectionLayout = DEFAULT_LAYOUT,
        exact: bool = False,
    ) -> None:
        self._server = server
        self._collection = collection
        self._bm25 = bm25
        self._layout = layout
        self._params = models.SearchParams(exact=True) if exact else None

    async def search(self, vector: Vector | None, text: str, *, limit: int, filters: Filters) -> list[Candidate]:
        depth = max(limit, MIN_RANKING_DEPTH)
        rankings = self._rankings(vector, text, depth=depth, filters=filters)
        if not rankings:
            return []
        # Request one more than the limit. If its score equals the last one, the cut between the two is arbitrary:
        # then fetch all candidates and cut in our own order.
        found = await self._fuse(rankings, limit=limit + 1)
        if len(found) > limit and found[limit].score == found[limit - 1].score:
            found = await self._fuse(rankings, limit=2 * depth)
        return sort_candidates(Candidate(_to_key(point.id), point.score) for point in found)[:limit]

    def _rankings(self, vector: Vector | None, text: str, *, depth: int, filters: Filters) -> list[models.Prefetch]:
        """The dense and the sparse ranking, without one that has no vector or no terms."""
        where, layout = self._layout.to_filter(filters), self._layout
        rankings = []
        if vector is not None:
            rankings.append(
                models.Prefetch(
                    query=vector.tolist(), using=layout.dense, limit=depth, filter=where, params=self._params
                )
            )
        terms = self._bm25.query_vector(text) if layout.sparse else None
        if terms and terms.indices:
            sparse = models.SparseVector(indices=list(terms.indices), values=list(terms.values))
            rankings.append(models.Prefetch(query=sparse, using=layout.sparse, limit=depth, filter=where))
        return rankings

    async def _fuse(self, rankings: list[models.Prefetch], *, limit: int) -> list[models.ScoredPoint]:
        response = await self._server.read(
            "searching",
            lambda client: client.query_points(
                self._collection,
                prefetch=rankings,
                query=models.FusionQuery(fusion=models.Fusion.DBSF),
                limit=limit,
                with_payload=False,
            ),
        )
        return response.points

    async def compare(self, vector: Vector, keys: Sequence[int]) -> Mapping[int, tuple[Chunk, float]]:
        if not keys:
            return {}
        response = await self._server.read(
            "searching",
            lambda client: client.query_points(
                self._collection,
                query=vector.tolist(),
                using=self._layout.dense,
                query_filter=models.Filter(must=[models.HasIdCondition(has_id=[to_point_id(key) for key in keys])]),
                search_params=models.SearchParams(exact=True),
                limit=len(keys),
                with_payload=True,
            ),
        )
        found = ((point, self._to_chunk(point.id, point.payload)) for point in response.points)
        return {_to_key(point.id): (chunk, point.score) for point, chunk in found if chunk}

    async def fetch(self, chunk_ids: Sequence[str]) -> Mapping[str, Passage]:
        ids = to_point_ids(chunk_ids)
        passages: dict[str, Passage] = {}
        for first in range(0, len(ids), POINTS_PER_REQUEST):
            for record in await self._retrieve(ids[first : first + POINTS_PER_REQUEST]):
                chunk = self._to_chunk(record.id, record.payload)
                if chunk and record.vector is not None:
                    vector = np.asarray(self._layout.dense_vector(record.vector), dtype=np.float32)
                    passages[chunk.chunk_id] = Passage(chunk, vector)
        return passages

    async def _retrieve(self, ids: Sequence[PointId]) -> list[models.Record]:
        return await self._server.read(
            "reading passages",
            lambda client: client.retrieve(
                self._collection,
                ids,
                with_payload=True,
                with_vectors=True if self._layout.dense is None else [self._layout.dense],
            ),
        )

    def _to_chunk(self, point: Any, payload: dict[str, Any] | None) -> Chunk | None:
        try:
            return self._layout.to_chunk(point, payload or {})
        except (KeyError, TypeError) as exc:
            raise QdrantConnectionError(
                f"the point {point} of {self._collection!r} is not a chunk in our format ({exc}). Was the "
                "collection changed by another program? Run 'bythebook ingest --rebuild'."
            ) from exc

    async def update(self, *, put: Sequence[Passage], drop: Sequence[str]) -> None:
        if drop:
            ids = to_point_ids(drop)
            await self._server.write("writing", methodcaller("delete", self._collection, ids, wait=True))
        for first in range(0, len(put), POINTS_PER_REQUEST):
            points = [self._point(passage) for passage in put[first : first + POINTS_PER_REQUEST]]
            await self._server.write("writing", methodcaller("upsert", self._collection, points, wait=True))

    def _point(self, passage: Passage) -> models.PointStruct:
        chunk = passage.chunk
        terms = self._bm25.document_vector(chunk.embedded)
        sparse = models.SparseVector(indices=list(terms.indices), values=list(terms.values))
        vectors: dict[str, Any] = {DENSE: passage.vector.tolist(), BM25: sparse}
        return models.PointStruct(id=chunk.chunk_id, vector=vectors, payload=to_payload(chunk))

    async def count(self, filters: Filters) -> int:
        where = self._layout.to_filter(filters)
        response = await self._server.read(
            "counting", lambda client: client.count(self._collection, count_filter=where, exact=True)
        )
        return response.count

    async def find_existing(self, chunk_ids: Sequence[str]) -> set[str]:
        """Those of these ids that the collection has."""
        records = await self._server.write(
            "reading passages",
            lambda client: client.retrieve(self._collection, to_point_ids(chunk_ids), with_payload=False),
        )
        return {str(record.id) for record in records}


def to_point_ids(chunk_ids: Iterable[str]) -> list[PointId]:
    """Convert ids to the types of the server. Ids that are neither a UUID nor an integer are left out."""
    return [point for point in map(_to_point_id, chunk_ids) if point is not None]


def _to_key(point: PointId | UUID) -> int:
    return point if isinstance(point, int) else UUID(str(point)).int


def _to_point_id(chunk_id: str) -> PointId | None:
    if chunk_id.isascii() and chunk_id.isdigit():
        number = int(chunk_id)
        return number if number < 1 << 64 else None
    try:
        return str(UUID(chunk_id))
    except ValueError:
        return None
