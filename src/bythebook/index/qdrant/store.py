"""Passages in a collection of a Qdrant server, which does both searches and joins them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np
from qdrant_client import models

from bythebook.errors import QdrantConnectionError
from bythebook.index import Candidate, Filters, Passage, best_first, id_of
from bythebook.index.edge_store import BM25, DENSE, DEPTH, chunk_of, payload_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from bythebook.chunking import Chunk
    from bythebook.embeddings import Vector
    from bythebook.index.qdrant.client import QdrantServer
    from bythebook.index.terms import Words

PointId = int | str
AT_ONCE = 128
"""How many points go over the network together: some megabytes, where a server takes 32."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How a collection keeps its chunks."""

    chunk: Callable[[PointId, dict[str, Any]], Chunk | None]
    """The chunk of a point, or None where the point has none."""
    dense: str | None
    """The name of the vector that is searched. None where there is one, and it has no name."""
    words: str = ""
    """The name of the sparse vector of the words; empty where there is none."""
    module: str = "module_name"
    chapter: str = "chapter_id"
    url: str = "url"

    def where(self, filters: Filters) -> models.Filter | None:
        wanted: list[tuple[str, Any]] = []
        if filters.module:
            wanted.append((self.module, models.MatchValue(value=filters.module)))
        if filters.chapter:
            wanted.append((self.chapter, models.MatchValue(value=filters.chapter)))
        if filters.url_prefix:
            wanted.append((self.url, models.MatchPrefix(prefix=filters.url_prefix)))
        must: list[Any] = [models.FieldCondition(key=key, match=match) for key, match in wanted]
        return models.Filter(must=must) if must else None

    def vector(self, found: Any) -> Any:
        """The searched one of a point's vectors."""
        return found if self.dense is None else found[self.dense]


OURS = Layout(chunk=lambda _point, payload: chunk_of(payload), dense=DENSE, words=BM25)


