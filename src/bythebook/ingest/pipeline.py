"""The ingest pipeline: read, split, embed, write, publish. The first four run concurrently.

An `IngestEngine` reads, splits and embeds, in this process or on a cluster. A `GenerationDraft` writes the next
generation of the index.
"""

import asyncio
import json
import shutil
import sqlite3
import time
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Sequence
from contextlib import ExitStack, aclosing, closing
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Protocol, TypeAlias, TypeVar

from bythebook.chunking import Chunk
from bythebook.chunking.splitter import ChunkSizes, split_page
from bythebook.concurrency import gather
from bythebook.embeddings import Embedder
from bythebook.embeddings.checkpoint import VectorCheckpoint, read_checkpoint
from bythebook.errors import BookError, InputError
from bythebook.index import Passage
from bythebook.index.catalog import Catalog, CatalogTotals, ChunkRecord, PageRecord
from bythebook.index.edge_store import EdgeStore
from bythebook.index.generations import DRAFT, Generations, save_coverage
from bythebook.index.provider import CATALOG_FILE, SHARD_FOLDER, IndexSnapshot, open_snapshot
from bythebook.index.terms import Bm25Terms, VocabularyDelta, quantize_length
from bythebook.ingest import IngestReport
from bythebook.ingest.diff import (
    ChangedPage,
    ChunkChanges,
    ChunkVectors,
    FingerprintCache,
    IngestPlan,
    chunk_fingerprint,
    diff_sources,
    fetch_removed_passages,
    is_unchanged,
)
from bythebook.retrieval.calibration import UNCALIBRATED, calibrate, is_current, is_valid_for
from bythebook.retrieval.entries import ENTRIES_VERSION, FRONT_FACT, NAME_FACT, chunk_entries, describe_front
from bythebook.retrieval.reranker import Reranker
from bythebook.retrieval.retriever import Retriever
from bythebook.sources import ListedPage, Page, PageSource
from bythebook.sources.projects import find_book_name
from bythebook.telemetry import Progress, log, span

T = TypeVar("T")

READER_VERSION = 3
"""Incremented when the readers produce other pages from the same file, so that unchanged files are read again."""


UnchangedTest: TypeAlias = "Callable[[PageSource, ListedPage], bool]"
"""Whether a page is known to be unchanged, so that it is not read."""


class IngestEngine(Protocol):
    """Does the expensive work of an ingest. Every engine produces the same pages, chunks and vectors."""

    def source(self, source: PageSource, is_unchanged: UnchangedTest) -> PageSource:
        """The same source, read by the engine."""
        ...

    def split(self, page: Page, *, count: Callable[[str], int], sizes: ChunkSizes) -> list[Chunk]:
        """The chunks of a page."""
        ...

    def embedder(self, embedder: Embedder) -> Embedder:
        """The same embedder, run by the engine."""
        ...


class LocalEngine:
    """Does the work in this process."""

    def source(self, source: PageSource, is_unchanged: UnchangedTest) -> PageSource:
        del is_unchanged
        return source

    def split(self, page: Page, *, count: Callable[[str], int], sizes: ChunkSizes) -> list[Chunk]:
        return list(split_page(page, count=count, sizes=sizes))

    def embedder(self, embedder: Embedder) -> Embedder:
        return embedder


LOCAL_ENGINE = LocalEngine()


@dataclass(frozen=True, slots=True)
class IngestContext:
    """The settings and collaborators of an ingest."""

    folder: Path
    generations: Generations
    embedder: Embedder
    sizes: ChunkSizes
    progress: Progress
    reader: Embedder | None = None
    """The local embedder that scores evidence, if it is not `embedder`."""
    reranker: Reranker | None = None
    engine: IngestEngine = LOCAL_ENGINE

    @property
    def recipe(self) -> str:
        """The versions and sizes that determine the chunks of a page. If they change, every page counts as changed."""
        return json.dumps([READER_VERSION, ENTRIES_VERSION, asdict(self.sizes)])

    def split(self, page: Page) -> list[Chunk]:
        return self.engine.split(page, count=self.embedder.count_tokens, sizes=self.sizes)


