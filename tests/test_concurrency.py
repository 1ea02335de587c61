"""Concurrent tasks."""

from __future__ import annotations

import asyncio

import pytest

from bythebook.concurrency import fair_yield, gather


async def test_results_are_in_the_order_of_the_coroutines() -> None:
    started = asyncio.Event()

    async def waits() -> str:
        await started.wait()
        return "one"

    async def goes() -> str:
        started.set()
        return "two"

    assert await gather(waits(), goes()) == ["one", "two"]


async def test_the_first_error_cancels_the_others_and_is_raised_unwrapped() -> None:
    ended = []

    async def waits() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    async def fails() -> None:
        await asyncio.sleep(0)
        raise KeyError("broken")

    with pytest.raises(KeyError, match="broken"):
        await gather(waits(), fails())
    assert ended == [True]


async def test_an_error_leaves_no_pending_cancellation() -> None:
    async def fails() -> None:
        raise KeyError("broken")

    here = asyncio.current_task()
    with pytest.raises(KeyError):
        await gather(fails())
    assert here is not None
    assert here.cancelling() == 0


async def test_one_long_task_starts_per_loop_iteration() -> None:
    happened: list[str] = []

    async def works(name: str) -> None:
        await fair_yield()
        happened.append(name)

    async def is_quick() -> None:
        while len(happened) < 9:
            happened.append("quick")
            await asyncio.sleep(0)

    await asyncio.gather(*(works(name) for name in "abc"), is_quick())
    long = [name for name in happened if name != "quick"]
    assert long == ["a", "b", "c"]
    assert all("quick" in happened[happened.index(one) : happened.index(two)] for one, two in ("ab", "bc"))


async def test_a_cancelled_waiter_does_not_block_others() -> None:
    first, second = asyncio.create_task(fair_yield()), asyncio.create_task(fair_yield())
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait_for(second, timeout=5)
    await asyncio.wait_for(fair_yield(), timeout=5)
    assert first.cancelled()
