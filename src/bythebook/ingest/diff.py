"""The plan: what differs between the sources and the book, reading as few pages as possible.

The changes: which chunks come and go, and the vector of each one that comes.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from bythebook.chunking import Chunk
from bythebook.embeddings import as_they_come
from bythebook.errors import InputError
from bythebook.index import Passage
from bythebook.sources import Block, Coverage, LeftOut, Listed, Skipped, Unreadable

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterable, Iterable, Mapping, Sequence
    from pathlib import Path

    from bythebook.embeddings import Embedder, Vector
    from bythebook.embeddings.checkpoint import Journal
    from bythebook.index import PassageStore
    from bythebook.index.catalog import Catalogue, ChunkRecord
    from bythebook.index.provider import Edition
    from bythebook.sources import Page, PageSource
    from bythebook.telemetry import Progress


@dataclass(frozen=True, slots=True)
class Found:
    """A page that is new, or differs from the one in the book."""

    page: Page
    path: str
    source: str
    fingerprint: str
    is_new: bool


@dataclass(slots=True)
class Plan:
    """What must change to bring the book up to its sources."""

    found: list[Found] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    unchanged: int = 0
    coverage: dict[str, Coverage] = field(default_factory=dict)
    """What was there and what of it could not be read, by the name of the source."""
    stamps: dict[str, tuple[str, str]] = field(default_factory=dict)
    order: dict[str, list[str]] = field(default_factory=dict)
    """The pages of each source by their URLs, in the order of the book."""

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        return tuple(skipped for coverage in self.coverage.values() for skipped in coverage.skipped)

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        return tuple(item for coverage in self.coverage.values() for item in coverage.left_out)

    def is_reordered(self, book: Catalogue) -> bool:
        """Whether the pages stand in another order than in the book."""
        return any(list(book.order(source)) != urls for source, urls in self.order.items())


class Stamps:
    """Which fingerprint a page had when its source showed a certain stamp.

    Only ever a hint that saves reading: when the file is lost or damaged, every page is read again.
    """

    def __init__(self, folder: Path, recipe: str) -> None:
        self._path = folder / "stamps.json"
        self._recipe = recipe
        self._known = self._read()

    def _read(self) -> dict[str, list[str]]:
        try:
            data = json.loads(self._path.read_text(encoding="utf-8"))
            pages = data["pages"] if data["recipe"] == self._recipe else {}
        except (OSError, ValueError, TypeError, KeyError):
            return {}
        return pages if isinstance(pages, dict) else {}

    def fingerprint(self, listed: Listed) -> str:
        """The fingerprint the page must still have, empty when it may have changed."""
        stamp, fingerprint = self._known.get(listed.url, ("", ""))
        return fingerprint if stamp and stamp == listed.stamp else ""

    def keep(self, stamps: dict[str, tuple[str, str]]) -> None:
        """Remember these, in place of what was known of the same pages."""
        pages = self._known | {url: list(stamp) for url, stamp in stamps.items()}
        if pages == self._known:
            return
        new = self._path.with_suffix(".new")
        new.write_text(json.dumps({"recipe": self._recipe, "pages": pages}), encoding="utf-8")
        new.replace(self._path)
        self._known = pages


async def look_through(
    sources: Sequence[PageSource],
    plan: Plan,
    *,
    book: Catalogue | None,
    recipe: str,
    stamps: Stamps,
    progress: Progress,
) -> AsyncGenerator[Found]:
    """Compare each source with what the book has of it. Each page that differs comes out as soon as it is read.

    At the end the plan says everything.
    """
    seen: dict[str, str] = {}
    plan.coverage = {source.name: Coverage() for source in sources}
    listings = [(source, await _listed(source, plan.coverage[source.name], seen)) for source in sources]
    if not any(listed for _, listed in listings):
        raise InputError(_nothing_found(sources[0], plan.coverage[sources[0].name]))
    plan.order = {source.name: [entry.url for entry in listed] for source, listed in listings if listed}
    for source, listed in listings:
        for done, entry in enumerate(listed, start=1):
            progress("reading", done, len(listed))
            try:
                found = await _look_at(entry, source, book=book, plan=plan, recipe=recipe, stamps=stamps)
            except Unreadable as exc:
                plan.coverage[source.name].skipped.append(Skipped(entry.path, str(exc)))
                continue
            if found:
                plan.found.append(found)
                yield found
        # A document that has become unreadable keeps the pages it had, as a page does.
        before = book.fingerprints(source.name) if book and listed else {}
        plan.removed.extend(sorted(set(before) - {entry.url for entry in listed}))
    if book is None and not plan.found:
        raise InputError(f"no page could be read. Nothing was changed.{_reasons(plan.skipped)}")
    # A page that went from one of these sources to another has not gone.
    arriving = {found.page.url for found in plan.found}
    plan.removed = [url for url in plan.removed if url not in arriving]


async def _listed(source: PageSource, coverage: Coverage, seen: dict[str, str]) -> list[Listed]:
    """The pages of the source; two pages that would share an address are not both kept."""
    listed: list[Listed] = []
    async for entry in source.listing():
        if isinstance(entry, Skipped):
            coverage.skipped.append(entry)
        elif isinstance(entry, LeftOut):
            coverage.left_out.append(entry)
        elif entry.url in seen:
            coverage.skipped.append(Skipped(entry.path, f"has the same address as {seen[entry.url]}: {entry.url}"))
        else:
            seen[entry.url] = entry.path
            listed.append(entry)
    coverage.listed = len(listed) + len(coverage.skipped)
    if not coverage.listed:
        raise InputError(_nothing_found(source, coverage))
    return listed


def _nothing_found(source: PageSource, coverage: Coverage) -> str:
    why = _reasons([*coverage.skipped, *coverage.left_out])
    return f"there are no pages in {source.name!r}. Is it the right place? Nothing was changed.{why}"


def _reasons(skipped: Sequence[Skipped | LeftOut]) -> str:
    return "".join(f"\n  {entry.path}: {entry.reason}" for entry in skipped[:5])


async def _look_at(
    listed: Listed, source: PageSource, *, book: Catalogue | None, plan: Plan, recipe: str, stamps: Stamps
) -> Found | None:
    """The page if it differs from the one in the book."""
    before = book.page(listed.url) if book else None
    if is_unchanged(source, listed, book=book, stamps=stamps):
        plan.unchanged += 1
        return None
    page = await source.read(listed)
    now = fingerprint(page, recipe)
    plan.stamps[listed.url] = (listed.stamp, now)
    if before and before.fingerprint == now and before.source == source.name:
        plan.unchanged += 1
        return None
    return Found(page, listed.path, source.name, now, is_new=before is None)


def is_unchanged(source: PageSource, listed: Listed, *, book: Catalogue | None, stamps: Stamps) -> bool:
    """Whether the page is known to be as it is in the book, without reading it."""
    before = book.page(listed.url) if book else None
    return before is not None and stamps.fingerprint(listed) == before.fingerprint and before.source == source.name


def fingerprint(page: Page, recipe: str) -> str:
    """Of everything the page's chunks depend on. When it was last touched is not among it."""
    blocks = [[getattr(block, name) for name in Block.__slots__] for block in page.blocks]
    content = [recipe, page.url, page.title, page.text, blocks, page.module_name, page.chapter_id]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


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
        same = {
            c.chunk_id for c in chunks if c.chunk_id in known and known[c.chunk_id].fingerprint == chunk_fingerprint(c)
        }
        arriving = [chunk for chunk in chunks if chunk.chunk_id not in same]
        self.put.extend(arriving)
        self.gone.extend(record for chunk_id, record in known.items() if chunk_id not in same)
        return arriving


def chunk_fingerprint(chunk: Chunk) -> str:
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