@dataclass(frozen=True, slots=True)
class IngestDiff:
    """The differences between the sources and the book. It grows while the sources are read."""

    context: IngestContext
    sources: Sequence[PageSource]
    book: IndexSnapshot | None
    fingerprints: FingerprintCache
    plan: IngestPlan = field(default_factory=IngestPlan)
    changes: ChunkChanges = field(default_factory=ChunkChanges)

    async def chunks(self, *, prune: bool) -> AsyncGenerator[Chunk]:
        """Read and split the changed pages. Yields each chunk to write as soon as its page is split."""
        context, catalog = self.context, self.book.catalog if self.book else None
        pages = diff_sources(
            self.sources,
            self.plan,
            book=catalog,
            recipe=context.recipe,
            fingerprints=self.fingerprints,
            progress=context.progress,
        )
        async with aclosing(pages) as changed_pages:
            async for changed in changed_pages:
                chunks = await asyncio.to_thread(context.split, changed.page)
                before = catalog.chunks_of_pages([changed.page.url]) if catalog else []
                for chunk in self.changes.compare(chunks, before=before):
                    yield chunk
        if catalog:
            if prune:
                self.plan.removed.extend(_pages_of_other_sources(catalog, self.sources, self.plan))
            self.changes.removed.extend(catalog.chunks_of_pages(self.plan.removed))

    @property
    def is_new_generation_needed(self) -> bool:
        changes, plan = self.changes, self.plan
        if changes.added or changes.removed or plan.changed or plan.removed or self.book is None:
            return True
        # A calibration for other parameters is repeated even if no page has changed.
        return plan.has_new_order(self.book.catalog) or not is_current(self.book.calibration)


async def ingest(context: IngestContext, sources: Sequence[PageSource], *, prune: bool, rebuild: bool) -> IngestReport:
    """Update the book from its sources, and publish a new generation if anything changed.

    Pages of other sources stay, unless `prune` is set. With `rebuild` nothing of the old index is reused.
    """
    started = time.perf_counter()
    with span("ingest"), context.generations.writing():
        context.generations.sweep()
        context.generations.reserve(0)
        with ExitStack() as stack:
            diff = _open_diff(context, sources, stack, prune=prune, rebuild=rebuild)
            generation, embedded = await _run_diff(diff, prune=prune)
        diff.fingerprints.update(diff.plan.fingerprints)
        save_coverage(context.folder, diff.plan.coverage)
        context.generations.sweep()
        totals = _read_totals(context.generations)
        report = _make_report(diff.plan, totals, generation=generation, embedded=embedded, started=started)
        _log_report(report)
        return report


def _log_report(report: IngestReport) -> None:
    log(
        "ingest_completed",
        generation=report.generation,
        pages=report.pages,
        chunks=report.chunks,
        added=report.added,
        changed=report.changed,
        removed=report.removed,
        skipped=len(report.skipped),
        embedded=report.embedded,
        seconds=report.seconds,
    )


def _read_totals(generations: Generations) -> CatalogTotals:
    """The size of the current book, from its catalog."""
    with generations.reading() as folder, closing(Catalog.open(folder / CATALOG_FILE)) as catalog:
        return catalog.totals()


async def plan_ingest(
    context: IngestContext, sources: Sequence[PageSource], *, prune: bool, rebuild: bool
) -> IngestReport:
    """The report of an `ingest` with the same arguments. Writes nothing."""
    started = time.perf_counter()
    with ExitStack() as stack:
        diff = _open_diff(context, sources, stack, prune=prune, rebuild=rebuild)
        written = read_checkpoint(context.folder, context.embedder.identity)
        vectors = ChunkVectors(context.embedder, written, diff.book)
        missing = [chunk async for chunk in vectors.select_missing(diff.chunks(prune=prune))]
        before = diff.book.catalog.totals() if diff.book else CatalogTotals(0, 0, 0)
        after = before._replace(
            pages=before.pages + sum(changed.is_new for changed in diff.plan.changed) - len(diff.plan.removed),
            chunks=before.chunks + len(diff.changes.added) - len(diff.changes.removed),
        )
        return _make_report(diff.plan, after, generation="", embedded=len(missing), started=started)


def _open_diff(
    context: IngestContext, sources: Sequence[PageSource], stack: ExitStack, *, prune: bool, rebuild: bool
) -> IngestDiff:
    book = None
    if rebuild and not prune:
        _check_rebuild_sources(context.generations, sources)
    if not rebuild and context.generations.current():
        book = open_snapshot(context.generations, context.embedder.identity, stack)
    fingerprints = FingerprintCache(context.folder, context.recipe)
    unchanged = partial(is_unchanged, book=book.catalog if book else None, fingerprints=fingerprints)
    return IngestDiff(context, [context.engine.source(source, unchanged) for source in sources], book, fingerprints)


def _check_rebuild_sources(generations: Generations, sources: Sequence[PageSource]) -> None:
    """Raise InputError if a rebuild would lose the pages of sources that are not given."""
    try:
        with generations.reading() as folder, closing(Catalog.open(folder / CATALOG_FILE)) as catalog:
            known = catalog.page_counts()
    except (BookError, sqlite3.Error):
        return  # There is no book, or it is damaged. A rebuild repairs it.
    given = {source.name for source in sources}
    if others := [name for name in known if name not in given]:
        raise InputError(
            f"a rebuild makes a new index, and would lose the pages of {', '.join(map(repr, others))}. "
            "Name all sources, or add --prune to remove those pages. Nothing was changed."
        )


