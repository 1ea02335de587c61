"""Concurrency helpers: `gather`, which raises the first error, detached tasks, and fair yielding of the event loop."""

import asyncio
from collections import deque
from collections.abc import Coroutine
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")

_QUEUES: WeakKeyDictionary[asyncio.AbstractEventLoop, deque[asyncio.Future[None]]] = WeakKeyDictionary()
_DETACHED: set[asyncio.Task[Any]] = set()
"""References to running detached tasks: the event loop itself only keeps weak ones."""


async def gather(*coroutines: Coroutine[Any, Any, T]) -> list[T]:
    """Run the coroutines concurrently. The first error cancels the others and is raised without an exception group."""
    current = asyncio.current_task()
    cancelling_before = current.cancelling() if current else 0
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(coroutine) for coroutine in coroutines]
    except BaseExceptionGroup as errors:
        # Before Python 3.13, a failed group leaves its own cancellation request on the task. A later Ctrl-C would then
        # not be recognised.
        while current and current.cancelling() > cancelling_before:
            current.uncancel()
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]


def spawn_background_task(coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Start a task that runs to its end even if its creator is cancelled."""
    task = asyncio.create_task(coroutine)
    _DETACHED.add(task)
    task.add_done_callback(_discard_task)
    return task


def _discard_task(task: asyncio.Task[Any]) -> None:
    _DETACHED.discard(task)
    if not task.cancelled():
        # Retrieve the exception. Otherwise asyncio logs a warning if the creator no longer awaits the task.
        task.exception()


async def fair_yield() -> None:
    """Wait for this task's turn to run CPU-bound work on the event loop: one task in each iteration.

    Without it, work that blocks the loop for a millisecond may run for fifty requests in the same iteration, and a
    task that only forwards a word or rejects a request would wait for all of them.
    """
    loop = asyncio.get_running_loop()
    queue = _QUEUES.setdefault(loop, deque())
    turn = loop.create_future()
    queue.append(turn)
    if len(queue) == 1:
        loop.call_soon(_wake_next, loop, queue)
    await turn


def _wake_next(loop: asyncio.AbstractEventLoop, queue: deque[asyncio.Future[None]]) -> None:
    turn = queue.popleft()
    if not turn.done():
        turn.set_result(None)
    if queue:
        loop.call_soon(_wake_next, loop, queue)
