"""The watcher ingests once per change, however many files it affects."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from bythebook.errors import ConfigurationError, InputError, Unavailable
from bythebook.ingest.watcher import NOT_READ, SourceState, SourceWatcher, read_state
from bythebook.sources import ListedPage, Page, SkippedPage


@dataclass
class Pages:
    """A source with scripted listings. The last one is repeated."""

    listings: list[dict[str, str]]
    name: str = "pages"
    looks: int = 0
    looked_enough: asyncio.Event = field(default_factory=asyncio.Event)
    said: list[str] = field(default_factory=list)

    async def listing(self) -> AsyncIterator[ListedPage | SkippedPage]:
        found = self.listings[min(self.looks, len(self.listings) - 1)]
        self.looks += 1
        if self.looks == len(self.listings) + 5:
            self.looked_enough.set()
        yield SkippedPage("draft.pdf", "not supported")
        for path, stamp in found.items():
            yield ListedPage(path, path, stamp)

    async def read(self, listed: ListedPage) -> Page:
        raise AssertionError(f"{listed.path} need not be read")


async def watched(pages: Pages, *, known: dict[str, str], done: list[Exception | None]) -> list[int]:
    """The number of listings before each ingest. `done` is the result of each ingest."""
    read: list[int] = []
    finished = asyncio.Event()

    async def reading() -> None:
        read.append(pages.looks)
        if len(read) == len(done):
            finished.set()
        if error := done[len(read) - 1]:
            raise error

    pages.said = []
    watcher = SourceWatcher([pages], reading, pages.said.append, seconds=0, _ingested=source_state(known))
    task = asyncio.create_task(watcher.run())
    await (finished if done else pages.looked_enough).wait()
    await pages.looked_enough.wait()
    task.cancel()
    await asyncio.wait([task])
    return read


def source_state(known: dict[str, str]) -> SourceState:
    return NOT_READ if known == {"": ""} else tuple((path, f"{path} {stamp}") for path, stamp in known.items())


async def test_unchanged_pages_are_not_ingested() -> None:
    assert await watched(Pages([{"a": "1"}]), known={"a": "1"}, done=[]) == []


async def test_many_files_written_one_after_the_other_are_one_change() -> None:
    pages = Pages([{"a": "1"}, {"a": "2"}, {"a": "2", "b": "1"}, {"a": "2", "b": "1", "c": "1"}])
    assert await watched(pages, known={"a": "1"}, done=[None]) == [5]


async def test_detects_a_change_during_the_first_ingest() -> None:
    assert await watched(Pages([{"a": "2"}]), known={"a": "1"}, done=[None]) == [2]


async def test_pages_in_another_order_are_a_change() -> None:
    assert await watched(Pages([{"b": "1", "a": "1"}]), known={"a": "1", "b": "1"}, done=[None]) == [2]


async def test_repeats_a_busy_ingest_and_reports_it_once() -> None:
    pages = Pages([{"a": "2"}])
    busy = Unavailable("another ingest is running")
    assert len(await watched(pages, known={"a": "1"}, done=[busy, busy, None])) == 3
    assert pages.said == ["Not ingested: another ingest is running"]


async def test_reports_a_failed_ingest_and_continues() -> None:
    pages = Pages([{"a": "2"}, {"a": "2"}, {"a": "2"}, {"a": "3"}])
    assert await watched(pages, known={"a": "1"}, done=[InputError("a is damaged"), None]) == [2, 5]
    assert pages.said == ["Not ingested: a is damaged"]


async def test_the_first_ingest_starts_immediately() -> None:
    assert await watched(Pages([{"a": "1"}]), known={"": ""}, done=[None]) == [1]


async def test_the_state_of_a_failing_source_is_its_error() -> None:
    class Broken(Pages):
        async def listing(self) -> AsyncIterator[ListedPage | SkippedPage]:
            raise ConfigurationError("mkdocs.yml cannot be read")
            yield

    assert await read_state([Broken([]), Pages([{"a": "1"}])]) == (("pages", "mkdocs.yml cannot be read"), ("a", "a 1"))
