"""Event loops with a virtual clock, so that a test of a thirty-second deadline takes no time."""

import asyncio
import functools
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec

P = ParamSpec("P")


class _VirtualClockLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock advances only by `skip`."""

    def __init__(self, selector: selectors.BaseSelector) -> None:
        self._now = 0.0
        super().__init__(selector)

    def time(self) -> float:
        return self._now

    def skip(self, seconds: float) -> None:
        self._now += seconds


class AutojumpLoop(_VirtualClockLoop):
    """An event loop that never waits: when it is idle, its clock jumps to the next timer.

    It is for work inside this process. A reply over a real socket takes real time, which this clock does not measure.
    """

    def __init__(self) -> None:
        super().__init__(_AutojumpSelector(self))


class _AutojumpSelector(selectors.SelectSelector):
    def __init__(self, loop: AutojumpLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            return super().select(None)
        ready = super().select(0)
        if not ready:
            self._loop.skip(timeout)
        return ready


class ManualClockLoop(_VirtualClockLoop):
    """An event loop whose clock advances only by `skip`. Threads and sockets work as usual.

    It is for tests of timeouts: a slow machine cannot exceed a deadline on this clock.
    """

    def __init__(self) -> None:
        super().__init__(_ManualClockSelector())


class _ManualClockSelector(selectors.SelectSelector):
    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        # Never wait for a timer: its time comes only with a call of `skip`.
        return super().select(None if timeout else timeout)


def autojump_clock(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run an async test on a `AutojumpLoop`."""
    return _run_on(AutojumpLoop, test)


def manual_clock(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run an async test on a `ManualClockLoop`."""
    return _run_on(ManualClockLoop, test)


def _run_on(
    loop: Callable[[], asyncio.AbstractEventLoop], test: Callable[P, Coroutine[Any, Any, None]]
) -> Callable[P, None]:
    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        with asyncio.Runner(loop_factory=loop) as runner:
            runner.run(test(*args, **kwargs))

    return run
