"""One ingest from start to end: read, cut, embed, write, publish; the first four at the same time."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import ExitStack, aclosing, closing
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from bythebook.chunks.split import split
from bythebook.errors import BookError, InputError
from bythebook.ingest import Report
from bythebook.ingest.changes import Changes, Vectors, leaving
from bythebook.ingest.coverage import remember_coverage
from bythebook.ingest.draft import Draft
from bythebook.ingest.plan import Plan, Stamps, is_unchanged, look_through
from bythebook.observe import log, span
from bythebook.passages.catalogue import Catalogue, Totals
from bythebook.passages.shelf import CATALOGUE, open_edition
from bythebook.together import together
from bythebook.vectors.journal import Journal, recorded

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence
    from pathlib import Path

    from bythebook.chunks import Chunk
    from bythebook.chunks.split import Sizes
    from bythebook.ingest import Progress
    from bythebook.ingest.engine import Engine
    from bythebook.pages import Page, PageSource
    from bythebook.passages.generations import Generations
    from bythebook.passages.shelf import Edition
    from bythebook.vectors import Embedder

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
        return plan.is_reordered(self.book.catalogue) or not self.book.calibration.is_current


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
