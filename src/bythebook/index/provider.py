"""Snapshots of the index: one open generation for reading, and the provider that switches to newer generations."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import ExitStack, asynccontextmanager, closing
from dataclasses import dataclass
from typing import Protocol

from bythebook.embeddings import EmbedderId
from bythebook.errors import BookError, ConfigurationError, RetrievalError
from bythebook.index import Calibration, PassageStore
from bythebook.index.catalog import Catalog
from bythebook.index.edge_store import EdgeStore
from bythebook.index.generations import Generations, check_generation, writable_copy
from bythebook.index.terms import Bm25Terms, idf
from bythebook.telemetry import active_listeners, log, metric

CATALOG_FILE = "book.db"
SHARD_FOLDER = "shard"


@dataclass(frozen=True, slots=True)
class IndexSnapshot:
    """One generation of the book, open for reading."""

    name: str
    store: PassageStore
    catalog: Catalog
    bm25: Bm25Terms
    chunk_count: int
    calibration: Calibration
    """The cutoff of the evidence check for this book."""

    def idf_weights(self, terms: Iterable[int]) -> dict[int, float]:
        """The inverse document frequency of each of these terms in this book."""
        counts = self.catalog.term_counts(terms)
        return {term: idf(count, total=self.chunk_count) for term, count in counts.items()}


class SnapshotLoader(Protocol):
    """Opens the current generation, from disk or from a server."""

    async def current(self) -> str:
        """The name of the current generation, empty before the first ingest."""
        ...

    async def open(self, stack: ExitStack) -> IndexSnapshot:
        """Open the current generation until `stack` closes. Raises NotFound before the first ingest."""
        ...


class LocalSnapshotLoader:
    """Opens generations in a folder of this machine."""

    def __init__(self, generations: Generations, identity: EmbedderId) -> None:
        self._generations = generations
        self._identity = identity

    async def current(self) -> str:
        return self._generations.current()

    async def open(self, stack: ExitStack) -> IndexSnapshot:
        snapshot, resources = await asyncio.to_thread(self._open)
        stack.enter_context(resources)
        return snapshot

    def _open(self) -> tuple[IndexSnapshot, ExitStack]:
        with ExitStack() as stack:
            return open_snapshot(self._generations, self._identity, stack), stack.pop_all()


def open_snapshot(generations: Generations, identity: EmbedderId, stack: ExitStack) -> IndexSnapshot:
    """Open the current generation on disk until `stack` closes. Raises NotFound before the first ingest."""
    folder = stack.enter_context(generations.reading())
    check_generation(folder)
    catalog = stack.enter_context(closing(Catalog.open(folder / CATALOG_FILE)))

    def open_store(bm25: Bm25Terms) -> EdgeStore:
        shard = stack.enter_context(writable_copy(folder / SHARD_FOLDER))
        return stack.enter_context(closing(EdgeStore.open(shard, bm25)))

    return build_snapshot(folder.name, catalog, identity, open_store)


def build_snapshot(
    name: str, catalog: Catalog, identity: EmbedderId, open_store: Callable[[Bm25Terms], PassageStore]
) -> IndexSnapshot:
    """The snapshot of an open catalog. Raises ConfigurationError if it was indexed with another embedder."""
    check_embedder_id(catalog, identity)
    bm25 = Bm25Terms(catalog.get_fact("average_length"))
    calibration = Calibration(**catalog.get_fact("calibration"))
    return IndexSnapshot(name, open_store(bm25), catalog, bm25, catalog.chunk_count(), calibration)


def check_embedder_id(catalog: Catalog, identity: EmbedderId) -> None:
    """Raises ConfigurationError if the index was built with another embedder: cosines would be meaningless."""
    stored = EmbedderId(**catalog.get_fact("identity"))
    if stored != identity:
        raise ConfigurationError(
            f"this book was indexed with {stored.model!r} ({stored.dimension} dimensions), but the embedder is "
            f"{identity.model!r} ({identity.dimension}). Use the same embedder, or rebuild the index with "
            "'bythebook ingest --rebuild'."
        )


def read_embedder_id(generations: Generations) -> EmbedderId | None:
    """The embedder of the current generation, None if there is no readable one."""
    try:
        with generations.reading() as folder, closing(Catalog.open(folder / CATALOG_FILE)) as catalog:
            return EmbedderId(**catalog.get_fact("identity"))
    except (BookError, TypeError, ValueError, sqlite3.Error):
        return None


@dataclass(slots=True)
class _OpenSnapshot:
    """A snapshot, the number of its readers, and the resources to close when the last reader leaves."""

    snapshot: IndexSnapshot
    resources: ExitStack
    readers: int = 0


class IndexProvider:
    """Provides the current snapshot. A reader of an older snapshot keeps it unchanged until the reader is done."""

    def __init__(self, loader: SnapshotLoader) -> None:
        self._loader = loader
        self._current: _OpenSnapshot | None = None
        self._lock = asyncio.Lock()
        self._opening: asyncio.Task[_OpenSnapshot] | None = None
        self._closed = False

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[IndexSnapshot]:
        """The current snapshot, unchanged until the block ends. Raises NotFound before the first ingest."""
        current = await self._refresh()
        current.readers += 1
        try:
            yield current.snapshot
        finally:
            current.readers -= 1
            self._close_when_idle(current)

    async def prepare(self) -> None:
        """Open the current snapshot before the first question, if there is one."""
        if await self._loader.current():
            await self._refresh()

    async def _refresh(self) -> _OpenSnapshot:
        async with self._lock:
            current = self._current
            if self._opening is None and (current is None or current.snapshot.name != await self._loader.current()):
                self._opening = asyncio.create_task(self._open())
                self._opening.add_done_callback(self._switch)
            if self._opening:
                # A thread that opens files cannot be cancelled. If this caller is, the next ones use the result.
                try:
                    return await asyncio.shield(self._opening)
                except RetrievalError as error:
                    if current is None:
                        raise
                    log("index_damaged", message=str(error))
                    return current
            if self._current is None:
                raise AssertionError("a snapshot is open or being opened")
            return self._current

    def _switch(self, opening: asyncio.Task[_OpenSnapshot]) -> None:
        """Replace the current snapshot by the one that was opened."""
        self._opening = None
        if opening.cancelled() or opening.exception():
            return
        previous, self._current = self._current, opening.result()
        if previous is not None:
            self._close_when_idle(previous)
        if self._closed:
            self.close()

    def _close_when_idle(self, opened: _OpenSnapshot) -> None:
        if opened is not self._current and opened.readers == 0:
            opened.resources.close()

    async def _open(self) -> _OpenSnapshot:
        with ExitStack() as stack:
            snapshot = await self._loader.open(stack)
            if active_listeners():
                await asyncio.to_thread(_report, snapshot)
            return _OpenSnapshot(snapshot, stack.pop_all())

    def close(self) -> None:
        """Close the current snapshot, and one that is being opened as soon as it is open."""
        self._closed = True
        if self._current is not None:
            self._current.resources.close()
            self._current = None


def _report(snapshot: IndexSnapshot) -> None:
    totals = snapshot.catalog.totals()
    log("index_opened", generation=snapshot.name, pages=totals.pages, chunks=totals.chunks)
    metric("index_generation", int(snapshot.name[1:].partition("-")[0]))
    metric("pages", totals.pages)
    metric("chunks", totals.chunks)
