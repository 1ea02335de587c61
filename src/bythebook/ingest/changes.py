"""The changes: which chunks come and go, and the vector of each one that comes."""

from __future__ import annotations

import asyncio
import hashlib
import json
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from bythebook.chunks import Chunk
from bythebook.passages import Passage
from bythebook.vectors.arriving import as_they_come

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterable, Iterable, Mapping, Sequence

    from bythebook.ingest import Progress
    from bythebook.passages import PassageStore
    from bythebook.passages.catalogue import ChunkRecord
    from bythebook.passages.shelf import Edition
    from bythebook.vectors import Embedder, Vector
    from bythebook.vectors.journal import Journal

_AT_ONCE = 256
_WRITTEN_AT_ONCE = 32
"""Few, because the engine keeps the interpreter to itself while it writes, and embedding waits for its turn."""


@dataclass(slots=True)
class Changes:
    """Chunks to write, and records of those that go: dropped for good, or replaced by one with the same id."""

    put: list[Chunk] = field(default_factory=list)
    gone: list[ChunkRecord] = field(default_factory=list)

    @property
    def dropped(self) -> list[str]:
        """The ids that no chunk has any more."""
        kept = {chunk.chunk_id for chunk in self.put}
        return [record.chunk_id for record in self.gone if record.chunk_id not in kept]

    def add(self, chunks: Sequence[Chunk], *, before: Iterable[ChunkRecord]) -> list[Chunk]:
        """Compare the chunks of a page with the ones the book has of it. Returns those that must be written."""
        known = {record.chunk_id: record for record in before}
        same = {c.chunk_id for c in chunks if c.chunk_id in known and known[c.chunk_id].fingerprint == fingerprint(c)}
        arriving = [chunk for chunk in chunks if chunk.chunk_id not in same]
        self.put.extend(arriving)
        self.gone.extend(record for chunk_id, record in known.items() if chunk_id not in same)
        return arriving


def fingerprint(chunk: Chunk) -> str:
    """Of everything that is stored of the chunk but the time: that alone is no reason to write it again."""
    stored = {name: getattr(chunk, name) for name in Chunk.__slots__ if name != "created_at"}
    return hashlib.sha256(json.dumps(stored, sort_keys=True).encode()).hexdigest()


class Vectors:
    """Where the vectors of chunks come from: known ones first, the embedder only for the rest."""

    def __init__(self, embedder: Embedder, written: Mapping[str, Vector], book: Edition | None) -> None:
        self._embedder = embedder
        self._written = written
        """Those a run that was killed has left in the journal, by the hash of their text, and those of this run."""
        self._book = book
        self._wanted: set[str] = set()
        self._news = asyncio.Event()

    @cached_property
    def _kept(self) -> dict[str, str]:
        """The chunks of the book by the hash of their text: what only moved, or is said twice, keeps its vector."""
        return self._book.catalogue.chunk_ids_by_content() if self._book else {}

    async def missing(self, chunks: AsyncIterable[Chunk]) -> AsyncGenerator[Chunk]:
        """Those nobody has a vector for yet, one for each text."""
        async for chunk in chunks:
            wanted = chunk.content_hash
            if not (wanted in self._wanted or wanted in self._written or wanted in self._kept):
                self._wanted.add(wanted)
                yield chunk

    async def embed(self, chunks: AsyncIterable[Chunk], *, journal: Journal, progress: Progress) -> int:
        """Compute what is missing, writing each vector down at once. Returns how many that were."""
        hashes: list[str] = []

        async def texts() -> AsyncGenerator[str]:
            async with aclosing(self.missing(chunks)) as missing:
                async for chunk in missing:
                    hashes.append(chunk.content_hash)
                    yield chunk.embedded

        done = 0
        async with aclosing(as_they_come(self._embedder, texts())) as vectors:
            async for place, vector in vectors:
                journal.add(hashes[place], vector)
                self._news.set()
                done += 1
                progress("embedding", done, len(self._wanted))
        return done

    async def passages(self, chunks: Sequence[Chunk]) -> AsyncGenerator[list[Passage]]:
        """The chunks with their vectors, some at a time, as soon as they are there. Another task embeds them."""
        for first in range(0, len(chunks), _WRITTEN_AT_ONCE):
            batch = chunks[first : first + _WRITTEN_AT_ONCE]
            while not all(self._is_known(chunk) for chunk in reversed(batch)):
                self._news.clear()
                await self._news.wait()
            known = await self._of(batch)
            yield [Passage(chunk, known[chunk.content_hash]) for chunk in batch]

    def _is_known(self, chunk: Chunk) -> bool:
        return chunk.content_hash in self._written or chunk.content_hash in self._kept

    async def _of(self, chunks: Sequence[Chunk]) -> dict[str, Vector]:
        """The vectors of these chunks by the hash of their text: as just computed, or as the book has them."""
        hashes = {chunk.content_hash for chunk in chunks}
        vectors = {hashed: self._written[hashed] for hashed in hashes if hashed in self._written}
        if self._book and (rest := hashes - vectors.keys()):
            kept = await self._book.store.fetch([self._kept[hashed] for hashed in rest])
            vectors |= {passage.chunk.content_hash: passage.vector for passage in kept.values()}
        return vectors


async def leaving(store: PassageStore, changes: Changes) -> list[Passage]:
    """The passages that are dropped or replaced, as the book has them now."""
    ids = [record.chunk_id for record in changes.gone]
    passages: list[Passage] = []
    for first in range(0, len(ids), _AT_ONCE):
        passages.extend((await store.fetch(ids[first : first + _AT_ONCE])).values())
    return passages