def _pages_of_other_sources(catalog: Catalog, sources: Sequence[PageSource], plan: IngestPlan) -> list[str]:
    """The pages that belong only to sources that are not given now."""
    changed_urls = {changed.page.url for changed in plan.changed}
    given = {source.name for source in sources}
    others = [name for name in catalog.page_counts() if name not in given]
    return [url for name in others for url in catalog.page_fingerprints(name) if url not in changed_urls]


async def _run_diff(diff: IngestDiff, *, prune: bool) -> tuple[str, int]:
    """Read, embed and write concurrently, and publish. Returns the generation and the number of embedded chunks.

    Writing starts when everything is read: the term weights of a chunk depend on all other chunks.
    """
    context = diff.context
    chunks: asyncio.Queue[Chunk | None] = asyncio.Queue()
    everything_read = asyncio.Event()
    name, embedded = "", 0
    with closing(VectorCheckpoint(context.folder, context.embedder.identity)) as checkpoint:
        vectors = ChunkVectors(context.engine.embedder(context.embedder), checkpoint.vectors, diff.book)

        async def read() -> None:
            with span("reading"):
                async for chunk in diff.chunks(prune=prune):
                    chunks.put_nowait(chunk)
            chunks.put_nowait(None)
            everything_read.set()

        async def embed() -> None:
            nonlocal embedded
            with span("embedding chunks"):
                embedded = await vectors.embed(_until_none(chunks), checkpoint=checkpoint, progress=context.progress)

        async def write() -> None:
            nonlocal name
            await everything_read.wait()
            if diff.is_new_generation_needed:
                with span("writing"):
                    name = await _publish(diff, vectors)

        await gather(read(), embed(), write())
        if name:
            checkpoint.clear()
    return name, embedded


async def _publish(diff: IngestDiff, vectors: ChunkVectors) -> str:
    removed = await fetch_removed_passages(diff.book.store, diff.changes) if diff.book else []
    context = diff.context
    draft = GenerationDraft(context.generations, context.embedder, diff.book, context.reader, context.reranker)
    async with aclosing(vectors.passages(diff.changes.added)) as passages:
        return await draft.publish(diff.plan, diff.changes, passages=passages, removed=removed)


async def _until_none(queue: asyncio.Queue[T | None]) -> AsyncGenerator[T]:
    while (item := await queue.get()) is not None:
        yield item


def _make_report(
    plan: IngestPlan, totals: CatalogTotals, *, generation: str, embedded: int, started: float
) -> IngestReport:
    added = sum(changed.is_new for changed in plan.changed)
    return IngestReport(
        pages=totals.pages,
        chunks=totals.chunks,
        added=added,
        changed=len(plan.changed) - added,
        removed=len(plan.removed),
        unchanged=plan.unchanged,
        skipped=plan.skipped,
        left_out=plan.left_out,
        embedded=embedded,
        seconds=time.perf_counter() - started,
        generation=generation,
    )


_COPY_BATCH = 512
_BYTES_PER_CHUNK = 10_000
"""About what a chunk takes on disk: its text twice, its vector and its terms."""


