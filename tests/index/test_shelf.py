"""The shelf: the current edition, and a newer one in its place."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bythebook.errors import ConfigurationError, NotFound
from bythebook.index import EVERYWHERE
from bythebook.index.provider import Shelf
from tests.support.word_embedder import WordBook, WordEmbedder

if TYPE_CHECKING:
    from bythebook.index.provider import Edition, Library


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


async def test_before_the_first_ingest_there_is_nothing_on_the_shelf(tmp_path: Path) -> None:
    with WordBook(tmp_path / "index").shelf() as shelf:
        await shelf.prepare()
        with pytest.raises(NotFound, match="there is no book yet"):
            async with shelf.edition():
                pass


async def test_a_book_that_is_read_in_while_the_shelf_is_open_appears_on_it(tmp_path: Path, pages: Path) -> None:
    book = WordBook(tmp_path / "index")
    with book.shelf() as shelf:
        with pytest.raises(NotFound):
            async with shelf.edition():
                pass
        await book.ingest(pages)
        async with shelf.edition() as edition:
            assert edition.chunk_count == 1


async def test_a_newer_generation_takes_the_place_of_the_old_one(book: WordBook, pages: Path) -> None:
    with book.shelf() as shelf:
        async with shelf.edition() as first:
            assert (first.name, first.chunk_count) == ("g000001", 1)
        await add(book, pages, "horn")
        async with shelf.edition() as second:
            assert (second.name, second.chunk_count) == ("g000002", 2)


async def test_whoever_reads_the_old_one_keeps_it_whole(book: WordBook, pages: Path) -> None:
    async def everything(edition: Edition) -> tuple[int, int]:
        ids = edition.catalogue.all_chunk_ids()
        return len(await edition.store.fetch(ids)), await edition.store.count(EVERYWHERE)

    with book.shelf() as shelf:
        async with shelf.edition() as old:
            await add(book, pages, "horn")
            async with shelf.edition() as new:
                await add(book, pages, "flag")
                assert (await everything(old), await everything(new)) == ((1, 1), (2, 2))
            assert await everything(old) == (1, 1)
        async with shelf.edition() as last:
            assert await everything(last) == (3, 3)


async def test_an_edition_nobody_reads_any_more_can_be_swept_away(book: WordBook, pages: Path) -> None:
    def sweep() -> list[str]:
        with book.generations.writing():
            book.generations.sweep()
        return sorted(path.name for path in book.folder.glob("g*"))

    with book.shelf() as shelf:
        async with shelf.edition():
            await add(book, pages, "horn")
            async with shelf.edition():
                assert sweep() == ["g000001", "g000002"]
            assert sweep() == ["g000001", "g000002"]
        assert sweep() == ["g000002"]


async def test_the_same_edition_is_opened_once_for_all_who_ask_at_once(book: WordBook) -> None:
    async def read() -> int:
        async with shelf.edition() as edition:
            return id(edition)

    with book.shelf() as shelf:
        async with asyncio.TaskGroup() as group:
            reading = [group.create_task(read()) for _ in range(20)]
        assert len({task.result() for task in reading}) == 1


class SlowLibrary:
    """A library whose book takes as long to open as the test wants, and counts how often that was done."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self.may_open = asyncio.Event()
        self.opened = 0
        self.closed = asyncio.Event()

    async def current(self) -> str:
        return await self._library.current()

    async def open(self, stack: ExitStack) -> Edition:
        self.opened += 1
        await self.may_open.wait()
        stack.callback(self.closed.set)
        return await self._library.open(stack)


async def left_while_opening(shelf: Shelf) -> None:
    async def read() -> None:
        async with shelf.edition():
            pass

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(read(), 0.01)


async def test_who_leaves_while_the_book_is_opened_leaves_it_to_the_next(book: WordBook) -> None:
    library = SlowLibrary(book.library)
    with closing(Shelf(library)) as shelf:
        await left_while_opening(shelf)
        await left_while_opening(shelf)
        library.may_open.set()
        async with shelf.edition() as edition:
            assert (edition.name, library.opened) == ("g000001", 1)
        assert not library.closed.is_set()
    assert library.closed.is_set()


async def test_what_is_opened_after_the_shelf_was_closed_is_closed_at_once(book: WordBook) -> None:
    library = SlowLibrary(book.library)
    with closing(Shelf(library)) as shelf:
        await left_while_opening(shelf)
    library.may_open.set()
    await asyncio.wait_for(library.closed.wait(), 60)


async def test_an_index_made_with_another_embedder_is_refused(book: WordBook) -> None:
    other = WordBook(book.folder, embedder=WordEmbedder(model="other"))
    with other.shelf() as shelf, pytest.raises(ConfigurationError, match=r"'words'.*'other'.*--rebuild"):
        async with shelf.edition():
            pass


async def test_rarity_is_counted_in_the_edition(book: WordBook, pages: Path) -> None:
    await add(book, pages, "horn")
    with book.shelf() as shelf:
        async with shelf.edition() as edition:
            (lamp,), (unknown,) = (edition.words.terms(word) for word in ("lamp", "zebra"))
            rarities = edition.rarities([lamp, unknown])
    assert rarities[unknown] > rarities[lamp] > 0
