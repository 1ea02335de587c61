"""The shelf: where the current generation of the book stands open, and a newer one takes its place."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack, asynccontextmanager, closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from bythebook.embeddings import Identity
from bythebook.errors import BookError, ConfigurationError
from bythebook.index import Calibration
from bythebook.index.catalog import Catalogue
from bythebook.index.edge_store import EdgeStore
from bythebook.index.terms import Words, rarity
from bythebook.telemetry import figure, listeners, log

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from bythebook.index import PassageStore
    from bythebook.index.generations import Generations

CATALOGUE = "book.db"
SHARD = "shard"


@dataclass(frozen=True, slots=True)
class Edition:
    """One generation of the book, open for reading."""

    name: str
    store: PassageStore
    catalogue: Catalogue
    words: Words
    chunk_count: int
    calibration: Calibration
    """How sure the evidence check must be before a question counts as covered by this book."""

    def rarities(self, terms: Iterable[int]) -> dict[int, float]:
        """How much each of these terms says in this book."""
        counts = self.catalogue.term_counts(terms)
        return {term: rarity(count, total=self.chunk_count) for term, count in counts.items()}


@dataclass(slots=True)
class _Held:
    """An edition, how many are reading it, and what must be closed once nobody does."""

    edition: Edition
    closing: ExitStack
    readers: int = 0


class Library(Protocol):
    """Where the generations of a book are kept."""

    async def current(self) -> str:
        """The name of the edition that is current now, empty before the first ingest."""
        ...

    async def open(self, stack: ExitStack) -> Edition:
        """Open the current edition until `stack` closes. Raises NotFound before the first ingest."""
        ...


class DiskLibrary:
    """The generations in a folder of this machine."""

    def __init__(self, generations: Generations, identity: Identity) -> None:
        self._generations = generations
        self._identity = identity

    async def current(self) -> str:
        return self._generations.current()

    async def open(self, stack: ExitStack) -> Edition:
        edition, opened = await asyncio.to_thread(self._open)
        stack.enter_context(opened)
        return edition

    def _open(self) -> tuple[Edition, ExitStack]:
        with ExitStack() as stack:
            return open_edition(self._generations, self._identity, stack), stack.pop_all()


class Shelf:
    """Hands out the current edition. Whoever reads an older one keeps it, whole, until done."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._held: _Held | None = None
        self._looking = asyncio.Lock()
        self._opening: asyncio.Task[_Held] | None = None
        self._closed = False

    @asynccontextmanager
    async def edition(self) -> AsyncIterator[Edition]:
        """The edition that is current now, unchanged until the end. Raises NotFound before the first ingest."""
        held = await self._current()
        held.readers += 1
        try:
            yield held.edition
        finally:
            held.readers -= 1
            self._let_go(held)

    async def prepare(self) -> None:
        """Open the current edition ahead of the first question, if there is one."""
        if await self._library.current():
            await self._current()

    async def _current(self) -> _Held:
        async with self._looking:
            held = self._held
            if self._opening is None and (held is None or held.edition.name != await self._library.current()):
                self._opening = asyncio.create_task(self._open())
                self._opening.add_done_callback(self._change_over)
            # A thread that opens files cannot be stopped. Who stops waiting for it leaves it to those who come next.
            return await asyncio.shield(self._opening) if self._opening else self._standing()

    def _standing(self) -> _Held:
        if self._held is None:
            raise AssertionError("an edition is open")
        return self._held

    def _change_over(self, opening: asyncio.Task[_Held]) -> None:
        """Put what was opened in the place of what stood there."""
        self._opening = None
        if opening.cancelled() or opening.exception():
            return
        before, self._held = self._held, opening.result()
        if before is not None:
            self._let_go(before)
        if self._closed:
            self.close()

    def _let_go(self, held: _Held) -> None:
        if held is not self._held and held.readers == 0:
            held.closing.close()

    async def _open(self) -> _Held:
        with ExitStack() as stack:
            edition = await self._library.open(stack)
            if listeners():
                await asyncio.to_thread(_tell, edition)
            return _Held(edition, stack.pop_all())

    def close(self) -> None:
        """Close what is open, and what is being opened as soon as it is."""
        self._closed = True
        if self._held is not None:
            self._held.closing.close()
            self._held = None


def _tell(edition: Edition) -> None:
    totals = edition.catalogue.totals()
    log("opened", generation=edition.name, pages=totals.pages, chunks=totals.chunks)
    figure("index_generation", int(edition.name[1:].partition("-")[0]))
    figure("pages", totals.pages)
    figure("chunks", totals.chunks)


def open_edition(generations: Generations, identity: Identity, stack: ExitStack) -> Edition:
    """Open the current generation until `stack` closes. Raises NotFound before the first ingest."""
    folder = stack.enter_context(generations.reading())
    catalogue = stack.enter_context(closing(Catalogue.open(folder / CATALOGUE)))
    check_identity(catalogue, identity)
    words = Words(catalogue.fact("average_length"))
    store = stack.enter_context(closing(EdgeStore.open(folder / SHARD, words)))
    calibration = Calibration(**catalogue.fact("calibration"))
    return Edition(folder.name, store, catalogue, words, catalogue.chunk_count(), calibration)


def identity_of(generations: Generations) -> Identity | None:
    """What the current generation was made with, None where there is none that can be read."""
    try:
        with generations.reading() as folder, closing(Catalogue.open(folder / CATALOGUE)) as catalogue:
            return Identity(**catalogue.fact("identity"))
    except (BookError, TypeError):
        return None


def check_identity(catalogue: Catalogue, identity: Identity) -> None:
    """Refuse an index made with other vectors: its scores would mean nothing."""
    stored = Identity(**catalogue.fact("identity"))
    if stored != identity:
        raise ConfigurationError(
            f"this book was indexed with {stored.model!r} ({stored.dimension} dimensions), but the embedder is "
            f"{identity.model!r} ({identity.dimension}). Use the same embedder, or make the index anew with "
            "'bythebook ingest --rebuild'."
        )
