from __future__ import annotations

import asyncio

from bythebook.conversations.locks import Queues


async def test_first_come_first_served() -> None:
    queues, served = Queues(), list[int]()

    async def come(number: int) -> None:
        async with queues.first_in("this"):
            served.append(number)
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as tasks:
        for number in range(20):
            tasks.create_task(come(number))
    assert served == list(range(20))


async def test_the_first_is_stirred_at_once() -> None:
    queues = Queues()
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks, queues.first_in("this") as queue:
        waiting = tasks.create_task(queue.pause(3600))
        await asyncio.sleep(0)
        queues.stir("this")
        await waiting


async def test_a_stir_that_came_before_the_pause_is_not_lost() -> None:
    queues = Queues()
    async with asyncio.timeout(5), queues.first_in("this") as queue:
        queues.stir("this")
        await queue.pause(3600)


async def test_stirring_where_nobody_waits_does_nothing() -> None:
    Queues().stir("this")


async def test_nothing_is_remembered_of_those_who_left() -> None:
    queues = Queues()
    async with queues.first_in("this"):
        waiting = asyncio.create_task(queues.first_in("this").__aenter__())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait({waiting})
    assert vars(queues) == {"_queues": {}}
