"""Watching: a folder is read in again when its pages change."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from bythebook.pages import Listed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from bythebook.pages import PageSource

LOOK_SECONDS = 0.5
"""How often to look, and how long nothing may change before the pages are taken to be written."""

LOOKING_SHARE = 0.05
"""How much of the time may go into looking, for a folder so large that it takes long."""

Stamps = dict[str, str]


async def watch(
    source: PageSource, changed: Callable[[], Awaitable[bool]], *, known: Stamps, seconds: float = LOOK_SECONDS
) -> None:
    """Look at the pages of this source for ever. When they are no longer as `known`, and have come to rest, do this.

    Many files written at once, by a generator or by git, are one change. What changes while `changed` is at work is
    seen afterwards. Where it says that it could not be done, it is tried again.
    """
    while True:
        now = await _look(source, seconds)
        while now != known and now != (again := await _look(source, seconds)):
            now = again
        if now != known and await changed():
            known = now


async def stamps(source: PageSource) -> Stamps:
    """Something that differs for every page when it may have changed."""
    return {entry.path: entry.stamp async for entry in source.listing() if isinstance(entry, Listed)}


async def _look(source: PageSource, seconds: float) -> Stamps:
    """The stamps a moment from now; later, where looking takes long."""
    await asyncio.sleep(seconds)
    before = time.perf_counter()
    found = await stamps(source)
    took = time.perf_counter() - before
    await asyncio.sleep(max(0.0, took / LOOKING_SHARE - seconds))
    return found
