"""The changes: which chunks come and go, and the vector of each one that comes."""

from __future__ import annotations

import hashlib
import json
from contextlib import aclosing
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from bythebook.chunks.split import split
from bythebook.passages import Passage

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bythebook.chunks import Chunk
    from bythebook.chunks.split import Sizes
    from bythebook.ingest import Progress
    from bythebook.ingest.plan import Plan
    from bythebook.passages import PassageStore
    from bythebook.passages.catalogue import Catalogue, ChunkRecord
    from bythebook.vectors import Embedder, Vector
    from bythebook.vectors.journal import Journal

_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class Changes:
    """Chunks to write, and records of those that go: dropped for good, or replaced by one with the same id."""

    put: tuple[Chunk, ...]
    gone: tuple[ChunkRecord, ...]

    @property
    def dropped(self) -> list[str]:
        """The ids that no chunk has any more."""
        kept = {chunk.chunk_id for chunk in self.put}
        return [record.chunk_id for record in self.gone if record.chunk_id not in kept]

    def __bool__(self) -> bool:
        return bool(self.put or self.gone)


def find_changes(plan: Plan, *, book: Catalogue | None, embedder: Embedder, sizes: Sizes) -> Changes:
    """Cut the new and changed pages, and compare their chunks with the ones the book has of them."""
    chunks = [chunk for found in plan.found for chunk in split(found.page, count=embedder.count, sizes=sizes)]
    touched = [*(found.page.url for found in plan.found), *plan.removed]
    before = {record.chunk_id: record for record in (book.chunks(touched) if book else [])}
    same = {c.chunk_id for c in chunks if c.chunk_id in before and before[c.chunk_id].fingerprint == fingerprint(c)}
    return Changes(
        put=tuple(chunk for chunk in chunks if chunk.chunk_id not in same),
        gone=tuple(record for chunk_id, record in before.items() if chunk_id not in same),
    )


def fingerprint(chunk: Chunk) -> str:
    """Of everything that is stored of the chunk but the time: that alone is no reason to write it again."""
    stored = {name: value for name, value in asdict(chunk).items() if name != "created_at"}
    return hashlib.sha256(json.dumps(stored, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Vectors:
    """Where the vectors of chunks come from: known ones first, the embedder only for the rest."""

    embedder: Embedder
    written: Mapping[str, Vector]
    """Those a run that was killed has left in the journal, by the hash of their text, and those of this run."""
    leaving: tuple[Passage, ...]
    """The passages that are dropped or replaced: a chunk that only moved keeps its vector."""

    def known(self) -> dict[str, Vector]:
        """Every vector there is, by the hash of its text."""
        return {p.chunk.content_hash: p.vector for p in self.leaving} | dict(self.written)

    def missing(self, chunks: Iterable[Chunk]) -> dict[str, str]:
        """The texts nobody has a vector for yet, by their hash."""
        known = self.known()
        return {c.content_hash: c.embedded for c in chunks if c.content_hash not in known}

    async def embed(self, chunks: Iterable[Chunk], *, journal: Journal, progress: Progress) -> int:
        """Compute what is missing, writing each vector down at once. Returns how many that were."""
        missing = self.missing(chunks)
        hashes = iter(missing)
        done = 0
        async with aclosing(self.embedder.documents(list(missing.values()))) as vectors:
            async for vector in vectors:
                journal.add(next(hashes), vector)
                done += 1
                progress("embedding", done, len(missing))
        return done

    def passages(self, chunks: Iterable[Chunk]) -> list[Passage]:
        """The chunks with their vectors, once all are known."""
        known = self.known()
        return [Passage(chunk, known[chunk.content_hash]) for chunk in chunks]


async def leaving(store: PassageStore, changes: Changes) -> list[Passage]:
    """The passages that are dropped or replaced, as the book has them now."""
    ids = [record.chunk_id for record in changes.gone]
    passages: list[Passage] = []
    for first in range(0, len(ids), _AT_ONCE):
        passages.extend((await store.fetch(ids[first : first + _AT_ONCE])).values())
    return passages
