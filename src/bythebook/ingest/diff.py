"""The differences between the sources and the book: changed pages, changed chunks, and the vectors of new chunks.

As few pages as possible are read, and as few chunks as possible are embedded.
"""

import asyncio
import hashlib
import json
from collections.abc import AsyncGenerator, AsyncIterable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from bythebook.chunking import Chunk
from bythebook.embeddings import Embedder, Vector, embed_in_any_order
from bythebook.embeddings.checkpoint import VectorCheckpoint
from bythebook.errors import InputError
from bythebook.index import Passage, PassageStore
from bythebook.index.catalog import Catalog, ChunkRecord
from bythebook.index.provider import IndexSnapshot
from bythebook.retrieval.entries import ENTRIES_VERSION
from bythebook.sources import (
    Block,
    Coverage,
    ExcludedPage,
    GeneratedPage,
    ListedPage,
    Page,
    PageSource,
    SkippedPage,
    Unreadable,
)
from bythebook.telemetry import Progress


@dataclass(frozen=True, slots=True)
class ChangedPage:
    """A page that is new or differs from the one in the book."""

    page: Page
    path: str
    source: str
    fingerprint: str
    is_new: bool


@dataclass(slots=True)
class IngestPlan:
    """The changes that update the book from its sources."""

    changed: list[ChangedPage] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    unchanged: int = 0
    coverage: dict[str, Coverage] = field(default_factory=dict)
    """How much of each source could be read, by the name of the source."""
    fingerprints: dict[str, tuple[str, str]] = field(default_factory=dict)
    """The stamp and the fingerprint of each page that was read, by its URL."""
    order: dict[str, list[str]] = field(default_factory=dict)
    """The pages of each source by their URLs, in the order of the book."""

    @property
    def skipped(self) -> tuple[SkippedPage, ...]:
        return tuple(skipped for coverage in self.coverage.values() for skipped in coverage.skipped)

    @property
    def left_out(self) -> tuple[ExcludedPage, ...]:
        return tuple(item for coverage in self.coverage.values() for item in coverage.left_out)

    def has_new_order(self, book: Catalog) -> bool:
        """Whether the order of the pages differs from the book."""
        return any(list(book.page_order(source)) != urls for source, urls in self.order.items())


class FingerprintCache:
    """The fingerprint of each page at the stamp that its source last reported.

    It only saves reading. If the file is lost or damaged, every page is read again.
    """

    def __init__(self, folder: Path, recipe: str) -> None:
        self._path = folder / "stamps.json"
        self._recipe = recipe
        self._pages = self._read()

    def _read(self) -> dict[str, list[str]]:
        try:
            data = json.loads(self._path.read_text(encoding="utf-8"))
            pages = data["pages"] if data["recipe"] == self._recipe else {}
        except (OSError, ValueError, TypeError, KeyError):
            return {}
        return pages if isinstance(pages, dict) else {}

    def get(self, listed: ListedPage) -> str:
        """The fingerprint of the page if its stamp is unchanged; empty if the page may have changed."""
        stamp, fingerprint = self._pages.get(listed.url, ("", ""))
        return fingerprint if stamp and stamp == listed.stamp else ""

    def update(self, fingerprints: dict[str, tuple[str, str]]) -> None:
        """Store stamps and fingerprints. They replace the entries of the same pages."""
        pages = self._pages | {url: list(stamp) for url, stamp in fingerprints.items()}
        if pages == self._pages:
            return
        new = self._path.with_suffix(".new")
        new.write_text(json.dumps({"recipe": self._recipe, "pages": pages}), encoding="utf-8")
        new.replace(self._path)
        self._pages = pages


