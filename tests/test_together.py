"""Work done side by side."""

from __future__ import annotations

import asyncio

import pytest

from bythebook.concurrency import together, turn


async def test_results_come_in_the_order_of_the_work() -> None:
    started = asyncio.Event()

    async def waits() -> str:
        await started.wait()
        return "one"

    async def goes() -> str:
        started.set()
        return "two"

    assert await together(waits(), goes()) == ["one", "two"]


async def test_the_first_failure_ends_the_others_and_comes_out_as_it_is() -> None:
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
        await together(waits(), fails())
    assert ended == [True]


async def test_a_failure_leaves_nobody_asked_to_end() -> None:
    async def fails() -> None:
        raise KeyError("broken")

    here = asyncio.current_task()
    with pytest.raises(KeyError):
        await together(fails())
    assert here is not None
    assert here.cancelling() == 0


async def test_long_work_begins_for_one_in_each_round_and_whoever_is_quick_comes_between() -> None:
    happened: list[str] = []

    async def works(name: str) -> None:
        await turn()
        happened.append(name)

    async def is_quick() -> None:
        while len(happened) < 9:
            happened.append("quick")
            await asyncio.sleep(0)

    await asyncio.gather(*(works(name) for name in "abc"), is_quick())
    long = [name for name in happened if name != "quick"]
    assert long == ["a", "b", "c"]
    assert all("quick" in happened[happened.index(one) : happened.index(two)] for one, two in ("ab", "bc"))


async def test_who_leaves_while_waiting_for_a_turn_holds_up_nobody() -> None:
    first, second = asyncio.create_task(turn()), asyncio.create_task(turn())
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait_for(second, timeout=5)
    await asyncio.wait_for(turn(), timeout=5)
    assert first.cancelled()
