"""Watching a folder: one change is one reading, however many files it touches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from bythebook.pages import Listed, Page, Skipped
from bythebook.web.watching import stamps, watch


@dataclass
class Pages:
    """A source whose listings are written down beforehand; the last one stays."""

    listings: list[dict[str, str]]
    name: str = "pages"
    looks: int = 0
    looked_enough: asyncio.Event = field(default_factory=asyncio.Event)

    async def listing(self) -> AsyncIterator[Listed | Skipped]:
        found = self.listings[min(self.looks, len(self.listings) - 1)]
        self.looks += 1
        if self.looks == len(self.listings) + 5:
            self.looked_enough.set()
        yield Skipped("draft.pdf", "not supported")
        for path, stamp in found.items():
            yield Listed(path, path, stamp)

    async def read(self, listed: Listed) -> Page:
        raise AssertionError(f"{listed.path} need not be read")


async def watched(pages: Pages, *, known: dict[str, str], done: list[bool]) -> list[int]:
    """After how many looks the pages were read in, until `done` has said how each of the readings went."""
    read: list[int] = []
    finished = asyncio.Event()

    async def changed() -> bool:
        read.append(pages.looks)
        if len(read) == len(done):
            finished.set()
        return done[len(read) - 1]

    task = asyncio.create_task(watch(pages, changed, known=known, seconds=0))
    await (finished if done else pages.looked_enough).wait()
    task.cancel()
    await asyncio.wait([task])
    return read


async def test_pages_that_stay_the_same_are_left_alone() -> None:
    assert await watched(Pages([{"a": "1"}]), known={"a": "1"}, done=[]) == []


async def test_many_files_written_one_after_the_other_are_one_change() -> None:
    pages = Pages([{"a": "1"}, {"a": "2"}, {"a": "2", "b": "1"}, {"a": "2", "b": "1", "c": "1"}])
    assert await watched(pages, known={"a": "1"}, done=[True]) == [5]


async def test_a_change_during_the_first_reading_is_seen() -> None:
    assert await watched(Pages([{"a": "2"}]), known={"a": "1"}, done=[True]) == [2]


async def test_what_could_not_be_read_in_is_tried_again() -> None:
    assert len(await watched(Pages([{"a": "2"}]), known={"a": "1"}, done=[False, False, True])) == 3


async def test_what_is_no_page_is_not_looked_at() -> None:
    assert await stamps(Pages([{"a": "1"}])) == {"a": "1"}
