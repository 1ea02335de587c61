"""Work done side by side, whose failure is a failure like any other, and which leaves room for what is done at once."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")

_WAITING: WeakKeyDictionary[asyncio.AbstractEventLoop, deque[asyncio.Future[None]]] = WeakKeyDictionary()


async def together(*work: Coroutine[Any, Any, T]) -> list[T]:
    """What each of them returns. The first that fails ends the others, and its error is raised as it is."""
    here = asyncio.current_task()
    asked_before = here.cancelling() if here else 0
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(part) for part in work]
    except BaseExceptionGroup as failed:
        # Before Python 3.13 a group that fails leaves its own request to cancel behind. A Ctrl-C that comes later
        # would then not be known for one.
        while here and here.cancelling() > asked_before:
            here.uncancel()
        raise failed.exceptions[0] from None
    return [task.result() for task in tasks]


async def turn() -> None:
    """Wait for a round of the event loop that nobody else has for long work.

    Work that keeps the loop for a millisecond may be due for fifty readers in the same round. Whoever only wants to be
    passed on a word, or told that there is no place, would wait for all of them.
    """
    loop = asyncio.get_running_loop()
    waiting = _WAITING.setdefault(loop, deque())
    mine = loop.create_future()
    waiting.append(mine)
    if len(waiting) == 1:
        loop.call_soon(_next, loop, waiting)
    await mine


def _next(loop: asyncio.AbstractEventLoop, waiting: deque[asyncio.Future[None]]) -> None:
    first = waiting.popleft()
    if not first.done():
        first.set_result(None)
    if waiting:
        loop.call_soon(_next, loop, waiting)