async def diff_sources(
    sources: Sequence[PageSource],
    plan: IngestPlan,
    *,
    book: Catalog | None,
    recipe: str,
    fingerprints: FingerprintCache,
    progress: Progress,
) -> AsyncGenerator[ChangedPage]:
    """Compare each source with the book. Yields each changed page as soon as it is read, and completes `plan`."""
    seen: dict[str, str] = {}
    plan.coverage = {source.name: Coverage() for source in sources}
    listings = [(source, await _list_pages(source, plan.coverage[source.name], seen)) for source in sources]
    if not any(listed for _, listed in listings):
        raise InputError(_no_pages_message(sources[0], plan.coverage[sources[0].name]))
    plan.order = {source.name: [entry.url for entry in listed] for source, listed in listings if listed}
    for source, listed in listings:
        for done, entry in enumerate(listed, start=1):
            progress("reading", done, len(listed))
            try:
                changed = await _compare_page(
                    entry, source, book=book, plan=plan, recipe=recipe, fingerprints=fingerprints
                )
            except GeneratedPage as exc:
                plan.coverage[source.name].left_out.append(ExcludedPage(entry.path, str(exc)))
                continue
            except Unreadable as exc:
                plan.coverage[source.name].skipped.append(SkippedPage(entry.path, str(exc)))
                continue
            if changed:
                plan.changed.append(changed)
                yield changed
        # A document that cannot be read any more is still listed, so the book keeps its pages.
        before = book.page_fingerprints(source.name) if book and listed else {}
        plan.removed.extend(sorted(set(before) - {entry.url for entry in listed}))
    if book is None and not plan.changed:
        raise InputError(f"no page could be read. Nothing was changed.{_reasons(plan.skipped)}")
    # A page that moved between two of these sources is not removed.
    changed_urls = {changed.page.url for changed in plan.changed}
    plan.removed = [url for url in plan.removed if url not in changed_urls]


async def _list_pages(source: PageSource, coverage: Coverage, seen: dict[str, str]) -> list[ListedPage]:
    """The pages of the source. A page whose URL is already in `seen` is skipped."""
    listed: list[ListedPage] = []
    async for entry in source.listing():
        if isinstance(entry, SkippedPage):
            coverage.skipped.append(entry)
        elif isinstance(entry, ExcludedPage):
            coverage.left_out.append(entry)
        elif entry.url in seen:
            coverage.skipped.append(SkippedPage(entry.path, f"has the same address as {seen[entry.url]}: {entry.url}"))
        else:
            seen[entry.url] = entry.path
            listed.append(entry)
    coverage.listed = len(listed) + len(coverage.skipped)
    if not coverage.listed:
        raise InputError(_no_pages_message(source, coverage))
    return listed


def _no_pages_message(source: PageSource, coverage: Coverage) -> str:
    why = _reasons([*coverage.skipped, *coverage.left_out])
    return f"there are no pages in {source.name!r}. Is it the right place? Nothing was changed.{why}"


def _reasons(skipped: Sequence[SkippedPage | ExcludedPage]) -> str:
    return "".join(f"\n  {entry.path}: {entry.reason}" for entry in skipped[:5])


async def _compare_page(
    listed: ListedPage,
    source: PageSource,
    *,
    book: Catalog | None,
    plan: IngestPlan,
    recipe: str,
    fingerprints: FingerprintCache,
) -> ChangedPage | None:
    """The page if it differs from the book, or None."""
    before = book.get_page(listed.url) if book else None
    if is_unchanged(source, listed, book=book, fingerprints=fingerprints):
        plan.unchanged += 1
        return None
    page = await source.read(listed)
    now = page_fingerprint(page, recipe)
    plan.fingerprints[listed.url] = (listed.stamp, now)
    if before and before.fingerprint == now and before.source == source.name:
        plan.unchanged += 1
        return None
    return ChangedPage(page, listed.path, source.name, now, is_new=before is None)


def is_unchanged(
    source: PageSource, listed: ListedPage, *, book: Catalog | None, fingerprints: FingerprintCache
) -> bool:
    """Whether the page is known to be unchanged without reading it."""
    before = book.get_page(listed.url) if book else None
    return before is not None and fingerprints.get(listed) == before.fingerprint and before.source == source.name


def page_fingerprint(page: Page, recipe: str) -> str:
    """A hash of everything that the chunks of a page depend on. The modification time is not part of it."""
    blocks = [[getattr(block, name) for name in Block.__slots__] for block in page.blocks]
    content = [recipe, page.url, page.title, page.text, blocks, page.module_name, page.chapter_id]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


_FETCH_BATCH = 256
_WRITE_BATCH = 32
"""Small, because Qdrant Edge holds the GIL while it writes, and embedding waits."""


@dataclass(slots=True)
class ChunkChanges:
    """Chunks to write, and records of chunks to remove. A chunk with the same id in both is replaced."""

    added: list[Chunk] = field(default_factory=list)
    removed: list[ChunkRecord] = field(default_factory=list)

    @property
    def removed_ids(self) -> list[str]:
        """The ids that are removed and not replaced."""
        added = {chunk.chunk_id for chunk in self.added}
        return [record.chunk_id for record in self.removed if record.chunk_id not in added]

    def compare(self, chunks: Sequence[Chunk], *, before: Iterable[ChunkRecord]) -> list[Chunk]:
        """Compare the chunks of a page with those in the book. Returns the chunks that must be written."""
        known = {record.chunk_id: record for record in before}
        same = {
            c.chunk_id for c in chunks if c.chunk_id in known and known[c.chunk_id].fingerprint == chunk_fingerprint(c)
        }
        added = [chunk for chunk in chunks if chunk.chunk_id not in same]
        self.added.extend(added)
        self.removed.extend(record for chunk_id, record in known.items() if chunk_id not in same)
        return added


