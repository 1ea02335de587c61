"""The index provider: the current snapshot, and the switch to a newer one."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bythebook.errors import ConfigurationError, NotFound
from bythebook.index import NO_FILTERS
from bythebook.index.provider import IndexProvider
from tests.support.word_embedder import WordBook, WordEmbedder

if TYPE_CHECKING:
    from bythebook.index.provider import IndexSnapshot, SnapshotLoader


@pytest.fixture
async def pages(tmp_path: Path) -> Path:
    folder = tmp_path / "pages"
    folder.mkdir()
    (folder / "lamp.md").write_text("# Lamp\n\nThe lamp burns colza oil.\n")
    return folder


@pytest.fixture
async def book(tmp_path: Path, pages: Path) -> WordBook:
    book = WordBook(tmp_path / "index")
    await book.ingest(pages)
    return book


async def add(book: WordBook, pages: Path, name: str) -> None:
    (pages / f"{name}.md").write_text(f"# {name}\n\nThe {name} is another matter.\n")
    await book.ingest(pages)


async def test_there_is_no_snapshot_before_the_first_ingest(tmp_path: Path) -> None:
    with WordBook(tmp_path / "index").index_provider() as index_provider:
        await index_provider.prepare()
        with pytest.raises(NotFound, match="there is no book yet"):
            async with index_provider.snapshot():
                pass


async def test_the_first_generation_appears_while_the_provider_is_open(tmp_path: Path, pages: Path) -> None:
    book = WordBook(tmp_path / "index")
    with book.index_provider() as index_provider:
        with pytest.raises(NotFound):
            async with index_provider.snapshot():
                pass
        await book.ingest(pages)
        async with index_provider.snapshot() as snapshot:
            assert snapshot.chunk_count == 1


async def test_a_newer_generation_replaces_the_old_one(book: WordBook, pages: Path) -> None:
    with book.index_provider() as index_provider:
        async with index_provider.snapshot() as first:
            assert (first.name, first.chunk_count) == ("g000001", 1)
        await add(book, pages, "horn")
        async with index_provider.snapshot() as second:
            assert (second.name, second.chunk_count) == ("g000002", 2)


async def test_a_reader_keeps_its_old_snapshot_unchanged(book: WordBook, pages: Path) -> None:
    async def everything(snapshot: IndexSnapshot) -> tuple[int, int]:
        ids = snapshot.catalog.all_chunk_ids()
        return len(await snapshot.store.fetch(ids)), await snapshot.store.count(NO_FILTERS)

    with book.index_provider() as index_provider:
        async with index_provider.snapshot() as old:
            await add(book, pages, "horn")
            async with index_provider.snapshot() as new:
                await add(book, pages, "flag")
                assert (await everything(old), await everything(new)) == ((1, 1), (2, 2))
            assert await everything(old) == (1, 1)
        async with index_provider.snapshot() as last:
            assert await everything(last) == (3, 3)


async def test_a_snapshot_without_readers_can_be_swept(book: WordBook, pages: Path) -> None:
    def sweep() -> list[str]:
        with book.generations.writing():
            book.generations.sweep()
        return sorted(path.name for path in book.folder.glob("g*"))

    with book.index_provider() as index_provider:
        async with index_provider.snapshot():
            await add(book, pages, "horn")
            async with index_provider.snapshot():
                assert sweep() == ["g000001", "g000002"]
            assert sweep() == ["g000001", "g000002"]
        assert sweep() == ["g000002"]


async def test_concurrent_readers_open_a_snapshot_once(book: WordBook) -> None:
    async def read() -> int:
        async with index_provider.snapshot() as snapshot:
            return id(snapshot)

    with book.index_provider() as index_provider:
        async with asyncio.TaskGroup() as group:
            reading = [group.create_task(read()) for _ in range(20)]
        assert len({task.result() for task in reading}) == 1


class SlowLoader:
    """A snapshot loader that waits for the test before it opens, and counts how often it does."""

    def __init__(self, loader: SnapshotLoader) -> None:
        self._library = loader
        self.may_open = asyncio.Event()
        self.opened = 0
        self.closed = asyncio.Event()

    async def current(self) -> str:
        return await self._library.current()

    async def open(self, stack: ExitStack) -> IndexSnapshot:
        self.opened += 1
        await self.may_open.wait()
        stack.callback(self.closed.set)
        return await self._library.open(stack)


async def left_while_opening(index_provider: IndexProvider) -> None:
    async def read() -> None:
        async with index_provider.snapshot():
            pass

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(read(), 0.01)


async def test_a_cancelled_reader_leaves_the_opening_to_the_next(book: WordBook) -> None:
    loader = SlowLoader(book.loader)
    with closing(IndexProvider(loader)) as index_provider:
        await left_while_opening(index_provider)
        await left_while_opening(index_provider)
        loader.may_open.set()
        async with index_provider.snapshot() as snapshot:
            assert (snapshot.name, loader.opened) == ("g000001", 1)
        assert not loader.closed.is_set()
    assert loader.closed.is_set()


async def test_a_snapshot_that_opens_after_close_is_closed_at_once(book: WordBook) -> None:
    loader = SlowLoader(book.loader)
    with closing(IndexProvider(loader)) as index_provider:
        await left_while_opening(index_provider)
    loader.may_open.set()
    await asyncio.wait_for(loader.closed.wait(), 60)


async def test_rejects_an_index_of_another_embedder(book: WordBook) -> None:
    other = WordBook(book.folder, embedder=WordEmbedder(model="other"))
    with (
        other.index_provider() as index_provider,
        pytest.raises(ConfigurationError, match=r"'words'.*'other'.*--rebuild"),
    ):
        async with index_provider.snapshot():
            pass


async def test_idf_weights_use_the_document_frequencies_of_the_snapshot(book: WordBook, pages: Path) -> None:
    await add(book, pages, "horn")
    with book.index_provider() as index_provider:
        async with index_provider.snapshot() as snapshot:
            (lamp,), (unknown,) = (snapshot.bm25.terms(word) for word in ("lamp", "zebra"))
            idf_weights = snapshot.idf_weights([lamp, unknown])
    assert idf_weights[unknown] > idf_weights[lamp] > 0
