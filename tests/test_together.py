"""Work done side by side."""

from __future__ import annotations

import asyncio

import pytest

from bythebook.together import together


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