class QdrantStore:
    """The passages of one collection. `change` is for the one that is filling a collection nobody reads yet."""

    def __init__(
        self,
        server: QdrantServer,
        collection: str,
        words: Words,
        *,
        layout: Layout = OURS,
        exact: bool = False,
    ) -> None:
        self._server = server
        self._collection = collection
        self._words = words
        self._layout = layout
        self._params = models.SearchParams(exact=True) if exact else None

    async def candidates(self, vector: Vector | None, text: str, *, limit: int, filters: Filters) -> list[Candidate]:
        depth = max(limit, DEPTH)
        sides = self._sides(vector, text, depth=depth, filters=filters)
        if not sides:
            return []
        # One more than is wanted. Where it equals the last, it is chance which of the two comes first: then all are
        # looked at.
        found = await self._fused(sides, limit=limit + 1)
        if len(found) > limit and found[limit].score == found[limit - 1].score:
            found = await self._fused(sides, limit=2 * depth)
        return best_first(Candidate(_key(point.id), point.score) for point in found)[:limit]

    def _sides(self, vector: Vector | None, text: str, *, depth: int, filters: Filters) -> list[models.Prefetch]:
        """The rankings there are, without one that has nothing to go by."""
        where, layout = self._layout.where(filters), self._layout
        sides = []
        if vector is not None:
            near = vector.tolist()
            sides.append(
                models.Prefetch(query=near, using=layout.dense, limit=depth, filter=where, params=self._params)
            )
        words = self._words.query(text) if layout.words else None
        if words and words.indices:
            sparse = models.SparseVector(indices=list(words.indices), values=list(words.values))
            sides.append(models.Prefetch(query=sparse, using=layout.words, limit=depth, filter=where))
        return sides

    async def _fused(self, sides: list[models.Prefetch], *, limit: int) -> list[models.ScoredPoint]:
        answer = await self._server.read(
            "searching",
            lambda client: client.query_points(
                self._collection,
                prefetch=sides,
                query=models.FusionQuery(fusion=models.Fusion.DBSF),
                limit=limit,
                with_payload=False,
            ),
        )
        return answer.points

    async def compare(self, vector: Vector, keys: Sequence[int]) -> Mapping[int, tuple[Chunk, float]]:
        if not keys:
            return {}
        answer = await self._server.read(
            "searching",
            lambda client: client.query_points(
                self._collection,
                query=vector.tolist(),
                using=self._layout.dense,
                query_filter=models.Filter(must=[models.HasIdCondition(has_id=[id_of(key) for key in keys])]),
                search_params=models.SearchParams(exact=True),
                limit=len(keys),
                with_payload=True,
            ),
        )
        found = ((point, self._chunk(point.id, point.payload)) for point in answer.points)
        return {_key(point.id): (chunk, point.score) for point, chunk in found if chunk}

    async def fetch(self, chunk_ids: Sequence[str]) -> Mapping[str, Passage]:
        ids = point_ids(chunk_ids)
        passages: dict[str, Passage] = {}
        for first in range(0, len(ids), AT_ONCE):
            for record in await self._retrieved(ids[first : first + AT_ONCE]):
                chunk = self._chunk(record.id, record.payload)
                if chunk and record.vector is not None:
                    vector = np.asarray(self._layout.vector(record.vector), dtype=np.float32)
                    passages[chunk.chunk_id] = Passage(chunk, vector)
        return passages

    async def _retrieved(self, ids: Sequence[PointId]) -> list[models.Record]:
        return await self._server.read(
            "reading passages",
            lambda client: client.retrieve(
                self._collection,
                ids,
                with_payload=True,
                with_vectors=True if self._layout.dense is None else [self._layout.dense],
            ),
        )

    def _chunk(self, point: Any, payload: dict[str, Any] | None) -> Chunk | None:
        try:
            return self._layout.chunk(point, payload or {})
        except (KeyError, TypeError) as exc:
            raise QdrantConnectionError(
                f"the point {point} of {self._collection!r} is not a chunk as we store them ({exc}). Was the "
                "collection changed by another program? Run 'bythebook ingest --rebuild'."
            ) from exc

    async def change(self, *, put: Sequence[Passage], drop: Sequence[str]) -> None:
        if drop:
            await self._server.write(
                "writing",
                lambda client: client.delete(self._collection, list(point_ids(drop)), wait=True),
            )
        for first in range(0, len(put), AT_ONCE):
            points = [self._point(passage) for passage in put[first : first + AT_ONCE]]
            await self._upsert(points)

    async def _upsert(self, points: list[models.PointStruct]) -> None:
        await self._server.write("writing", lambda client: client.upsert(self._collection, points, wait=True))

    def _point(self, passage: Passage) -> models.PointStruct:
        chunk = passage.chunk
        words = self._words.document(chunk.embedded)
        sparse = models.SparseVector(indices=list(words.indices), values=list(words.values))
        vectors: dict[str, Any] = {DENSE: passage.vector.tolist(), BM25: sparse}
        return models.PointStruct(id=chunk.chunk_id, vector=vectors, payload=payload_of(chunk))

    async def count(self, filters: Filters) -> int:
        where = self._layout.where(filters)
        answer = await self._server.read(
            "counting", lambda client: client.count(self._collection, count_filter=where, exact=True)
        )
        return answer.count

    async def present(self, chunk_ids: Sequence[str]) -> set[str]:
        """Which of these are there already."""
        records = await self._server.write(
            "reading passages",
            lambda client: client.retrieve(self._collection, point_ids(chunk_ids), with_payload=False),
        )
        return {str(record.id) for record in records}


def point_ids(chunk_ids: Iterable[str]) -> list[PointId]:
    """The ids as the server knows them. What cannot be one is left out: there is no such point."""
    return [point for point in map(_point_id, chunk_ids) if point is not None]


def _key(point: PointId | UUID) -> int:
    return point if isinstance(point, int) else UUID(str(point)).int


def _point_id(chunk_id: str) -> PointId | None:
    if chunk_id.isascii() and chunk_id.isdigit():
        number = int(chunk_id)
        return number if number < 1 << 64 else None
    try:
        return str(UUID(chunk_id))
    except ValueError:
        return None
