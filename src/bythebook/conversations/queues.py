"""Waiting for one's turn inside this process: first come, first served, by conversation."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Queue:
    """Those who wait for one conversation. Only the first of them looks whether it is free."""

    def __init__(self) -> None:
        self.head = asyncio.Lock()
        self.users = 0
        self._stirred = asyncio.Event()

    def stir(self) -> None:
        """Have the first look again at once."""
        self._stirred.set()

    async def pause(self, seconds: float) -> None:
        """Wait until stirred, and no longer than this: another process cannot stir us."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stirred.wait(), seconds)
        self._stirred.clear()


class Queues:
    """A queue for each conversation somebody waits for, and none for the others."""

    def __init__(self) -> None:
        self._queues: dict[str, Queue] = {}

    @asynccontextmanager
    async def first_in(self, name: str) -> AsyncIterator[Queue]:
        """Be the first in the queue until the block ends."""
        queue = self._queues.setdefault(name, Queue())
        queue.users += 1
        try:
            async with queue.head:
                yield queue
        finally:
            queue.users -= 1
            if not queue.users:
                del self._queues[name]

    def stir(self, name: str) -> None:
        if name in self._queues:
            self._queues[name].stir()
