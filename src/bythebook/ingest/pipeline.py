"""One ingest from start to end: read, cut, embed, write, publish; the first four at the same time.

The draft: the next generation while it is being written.

The engine of an ingest: who reads, cuts and embeds, where that is not this process alone.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from contextlib import ExitStack, aclosing, closing
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from bythebook.chunking.splitter import split
from bythebook.concurrency import together
from bythebook.embeddings.checkpoint import Journal, recorded
from bythebook.errors import BookError, InputError
from bythebook.index.catalog import Catalogue, ChunkRecord, PageRecord, Totals
from bythebook.index.coverage import remember_coverage
from bythebook.index.edge_store import EdgeStore
from bythebook.index.generations import DRAFT
from bythebook.index.provider import CATALOGUE, SHARD, Edition, open_edition
from bythebook.index.terms import Tally, Words, stepped
from bythebook.ingest import Report
from bythebook.ingest.diff import Changes, Plan, Stamps, Vectors, chunk_fingerprint, is_unchanged, leaving, look_through
from bythebook.retrieval.calibration import UNTRIED, calibrate, is_current, still_holds
from bythebook.retrieval.retriever import Retriever
from bythebook.telemetry import log, span

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterable, Callable, Sequence
    from pathlib import Path

    from bythebook.chunking import Chunk
    from bythebook.chunking.splitter import Sizes
    from bythebook.embeddings import Embedder
    from bythebook.index import Passage
    from bythebook.index.generations import Generations
    from bythebook.ingest.diff import Found
    from bythebook.sources import Listed, Page, PageSource
    from bythebook.telemetry import Progress


T = TypeVar("T")

READERS = 2
"""Raised when the same file gives other pages than before, so that unchanged files are read again."""


@dataclass(frozen=True, slots=True)
class Workshop:
    """Everything an ingest works with."""

    folder: Path
    generations: Generations
    embedder: Embedder
    sizes: Sizes
    progress: Progress
    reader: Embedder | None = None
    """Who reads closely what the embedder finds, where it is another one."""
    engine: Engine | None = None
    """Who reads, cuts and embeds, where that is not this process alone."""

    @property
    def recipe(self) -> str:
        """How pages become chunks. With another recipe every page is a changed page."""
        return json.dumps([READERS, asdict(self.sizes)])

    def cut(self, page: Page) -> list[Chunk]:
        elsewhere = self.engine.cut(page) if self.engine else None
        return elsewhere or list(split(page, count=self.embedder.count, sizes=self.sizes))


@dataclass(frozen=True, slots=True)
class _Survey:
    """What differs. It grows while the sources are looked through."""

    workshop: Workshop
    sources: Sequence[PageSource]
    book: Edition | None
    stamps: Stamps
    plan: Plan = field(default_factory=Plan)
    changes: Changes = field(default_factory=Changes)

    async def chunks(self, *, alone: bool) -> AsyncGenerator[Chunk]:
        """Read and cut what differs. Each chunk that must be written comes out as soon as its page is cut."""
        work, catalogue = self.workshop, self.book.catalogue if self.book else None
        pages = look_through(
            self.sources, self.plan, book=catalogue, recipe=work.recipe, stamps=self.stamps, progress=work.progress
        )
        async with aclosing(pages) as differing:
            async for found in differing:
                cut = await asyncio.to_thread(work.cut, found.page)
                before = catalogue.chunks([found.page.url]) if catalogue else []
                for chunk in self.changes.add(cut, before=before):
                    yield chunk
        if catalogue:
            if alone:
                self.plan.removed.extend(_of_other_sources(catalogue, self.sources, self.plan))
            self.changes.gone.extend(catalogue.chunks(self.plan.removed))

    @property
    def calls_for_work(self) -> bool:
        changes, plan = self.changes, self.plan
        if changes.put or changes.gone or plan.found or plan.removed or self.book is None:
            return True
        # A line drawn for another rule is drawn again, also when no page has changed.
        return plan.is_reordered(self.book.catalogue) or not is_current(self.book.calibration)


async def ingest(workshop: Workshop, sources: Sequence[PageSource], *, alone: bool, rebuild: bool) -> Report:
    """Bring the book up to its sources and publish the result as a new generation, if anything changed.

    Pages of other sources stay, unless the given ones shall stand `alone`. With `rebuild` nothing of the old index
    is used again.
    """
    started = time.perf_counter()
    with span("ingest"), workshop.generations.writing():
        workshop.generations.sweep()
        with ExitStack() as stack:
            survey = _survey(workshop, sources, stack, alone=alone, rebuild=rebuild)
            generation, embedded = await _carry_out(survey, alone=alone)
        survey.stamps.keep(survey.plan.stamps)
        remember_coverage(workshop.folder, survey.plan.coverage)
        workshop.generations.sweep()
        totals = _totals(workshop.generations)
        report = _report(survey.plan, totals, generation=generation, embedded=embedded, started=started)
        _tell(report)
        return report


def _tell(report: Report) -> None:
    log(
        "ingested",
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


def _totals(generations: Generations) -> Totals:
    """The size of the book as it is now, read from its catalogue alone."""
    with generations.reading() as folder, closing(Catalogue.open(folder / CATALOGUE)) as catalogue:
        return catalogue.totals()


async def rehearse(workshop: Workshop, sources: Sequence[PageSource], *, alone: bool, rebuild: bool) -> Report:
    """What `ingest` would do, writing nothing."""
    started = time.perf_counter()
    with ExitStack() as stack:
        survey = _survey(workshop, sources, stack, alone=alone, rebuild=rebuild)
        written = recorded(workshop.folder, workshop.embedder.identity)
        vectors = Vectors(workshop.embedder, written, survey.book)
        missing = [chunk async for chunk in vectors.missing(survey.chunks(alone=alone))]
        before = survey.book.catalogue.totals() if survey.book else Totals(0, 0, 0)
        after = before._replace(
            pages=before.pages + sum(found.is_new for found in survey.plan.found) - len(survey.plan.removed),
            chunks=before.chunks + len(survey.changes.put) - len(survey.changes.gone),
        )
        return _report(survey.plan, after, generation="", embedded=len(missing), started=started)


def _survey(
    workshop: Workshop, sources: Sequence[PageSource], stack: ExitStack, *, alone: bool, rebuild: bool
) -> _Survey:
    book = None
    if rebuild and not alone:
        _refuse_to_forget(workshop.generations, sources)
    if not rebuild and workshop.generations.current():
        book = open_edition(workshop.generations, workshop.embedder.identity, stack)
    stamps = Stamps(workshop.folder, workshop.recipe)
    if workshop.engine:
        unchanged = partial(is_unchanged, book=book.catalogue if book else None, stamps=stamps)
        sources = [workshop.engine.source(source, unchanged) for source in sources]
    return _Survey(workshop, sources, book, stamps)


def _refuse_to_forget(generations: Generations, sources: Sequence[PageSource]) -> None:
    """A rebuild has only the sources it is given: it must be given all of them."""
    try:
        with generations.reading() as folder, closing(Catalogue.open(folder / CATALOGUE)) as catalogue:
            known = catalogue.sources()
    except BookError:
        return  # There is no book, or it is damaged, which is what a rebuild is for.
    given = {source.name for source in sources}
    if others := [name for name in known if name not in given]:
        raise InputError(
            f"a rebuild makes the index from nothing, and would lose the pages of {', '.join(map(repr, others))}. "
            "Name all sources, or add --alone to leave those pages out. Nothing was changed."
        )


def _of_other_sources(catalogue: Catalogue, sources: Sequence[PageSource], plan: Plan) -> list[str]:
    """The pages that only sources not given now have."""
    arriving = {found.page.url for found in plan.found}
    given = {source.name for source in sources}
    others = [name for name in catalogue.sources() if name not in given]
    return [url for name in others for url in catalogue.fingerprints(name) if url not in arriving]


async def _carry_out(survey: _Survey, *, alone: bool) -> tuple[str, int]:
    """Read, embed and write, all at once, and publish. Returns the generation and how many chunks were embedded.

    Reading runs ahead: how the words of a chunk are weighed depends on all the others, so that nothing can be written
    before everything is read.
    """
    work = survey.workshop
    cut: asyncio.Queue[Chunk | None] = asyncio.Queue()
    everything_read = asyncio.Event()
    name, embedded = "", 0
    with closing(Journal(work.folder, work.embedder.identity)) as journal:
        embedder = work.engine.embedder(work.embedder) if work.engine else work.embedder
        vectors = Vectors(embedder, journal.vectors, survey.book)

        async def read() -> None:
            with span("reading"):
                async for chunk in survey.chunks(alone=alone):
                    cut.put_nowait(chunk)
            cut.put_nowait(None)
            everything_read.set()

        async def embed() -> None:
            nonlocal embedded
            with span("embedding chunks"):
                embedded = await vectors.embed(_until_none(cut), journal=journal, progress=work.progress)

        async def write() -> None:
            nonlocal name
            await everything_read.wait()
            if survey.calls_for_work:
                with span("writing"):
                    name = await _publish(survey, vectors)

        await together(read(), embed(), write())
        if name:
            journal.clear()
    return name, embedded


async def _publish(survey: _Survey, vectors: Vectors) -> str:
    old = await leaving(survey.book.store, survey.changes) if survey.book else []
    work = survey.workshop
    draft = Draft(work.generations, work.embedder, survey.book, work.reader)
    async with aclosing(vectors.passages(survey.changes.put)) as passages:
        return await draft.publish(survey.plan, survey.changes, passages=passages, leaving=old)


async def _until_none(queue: asyncio.Queue[T | None]) -> AsyncGenerator[T]:
    while (item := await queue.get()) is not None:
        yield item


def _report(plan: Plan, totals: Totals, *, generation: str, embedded: int, started: float) -> Report:
    added = sum(found.is_new for found in plan.found)
    return Report(
        pages=totals.pages,
        chunks=totals.chunks,
        added=added,
        changed=len(plan.found) - added,
        removed=len(plan.removed),
        unchanged=plan.unchanged,
        skipped=plan.skipped,
        left_out=plan.left_out,
        embedded=embedded,
        seconds=time.perf_counter() - started,
        generation=generation,
    )


_AT_ONCE = 512


@dataclass(frozen=True, slots=True)
class Draft:
    """Writes a generation from the current one, or from nothing. Readers see none of it before it is published."""

    generations: Generations
    embedder: Embedder
    book: Edition | None
    reader: Embedder | None = None
    """Who reads closely what the embedder finds, where it is another one."""

    async def publish(
        self, plan: Plan, changes: Changes, *, passages: AsyncIterable[Sequence[Passage]], leaving: Sequence[Passage]
    ) -> str:
        """Write the changes, the passages as they come, and make the result current. Returns the generation's name."""
        folder = await asyncio.to_thread(self._folder)
        words = await asyncio.to_thread(self._write_catalogue, folder / CATALOGUE, plan, changes, leaving)
        store = await self._store(folder / SHARD, words, changes)
        with closing(store):
            await store.change(put=[], drop=changes.dropped)
            async for batch in passages:
                await store.change(put=batch, drop=[])
            await self._calibrate(folder, store, words)
        # The engine clears journals away when it first opens what was written. Once published, nothing may go away:
        # other processes read it, and the next draft is copied from it.
        EdgeStore.open(folder / SHARD, words).close()
        return self.generations.publish()

    def _folder(self) -> Path:
        return self.generations.draft_of_current() if self.book else self.generations.empty_draft()

    async def _calibrate(self, folder: Path, store: EdgeStore, words: Words) -> None:
        """Draw the book's line between covered and not, unless it is still much the book it was drawn for."""
        with closing(Catalogue.edit(folder / CATALOGUE)) as catalogue:
            chunks = catalogue.chunk_count()
            if self.book and still_holds(self.book.calibration, chunks):
                return
            edition = Edition(DRAFT, store, catalogue, words, chunks, UNTRIED)
            retriever = Retriever(self.embedder, reader=self.reader)
            calibration = await calibrate(edition, self.reader or self.embedder, retriever)
            catalogue.state("calibration", asdict(calibration))

    def _write_catalogue(self, path: Path, plan: Plan, changes: Changes, leaving: Sequence[Passage]) -> Words:
        """Record the pages, the chunks and their terms. Returns the words as they are weighed from now on."""
        with closing(Catalogue.edit(path)) as catalogue:
            for url in plan.removed:
                catalogue.drop_page(url)
            for found in plan.found:
                catalogue.put_page(_page_record(found))
            _arrange(catalogue, plan)
            for record in changes.gone:
                catalogue.drop_chunk(record.chunk_id)
            _count(catalogue, changes.put, leaving)
            totals = catalogue.totals()
            words = Words(stepped(totals.length / max(totals.chunks, 1)))
            catalogue.state("average_length", words.average_length)
            catalogue.state("identity", asdict(self.embedder.identity))
            catalogue.state("published_at", datetime.now(UTC).isoformat(timespec="seconds"))
            return words

    async def _store(self, folder: Path, words: Words, changes: Changes) -> EdgeStore:
        """The shard to write to: the copied one, or a new one when every word must be weighed anew."""
        if self.book is None:
            return EdgeStore.create(folder, words, dimension=self.embedder.identity.dimension)
        if self.book.words.average_length == words.average_length:
            return EdgeStore.open(folder, words)
        shutil.rmtree(folder)
        store = EdgeStore.create(folder, words, dimension=self.embedder.identity.dimension)
        gone = {record.chunk_id for record in changes.gone}
        staying = [chunk_id for chunk_id in self.book.catalogue.all_chunk_ids() if chunk_id not in gone]
        for first in range(0, len(staying), _AT_ONCE):
            kept = await self.book.store.fetch(staying[first : first + _AT_ONCE])
            await store.change(put=list(kept.values()), drop=[])
        return store