@dataclass(frozen=True, slots=True)
class GenerationDraft:
    """The next generation, made from the current one or from nothing. It is invisible until it is published."""

    generations: Generations
    embedder: Embedder
    book: IndexSnapshot | None
    reader: Embedder | None = None
    """The local embedder that scores evidence, if it is not `embedder`."""
    reranker: Reranker | None = None

    async def publish(
        self,
        plan: IngestPlan,
        changes: ChunkChanges,
        *,
        passages: AsyncIterable[Sequence[Passage]],
        removed: Sequence[Passage],
    ) -> str:
        """Write the changes and the passages, and make the result current. Returns the name of the generation."""
        self.generations.reserve(len(changes.added) * _BYTES_PER_CHUNK)
        folder = await asyncio.to_thread(self._folder)
        bm25 = await asyncio.to_thread(self._write_catalog, folder / CATALOG_FILE, plan, changes, removed)
        store = await self._store(folder / SHARD_FOLDER, bm25, changes)
        with closing(store):
            await store.update(put=[], drop=changes.removed_ids)
            async for batch in passages:
                await store.update(put=batch, drop=[])
            await self._calibrate(folder, store, bm25)
        # Opening the shard deletes its write-ahead logs. That must happen before publishing: afterwards other
        # processes read the files and the next draft is copied from them.
        EdgeStore.open(folder / SHARD_FOLDER, bm25).close()
        return self.generations.publish()

    def _folder(self) -> Path:
        return self.generations.draft_of_current() if self.book else self.generations.empty_draft()

    async def _calibrate(self, folder: Path, store: EdgeStore, bm25: Bm25Terms) -> None:
        """Calibrate the evidence cutoff, unless the book has changed little since the last calibration."""
        with closing(Catalog.edit(folder / CATALOG_FILE)) as catalog:
            chunks = catalog.chunk_count()
            if self.book and is_valid_for(self.book.calibration, chunks):
                return
            snapshot = IndexSnapshot(DRAFT, store, catalog, bm25, chunks, UNCALIBRATED)
            retriever = Retriever(
                self.embedder,
                reranker=self.reranker.without_steps() if self.reranker else None,
            )
            calibration = await calibrate(snapshot, self.reader or self.embedder, retriever)
            catalog.set_fact("calibration", asdict(calibration))

    def _write_catalog(
        self, path: Path, plan: IngestPlan, changes: ChunkChanges, removed: Sequence[Passage]
    ) -> Bm25Terms:
        """Write the pages, the chunks and their terms. Returns the new term weights."""
        with closing(Catalog.edit(path)) as catalog:
            for url in plan.removed:
                catalog.drop_page(url)
            for changed in plan.changed:
                catalog.put_page(_page_record(changed))
            _write_order(catalog, plan)
            for record in changes.removed:
                catalog.drop_chunk(record.chunk_id)
            _write_chunks(catalog, changes.added, removed)
            totals = catalog.totals()
            bm25 = Bm25Terms(quantize_length(totals.length / max(totals.chunks, 1)))
            for chunk in changes.added:
                catalog.put_entries(chunk.chunk_id, chunk_entries(chunk, bm25.terms))
            name, front = describe_front(catalog, name=find_book_name(catalog.page_counts()))
            catalog.set_fact(NAME_FACT, name)
            catalog.set_fact(FRONT_FACT, front)
            catalog.set_fact("average_length", bm25.average_length)
            catalog.set_fact("identity", asdict(self.embedder.identity))
            catalog.set_fact("published_at", datetime.now(UTC).isoformat(timespec="seconds"))
            return bm25

    async def _store(self, folder: Path, bm25: Bm25Terms, changes: ChunkChanges) -> EdgeStore:
        """The shard to write to: the copied one, or a new one if all term weights have changed."""
        if self.book is None:
            return EdgeStore.create(folder, bm25, dimension=self.embedder.identity.dimension)
        if self.book.bm25.average_length == bm25.average_length:
            return EdgeStore.open(folder, bm25)
        shutil.rmtree(folder)
        store = EdgeStore.create(folder, bm25, dimension=self.embedder.identity.dimension)
        removed = {record.chunk_id for record in changes.removed}
        retained = [chunk_id for chunk_id in self.book.catalog.all_chunk_ids() if chunk_id not in removed]
        for first in range(0, len(retained), _COPY_BATCH):
            batch = await self.book.store.fetch(retained[first : first + _COPY_BATCH])
            await store.update(put=list(batch.values()), drop=[])
        return store


def _write_order(catalog: Catalog, plan: IngestPlan) -> None:
    """Write the order of the pages. Pages that were not read keep their module."""
    read = {changed.page.url: changed.page.module_name for changed in plan.changed}
    for source, urls in plan.order.items():
        modules = catalog.page_order(source) | read
        catalog.set_page_order(source, {url: modules.get(url, "") for url in urls})


def _page_record(changed: ChangedPage) -> PageRecord:
    page = changed.page
    return PageRecord(page.url, changed.source, changed.path, page.title, changed.fingerprint, page.text)


def _write_chunks(catalog: Catalog, added: Sequence[Chunk], removed: Sequence[Passage]) -> None:
    """Write the added chunks, and update the vocabulary of the book."""
    delta = VocabularyDelta()
    for chunk in added:
        catalog.put_chunk(_chunk_record(chunk, length=delta.add(chunk.embedded)))
    for passage in removed:
        delta.remove(passage.chunk.embedded)
    catalog.apply_delta(delta)


def _chunk_record(chunk: Chunk, *, length: int) -> ChunkRecord:
    return ChunkRecord(
        chunk_id=chunk.chunk_id,
        url=chunk.url,
        content_hash=chunk.content_hash,
        fingerprint=chunk_fingerprint(chunk),
        length=length,
        headings=" > ".join(chunk.heading_hierarchy),
    )
