"""A clock that skips every pause, so that a test of a thirty-second deadline takes none."""

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


def skipping_time(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run an async test on a `SkippingLoop`."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        with asyncio.Runner(loop_factory=SkippingLoop) as runner:
            runner.run(test(*args, **kwargs))

    return run
