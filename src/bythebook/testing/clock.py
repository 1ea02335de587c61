"""Clocks for tests of a thirty-second deadline that take no time: one skips every pause, one goes when it is told."""

from __future__ import annotations

import asyncio
import functools
import selectors
from typing import TYPE_CHECKING, Any, ParamSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

P = ParamSpec("P")


class SkippingLoop(asyncio.SelectorEventLoop):
    """An event loop that never waits: its clock stands still while anything runs and jumps to the next timer.

    For work within this process. A reply over a real socket takes real time, which this clock does not know of.
    """

    def __init__(self) -> None:
        self._moment = 0.0
        super().__init__(_SkippingSelector(self))

    def time(self) -> float:
        return self._moment

    def skip(self, seconds: float) -> None:
        self._moment += seconds


class _SkippingSelector(selectors.SelectSelector):
    def __init__(self, loop: SkippingLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            return super().select(None)
        ready = super().select(0)
        if not ready:
            self._loop.skip(timeout)
        return ready


class StandingLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock stands still until it is told to `skip`. Threads and sockets go on as ever.

    For tests of what happens when time is over: nothing that is slow because the machine is can be late here.
    """

    def __init__(self) -> None:
        self._moment = 0.0
        super().__init__(_UntilWoken())

    def time(self) -> float:
        return self._moment

    def skip(self, seconds: float) -> None:
        self._moment += seconds


class _UntilWoken(selectors.SelectSelector):
    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        # A timer in the future is none to wait for: its moment comes only after something else has happened.
        return super().select(None if timeout else timeout)


def skipping_time(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run an async test on a `SkippingLoop`."""
    return _on(SkippingLoop, test)


def standing_time(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run an async test on a `StandingLoop`."""
    return _on(StandingLoop, test)


def _on(
    loop: Callable[[], asyncio.AbstractEventLoop], test: Callable[P, Coroutine[Any, Any, None]]
) -> Callable[P, None]:
    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        with asyncio.Runner(loop_factory=loop) as runner:
            runner.run(test(*args, **kwargs))

    return run
