"""Watches sources and ingests them again when their pages change."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

from bythebook.errors import BookError, Unavailable
from bythebook.sources import ListedPage, PageSource

POLL_SECONDS = 0.5
"""The polling interval. Pages that did not change for one interval count as completely written."""

POLL_SHARE = 0.05
"""The maximum share of the time spent on polling. It lengthens the interval for very large folders."""

SourceState: TypeAlias = tuple[tuple[str, str], ...]
"""The path of every page in order, with its URL and stamp; or the name of a source with the reason why it fails."""

NOT_READ: SourceState = (("", ""),)


@dataclass(slots=True)
class SourceWatcher:
    """Keeps a book up to date with its sources until the task is cancelled."""

    sources: Sequence[PageSource]
    ingest: Callable[[], Awaitable[None]]
    report: Callable[[str], None]
    """Receives the errors. After an error the book is unchanged and watching continues."""
    seconds: float = POLL_SECONDS
    _ingested: SourceState = NOT_READ
    _last_error: str = ""

    async def start(self) -> None:
        """Ingest the sources for the first time. Raises any error."""
        # The state before the ingest, so that a change during the ingest is detected afterwards.
        self._ingested = await read_state(self.sources)
        await self.ingest()

    async def run(self) -> NoReturn:
        """Ingest the sources unless `start` did, and again whenever they have changed and are stable.

        Many files written at once, by a generator or by git, are one change. A change during an ingest is detected
        afterwards. An ingest that fails because another one is running is repeated.
        """
        if self._ingested == NOT_READ:
            state = await read_state(self.sources)
            self._ingested = state if await self._try_ingest() else NOT_READ
        while True:
            state = await self._poll()
            while state != self._ingested and state != (next_state := await self._poll()):
                state = next_state
            if state != self._ingested and await self._try_ingest():
                self._ingested = state

    async def _try_ingest(self) -> bool:
        """Ingest, and report an error once. Returns whether it need not be repeated."""
        try:
            await self.ingest()
        except BookError as error:
            if str(error) != self._last_error:
                self.report(f"Not ingested: {error}")
            self._last_error = str(error)
            return not isinstance(error, Unavailable)
        self._last_error = ""
        return True

    async def _poll(self) -> SourceState:
        """The state after the polling interval, which is longer if reading the state is slow."""
        await asyncio.sleep(self.seconds)
        before = time.perf_counter()
        state = await read_state(self.sources)
        took = time.perf_counter() - before
        await asyncio.sleep(max(0.0, took / POLL_SHARE - self.seconds))
        return state


async def read_state(sources: Sequence[PageSource]) -> SourceState:
    """The current state of the sources. A source that cannot be listed is represented by its error."""
    found: list[tuple[str, str]] = []
    for source in sources:
        try:
            found += [
                (entry.path, f"{entry.url} {entry.stamp}")
                async for entry in source.listing()
                if isinstance(entry, ListedPage)
            ]
        except BookError as error:
            found.append((source.name, str(error)))
    return tuple(found)