def chunk_fingerprint(chunk: Chunk) -> str:
    """A hash of everything stored of the chunk except the time, which alone does not require a write."""
    stored = {name: getattr(chunk, name) for name in Chunk.__slots__ if name != "created_at"}
    stored["entries"] = ENTRIES_VERSION
    return hashlib.sha256(json.dumps(stored, sort_keys=True).encode()).hexdigest()


class ChunkVectors:
    """The vectors of chunks: from the book and the checkpoint where they are known, else from the embedder."""

    def __init__(self, embedder: Embedder, checkpointed: Mapping[str, Vector], book: IndexSnapshot | None) -> None:
        self._embedder = embedder
        self._checkpointed = checkpointed
        """The vectors of this run and of a run that was killed, by the hash of the text."""
        self._book = book
        self._requested: set[str] = set()
        self._arrived = asyncio.Event()

    @cached_property
    def _in_book(self) -> dict[str, str]:
        """The chunk ids of the book by the hash of the text. Moved and repeated texts reuse their vectors."""
        return self._book.catalog.chunk_ids_by_content() if self._book else {}

    async def select_missing(self, chunks: AsyncIterable[Chunk]) -> AsyncGenerator[Chunk]:
        """The chunks without a known vector, one for each text."""
        async for chunk in chunks:
            content_hash = chunk.content_hash
            if not (
                content_hash in self._requested or content_hash in self._checkpointed or content_hash in self._in_book
            ):
                self._requested.add(content_hash)
                yield chunk

    async def embed(self, chunks: AsyncIterable[Chunk], *, checkpoint: VectorCheckpoint, progress: Progress) -> int:
        """Embed the missing texts, and checkpoint each vector at once. Returns their number."""
        hashes: list[str] = []

        async def texts() -> AsyncGenerator[str]:
            async with aclosing(self.select_missing(chunks)) as missing:
                async for chunk in missing:
                    hashes.append(chunk.content_hash)
                    yield chunk.embedded

        done = 0
        async with aclosing(embed_in_any_order(self._embedder, texts())) as vectors:
            async for index, vector in vectors:
                checkpoint.add(hashes[index], vector)
                self._arrived.set()
                done += 1
                progress("embedding", done, len(self._requested))
        return done

    async def passages(self, chunks: Sequence[Chunk]) -> AsyncGenerator[list[Passage]]:
        """The chunks with their vectors in batches, as soon as the vectors exist. Another task embeds them."""
        for first in range(0, len(chunks), _WRITE_BATCH):
            batch = chunks[first : first + _WRITE_BATCH]
            while not all(self._is_known(chunk) for chunk in reversed(batch)):
                self._arrived.clear()
                await self._arrived.wait()
            vectors = await self._fetch(batch)
            yield [Passage(chunk, vectors[chunk.content_hash]) for chunk in batch]

    def _is_known(self, chunk: Chunk) -> bool:
        return chunk.content_hash in self._checkpointed or chunk.content_hash in self._in_book

    async def _fetch(self, chunks: Sequence[Chunk]) -> dict[str, Vector]:
        """The vectors of these chunks, by the hash of the text."""
        hashes = {chunk.content_hash for chunk in chunks}
        vectors = {hashed: self._checkpointed[hashed] for hashed in hashes if hashed in self._checkpointed}
        if self._book and (rest := hashes - vectors.keys()):
            passages = await self._book.store.fetch([self._in_book[hashed] for hashed in rest])
            vectors |= {passage.chunk.content_hash: passage.vector for passage in passages.values()}
        return vectors


async def fetch_removed_passages(store: PassageStore, changes: ChunkChanges) -> list[Passage]:
    """The passages that are removed or replaced, as they are in the book."""
    ids = [record.chunk_id for record in changes.removed]
    passages: list[Passage] = []
    for first in range(0, len(ids), _FETCH_BATCH):
        passages.extend((await store.fetch(ids[first : first + _FETCH_BATCH])).values())
    return passages
