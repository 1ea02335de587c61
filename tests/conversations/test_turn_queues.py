from __future__ import annotations

import asyncio

import pytest

from bythebook.conversations.locks import TurnQueues


async def test_first_come_first_served() -> None:
    queues, served = TurnQueues(), list[int]()

    async def come(number: int) -> None:
        async with queues.acquire("this"):
            served.append(number)
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as tasks:
        for number in range(20):
            tasks.create_task(come(number))
    assert served == list(range(20))


async def test_the_first_waiter_is_woken_immediately() -> None:
    queues = TurnQueues()
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks, queues.acquire("this") as queue:
        waiting = tasks.create_task(queue.wait(3600))
        await asyncio.sleep(0)
        queues.wake("this")
        await waiting


async def test_a_wake_before_the_wait_is_not_lost() -> None:
    queues = TurnQueues()
    async with asyncio.timeout(5), queues.acquire("this") as queue:
        queues.wake("this")
        await queue.wait(3600)


@pytest.mark.parametrize("rounds", range(4))
async def test_a_waiter_that_is_woken_and_cancelled_together_is_cancelled(rounds: int) -> None:
    queues = TurnQueues()
    async with queues.acquire("this") as queue:
        waiting = asyncio.create_task(queue.wait(3600))
        await asyncio.sleep(0)
        queues.wake("this")
        for _ in range(rounds):
            await asyncio.sleep(0)
        accepted = waiting.cancel()
        await asyncio.wait({waiting})
    assert waiting.cancelled() == accepted


async def test_waking_an_empty_queue_does_nothing() -> None:
    queues = TurnQueues()
    queues.wake("this")
    async with asyncio.timeout(5), queues.acquire("this") as queue:
        assert queue is not None


async def test_a_cancelled_waiter_leaves_no_state() -> None:
    queues = TurnQueues()
    async with queues.acquire("this"):
        waiting = asyncio.create_task(queues.acquire("this").__aenter__())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait({waiting})
    assert vars(queues) == {"_queues": {}}
