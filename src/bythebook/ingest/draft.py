"""The draft: the next generation while it is being written."""

from __future__ import annotations

import asyncio
import shutil
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from bythebook.ingest.changes import fingerprint
from bythebook.passages.calibration import UNTRIED, calibrate
from bythebook.passages.catalogue import Catalogue, ChunkRecord, PageRecord
from bythebook.passages.edge import EdgeStore
from bythebook.passages.generations import DRAFT
from bythebook.passages.retriever import Retriever
from bythebook.passages.shelf import CATALOGUE, SHARD, Edition
from bythebook.passages.tally import Tally
from bythebook.passages.words import Words, stepped

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Sequence
    from pathlib import Path

    from bythebook.chunks import Chunk
    from bythebook.ingest.changes import Changes
    from bythebook.ingest.plan import Found, Plan
    from bythebook.passages import Passage
    from bythebook.passages.generations import Generations
    from bythebook.vectors import Embedder

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
            if self.book and self.book.calibration.still_holds(chunks):
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
        fingerprint=fingerprint(chunk),
        length=length,
        headings=" > ".join(chunk.heading_hierarchy),
    )