def _arrange(catalogue: Catalogue, plan: Plan) -> None:
    """Write down the order of the pages. Those that were not read again are in the module they were in."""
    read = {found.page.url: found.page.module_name for found in plan.found}
    for source, urls in plan.order.items():
        modules = catalogue.order(source) | read
        catalogue.arrange(source, {url: modules.get(url, "") for url in urls})


def _page_record(found: Found) -> PageRecord:
    page = found.page
    return PageRecord(page.url, found.source, found.path, page.title, found.fingerprint, page.text)


def _count(catalogue: Catalogue, arriving: Sequence[Chunk], leaving: Sequence[Passage]) -> None:
    """Record the chunks that come, and what they change in the language of the book."""
    tally = Tally()
    for chunk in arriving:
        catalogue.put_chunk(_chunk_record(chunk, length=tally.add(chunk.embedded)))
    for passage in leaving:
        tally.remove(passage.chunk.embedded)
    catalogue.count(tally)


def _chunk_record(chunk: Chunk, *, length: int) -> ChunkRecord:
    return ChunkRecord(
        chunk_id=chunk.chunk_id,
        url=chunk.url,
        content_hash=chunk.content_hash,
        fingerprint=chunk_fingerprint(chunk),
        length=length,
        headings=" > ".join(chunk.heading_hierarchy),
    )


Unchanged: TypeAlias = "Callable[[PageSource, Listed], bool]"
"""Whether a page is known to be as it was, and will not be read."""


class Engine(Protocol):
    """Does an ingest's work elsewhere. What comes out is what this process would have made itself."""

    def source(self, source: PageSource, unchanged: Unchanged) -> PageSource:
        """The same source, read by the engine where it can be."""
        ...

    def cut(self, page: Page) -> list[Chunk] | None:
        """The chunks of a page the engine has read, None for any other."""
        ...

    def embedder(self, embedder: Embedder) -> Embedder:
        """The same embedder, embedding by the engine where it can."""
        ...
