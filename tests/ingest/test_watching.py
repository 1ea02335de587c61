"""Watching a folder: one change is one reading, however many files it touches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from bythebook.errors import ConfigurationError, InputError, Unavailable
from bythebook.ingest.watcher import UNSEEN, Keeping, Sight, look
from bythebook.sources import Listed, Page, Skipped


@dataclass
class Pages:
    """A source whose listings are written down beforehand; the last one stays."""

    listings: list[dict[str, str]]
    name: str = "pages"
    looks: int = 0
    looked_enough: asyncio.Event = field(default_factory=asyncio.Event)
    said: list[str] = field(default_factory=list)

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


async def watched(pages: Pages, *, known: dict[str, str], done: list[Exception | None]) -> list[int]:
    """After how many looks the pages were read in, until `done` has said how each of the readings went."""
    read: list[int] = []
    finished = asyncio.Event()

    async def reading() -> None:
        read.append(pages.looks)
        if len(read) == len(done):
            finished.set()
        if error := done[len(read) - 1]:
            raise error

    pages.said = []
    keeping = Keeping([pages], reading, pages.said.append, seconds=0, _known=sight(known))
    task = asyncio.create_task(keeping.go_on())
    await (finished if done else pages.looked_enough).wait()
    await pages.looked_enough.wait()
    task.cancel()
    await asyncio.wait([task])
    return read


def sight(known: dict[str, str]) -> Sight:
    return UNSEEN if known == {"": ""} else tuple((path, f"{path} {stamp}") for path, stamp in known.items())


async def test_pages_that_stay_the_same_are_left_alone() -> None:
    assert await watched(Pages([{"a": "1"}]), known={"a": "1"}, done=[]) == []


async def test_many_files_written_one_after_the_other_are_one_change() -> None:
    pages = Pages([{"a": "1"}, {"a": "2"}, {"a": "2", "b": "1"}, {"a": "2", "b": "1", "c": "1"}])
    assert await watched(pages, known={"a": "1"}, done=[None]) == [5]


async def test_a_change_during_the_first_reading_is_seen() -> None:
    assert await watched(Pages([{"a": "2"}]), known={"a": "1"}, done=[None]) == [2]


async def test_pages_in_another_order_are_a_change() -> None:
    assert await watched(Pages([{"b": "1", "a": "1"}]), known={"a": "1", "b": "1"}, done=[None]) == [2]


async def test_what_has_to_wait_for_somebody_else_is_tried_again_and_said_once() -> None:
    pages = Pages([{"a": "2"}])
    busy = Unavailable("another ingest is running")
    assert len(await watched(pages, known={"a": "1"}, done=[busy, busy, None])) == 3
    assert pages.said == ["Not read in: another ingest is running"]


async def test_a_reading_that_failed_is_said_and_watching_goes_on() -> None:
    pages = Pages([{"a": "2"}, {"a": "2"}, {"a": "2"}, {"a": "3"}])
    assert await watched(pages, known={"a": "1"}, done=[InputError("a is damaged"), None]) == [2, 5]
    assert pages.said == ["Not read in: a is damaged"]


async def test_nothing_is_waited_for_before_the_first_reading() -> None:
    assert await watched(Pages([{"a": "1"}]), known={"": ""}, done=[None]) == [1]


async def test_a_source_that_cannot_be_listed_is_seen_with_its_reason() -> None:
    class Broken(Pages):
        async def listing(self) -> AsyncIterator[Listed | Skipped]:
            raise ConfigurationError("mkdocs.yml cannot be read")
            yield

    assert await look([Broken([]), Pages([{"a": "1"}])]) == (("pages", "mkdocs.yml cannot be read"), ("a", "a 1"))
