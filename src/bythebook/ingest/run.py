"""One ingest from start to end: plan, cut, embed, publish."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from bythebook.ingest import Report
from bythebook.ingest.changes import Changes, Vectors, find_changes, leaving
from bythebook.ingest.coverage import remember_coverage
from bythebook.ingest.draft import Draft
from bythebook.ingest.plan import Plan, Stamps, make_plan
from bythebook.observe import log, span
from bythebook.passages.catalogue import Catalogue, Totals
from bythebook.passages.shelf import CATALOGUE, open_edition
from bythebook.vectors.journal import Journal, recorded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from bythebook.chunks.split import Sizes
    from bythebook.ingest import Progress
    from bythebook.pages import PageSource
    from bythebook.passages.generations import Generations
    from bythebook.passages.shelf import Edition
    from bythebook.vectors import Embedder, Vector

READERS = 1
"""Raised when the same file gives other pages than before, so that unchanged files are read again."""


@dataclass(frozen=True, slots=True)
class Workshop:
    """Everything an ingest works with."""

    folder: Path
    generations: Generations
    embedder: Embedder
    sizes: Sizes
    progress: Progress

    @property
    def recipe(self) -> str:
        """How pages become chunks. With another recipe every page is a changed page."""
        return json.dumps([READERS, asdict(self.sizes)])


@dataclass(frozen=True, slots=True)
class _Survey:
    """What differs, before anything is done about it."""

    book: Edition | None
    plan: Plan
    changes: Changes
    stamps: Stamps


async def ingest(workshop: Workshop, sources: Sequence[PageSource], *, alone: bool, rebuild: bool) -> Report:
    """Bring the book up to its sources and publish the result as a new generation, if anything changed.

    Pages of other sources stay, unless the given ones shall stand `alone`. With `rebuild` nothing of the old index
    is used again.
    """
    started = time.perf_counter()
    with span("ingest"), workshop.generations.writing():
        workshop.generations.sweep()
        with ExitStack() as stack:
            survey = await _survey(workshop, sources, stack, alone=alone, rebuild=rebuild)
            generation, embedded = "", 0
            if survey.changes or survey.plan.found or survey.plan.removed or survey.book is None:
                generation, embedded = await _carry_out(workshop, survey)
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
        survey = await _survey(workshop, sources, stack, alone=alone, rebuild=rebuild)
        written = recorded(workshop.folder, workshop.embedder.identity)
        missing = len((await _vectors(workshop, survey, written)).missing(survey.changes.put))
        before = survey.book.catalogue.totals() if survey.book else Totals(0, 0, 0)
        after = replace(
            before,
            pages=before.pages + sum(found.is_new for found in survey.plan.found) - len(survey.plan.removed),
            chunks=before.chunks + len(survey.changes.put) - len(survey.changes.gone),
        )
        return _report(survey.plan, after, generation="", embedded=missing, started=started)


async def _survey(
    workshop: Workshop, sources: Sequence[PageSource], stack: ExitStack, *, alone: bool, rebuild: bool
) -> _Survey:
    book = None
    if not rebuild and workshop.generations.current():
        book = open_edition(workshop.generations, workshop.embedder.identity, stack)
    catalogue = book.catalogue if book else None
    stamps = Stamps(workshop.folder, workshop.recipe)
    recipe, progress = workshop.recipe, workshop.progress
    with span("planning"):
        plan = await make_plan(sources, book=catalogue, recipe=recipe, stamps=stamps, progress=progress)
    if alone and catalogue:
        plan.removed.extend(_of_other_sources(catalogue, sources, plan))
    with span("cutting"):
        changes = find_changes(plan, book=catalogue, embedder=workshop.embedder, sizes=workshop.sizes)
    return _Survey(book, plan, changes, stamps)


def _of_other_sources(catalogue: Catalogue, sources: Sequence[PageSource], plan: Plan) -> list[str]:
    """The pages that only sources not given now have."""
    arriving = {found.page.url for found in plan.found}
    given = {source.name for source in sources}
    others = [name for name in catalogue.sources() if name not in given]
    return [url for name in others for url in catalogue.fingerprints(name) if url not in arriving]


async def _vectors(workshop: Workshop, survey: _Survey, written: Mapping[str, Vector]) -> Vectors:
    old = await leaving(survey.book.store, survey.changes) if survey.book else []
    return Vectors(workshop.embedder, written, tuple(old))


async def _carry_out(workshop: Workshop, survey: _Survey) -> tuple[str, int]:
    """Embed what is new and publish. Returns the generation and how many chunks were embedded."""
    with closing(Journal(workshop.folder, workshop.embedder.identity)) as journal:
        vectors = await _vectors(workshop, survey, journal.vectors)
        with span("embedding chunks"):
            embedded = await vectors.embed(survey.changes.put, journal=journal, progress=workshop.progress)
        workshop.progress("writing", 0, 1)
        draft = Draft(workshop.generations, workshop.embedder, survey.book)
        with span("writing"):
            name = await draft.publish(survey.plan, survey.changes, vectors)
        journal.clear()
        return name, embedded


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
        embedded=embedded,
        seconds=time.perf_counter() - started,
        generation=generation,
    )
