"""Stop signals: SIGTERM, Ctrl-C and the exit of the supervisor."""

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

EXIT_INTERRUPTED = 130


class StopSignal:
    """Whether this process was asked to stop, and by what."""

    def __init__(self) -> None:
        self._requested = asyncio.Event()
        self.interrupted = False
        """Whether the cause was Ctrl-C."""
        self.orphaned = False
        """Whether the cause was the exit of the supervisor."""
        self.before_exit: Callable[[], None] = lambda: None
        """Called before a second Ctrl-C ends the process immediately."""

    def __bool__(self) -> bool:
        return self._requested.is_set()

    def request(self) -> None:
        self._requested.set()

    def set_orphan_flag(self) -> None:
        self.orphaned = True
        self._requested.set()

    async def wait(self) -> None:
        await self._requested.wait()

    async def run_or_stop(self, work: Coroutine[Any, Any, None]) -> bool:
        """Run `work`, and cancel it on a stop request. Returns whether to continue."""
        running, stopping = asyncio.create_task(work), asyncio.create_task(self.wait())
        try:
            await asyncio.wait([running, stopping], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            running.cancel()
            await asyncio.wait([running])
        if not self:
            running.result()
        return not self


@contextmanager
def handle_signals() -> Iterator[StopSignal]:
    """Turn SIGTERM and Ctrl-C into a stop request. A second Ctrl-C ends the process immediately."""
    stop, loop = StopSignal(), asyncio.get_running_loop()

    def handle(number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGINT and stop.interrupted:
            stop.before_exit()
            os._exit(EXIT_INTERRUPTED)
        stop.interrupted = stop.interrupted or number == signal.SIGINT
        loop.call_soon_threadsafe(stop.request)

    # Not loop.add_signal_handler: its handlers run in the loop, but a second Ctrl-C must work while it is blocked.
    previous = {number: signal.signal(number, handle) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
