"""Work done side by side, whose failure is a failure like any other."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")


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
