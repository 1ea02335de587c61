"""Watching: sources are read in again when their pages change."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from bythebook.errors import BookError, Unavailable
from bythebook.sources import Listed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from bythebook.sources import PageSource

LOOK_SECONDS = 0.5
"""How often to look, and how long nothing may change before the pages are taken to be written."""

LOOKING_SHARE = 0.05
"""How much of the time may go into looking, for a folder so large that it takes long."""

Sight: TypeAlias = tuple[tuple[str, str], ...]
"""Every page in its order, with something that differs when it may have changed; or why nothing can be seen."""

UNSEEN: Sight = (("", ""),)


@dataclass(slots=True)
class Keeping:
    """A book that keeps up with its sources: whatever changes in them is read in again, until the task is cancelled."""

    sources: Sequence[PageSource]
    read: Callable[[], Awaitable[None]]
    say: Callable[[str], None]
    """Hears what goes wrong. The book is then as it was, and watching goes on."""
    seconds: float = LOOK_SECONDS
    _known: Sight = UNSEEN
    _complaint: str = ""

    async def begin(self) -> None:
        """Read the sources in for the first time. Raises what goes wrong."""
        # Looked at before reading, so that what is written meanwhile counts as a change.
        self._known = await look(self.sources)
        await self.read()

    async def go_on(self) -> NoReturn:
        """Read the sources in if nobody has yet, and look at them for ever: when they are no longer as they were, and
        have come to rest, they are read in again.

        Many files written at once, by a generator or by git, are one change. What changes while they are read is
        seen afterwards. Where reading has to wait for somebody else, it is tried again.
        """
        if self._known == UNSEEN:
            seen = await look(self.sources)
            self._known = seen if await self._read_again() else UNSEEN
        while True:
            now = await self._look()
            while now != self._known and now != (again := await self._look()):
                now = again
            if now != self._known and await self._read_again():
                self._known = now

    async def _read_again(self) -> bool:
        """Read in what has changed, and say so where that fails. Says whether it is done."""
        try:
            await self.read()
        except BookError as error:
            if str(error) != self._complaint:
                self.say(f"Not read in: {error}")
            self._complaint = str(error)
            return not isinstance(error, Unavailable)
        self._complaint = ""
        return True

    async def _look(self) -> Sight:
        """What is seen a moment from now; later, where looking takes long."""
        await asyncio.sleep(self.seconds)
        before = time.perf_counter()
        found = await look(self.sources)
        took = time.perf_counter() - before
        await asyncio.sleep(max(0.0, took / LOOKING_SHARE - self.seconds))
        return found


async def look(sources: Sequence[PageSource]) -> Sight:
    """What the sources have now. One that cannot be listed shows its reason: reading it in will say the same."""
    found: list[tuple[str, str]] = []
    for source in sources:
        try:
            found += [(entry.path, f"{entry.url} {entry.stamp}") async for entry in _pages(source)]
        except BookError as error:
            found.append((source.name, str(error)))
    return tuple(found)


async def _pages(source: PageSource) -> AsyncIterator[Listed]:
    async for entry in source.listing():
        if isinstance(entry, Listed):
            yield entry
