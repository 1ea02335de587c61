"""Signals: being told to stop, politely and less so."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator
    from types import FrameType

INTERRUPTED = 130


class Stop:
    """Whether this process has been told to stop, and how."""

    def __init__(self) -> None:
        self._asked = asyncio.Event()
        self.interrupted = False
        """Whether it was somebody at the terminal."""
        self.abandoned = False
        """Whether it was because the process that looks after this one is gone."""
        self.at_once: Callable[[], None] = lambda: None
        """What has to be done before leaving there and then."""

    def __bool__(self) -> bool:
        return self._asked.is_set()

    def ask(self) -> None:
        self._asked.set()

    def abandon(self) -> None:
        self.abandoned = True
        self._asked.set()

    async def wait(self) -> None:
        await self._asked.wait()

    async def unless_asked(self, work: Coroutine[Any, Any, None]) -> bool:
        """Do this, unless asked to stop before it is done: then it is cancelled. Says whether to go on."""
        doing, asked = asyncio.create_task(work), asyncio.create_task(self.wait())
        try:
            await asyncio.wait([doing, asked], return_when=asyncio.FIRST_COMPLETED)
        finally:
            asked.cancel()
            doing.cancel()
            await asyncio.wait([doing])
        if not self:
            doing.result()
        return not self


@contextmanager
def heeding_signals() -> Iterator[Stop]:
    """SIGTERM and Ctrl-C ask to stop. A second Ctrl-C ends the process there and then."""
    stop, loop = Stop(), asyncio.get_running_loop()

    def heed(number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGINT and stop.interrupted:
            stop.at_once()
            os._exit(INTERRUPTED)
        stop.interrupted = stop.interrupted or number == signal.SIGINT
        loop.call_soon_threadsafe(stop.ask)

    # Not the loop's own handlers: those wait for their turn, and a second Ctrl-C is for when nothing gets a turn.
    before = {number: signal.signal(number, heed) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
