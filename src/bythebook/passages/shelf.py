"""The shelf: where the current generation of the book stands open, and a newer one takes its place."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack, asynccontextmanager, closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bythebook.errors import BookError, ConfigurationError
from bythebook.observe import figure, listeners, log
from bythebook.passages.calibration import Calibration
from bythebook.passages.catalogue import Catalogue
from bythebook.passages.edge import EdgeStore
from bythebook.passages.words import Words, rarity
from bythebook.vectors import Identity

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from bythebook.passages import PassageStore
    from bythebook.passages.generations import Generations

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


class Shelf:
    """Hands out the current edition. Whoever reads an older one keeps it, whole, until done."""

    def __init__(self, generations: Generations, identity: Identity) -> None:
        self._generations = generations
        self._identity = identity
        self._held: _Held | None = None
        self._opening = asyncio.Lock()

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
        if self._generations.current():
            await self._current()

    async def _current(self) -> _Held:
        async with self._opening:
            held = self._held
            if held is None or held.edition.name != self._generations.current():
                self._held = await asyncio.to_thread(self._open)
                if held is not None:
                    self._let_go(held)
            if self._held is None:
                raise AssertionError("an edition was just opened")
            return self._held

    def _let_go(self, held: _Held) -> None:
        if held is not self._held and held.readers == 0:
            held.closing.close()

    def _open(self) -> _Held:
        with ExitStack() as stack:
            edition = open_edition(self._generations, self._identity, stack)
            if listeners():
                _tell(edition)
            return _Held(edition, stack.pop_all())

    def close(self) -> None:
        if self._held is not None:
            self._held.closing.close()
            self._held = None


def _tell(edition: Edition) -> None:
    totals = edition.catalogue.totals()
    log("opened", generation=edition.name, pages=totals.pages, chunks=totals.chunks)
    figure("index_generation", int(edition.name.removeprefix("g")))
    figure("pages", totals.pages)
    figure("chunks", totals.chunks)


def open_edition(generations: Generations, identity: Identity, stack: ExitStack) -> Edition:
    """Open the current generation until `stack` closes. Raises NotFound before the first ingest."""
    folder = stack.enter_context(generations.reading())
    catalogue = stack.enter_context(closing(Catalogue.open(folder / CATALOGUE)))
    _check_identity(catalogue, identity)
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


def _check_identity(catalogue: Catalogue, identity: Identity) -> None:
    """Refuse an index made with other vectors: its scores would mean nothing."""
    stored = Identity(**catalogue.fact("identity"))
    if stored != identity:
        raise ConfigurationError(
            f"this book was indexed with {stored.model!r} ({stored.dimension} dimensions), but the embedder is "
            f"{identity.model!r} ({identity.dimension}). Use the same embedder, or make the index anew with "
            "'bythebook ingest --rebuild'."
        )
