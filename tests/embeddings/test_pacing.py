"""How often a service is called: as often as was set, and no oftener than it bears."""

from __future__ import annotations

import asyncio

import pytest

from bythebook.embeddings.rate_limiter import Pace
from bythebook.errors import RateLimited
from bythebook.testing import skipping_time
from bythebook.upstream.deadline import now

LONG = 1000.0


async def calls(pace: Pace, count: int) -> list[float]:
    moments = []
    for _ in range(count):
        await pace.turn(within=LONG)
        pace.accepted()
        moments.append(now())
    return moments


@skipping_time
async def test_without_a_limit_nobody_waits() -> None:
    assert await calls(Pace("X"), 100) == [0.0] * 100


@skipping_time
async def test_no_minute_has_more_calls_than_were_set() -> None:
    assert await calls(Pace("X", per_minute=3), 8) == [0.0] * 3 + [60.0] * 3 + [120.0] * 2


@skipping_time
async def test_all_rest_for_as_long_as_the_service_asks() -> None:
    pace = Pace("X")
    await pace.turn(within=LONG)
    assert pace.refused(7.0) == 7.0
    async with asyncio.TaskGroup() as group:
        waiting = [group.create_task(calls(pace, 1)) for _ in range(3)]
    assert [task.result() for task in waiting] == [[7.0]] * 3


@skipping_time
async def test_a_service_that_does_not_say_is_given_ever_more_time() -> None:
    pace = Pace("X")
    rests = []
    for _ in range(8):
        await pace.turn(within=LONG)
        rests.append(pace.refused(None))
    assert rests == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]


@skipping_time
async def test_calls_that_were_under_way_are_refused_together_and_count_once() -> None:
    pace = Pace("X")
    for _ in range(4):
        await pace.turn(within=LONG)
    assert [pace.refused(None) for _ in range(4)] == [1.0] * 4


@skipping_time
async def test_what_a_service_took_in_a_minute_is_learned_and_then_tried_a_little_higher() -> None:
    pace = Pace("X")
    await calls(pace, 8)
    for _ in range(2):
        await pace.turn(within=LONG)
        pace.refused(None)
    moments = await calls(pace, 8 + 10)
    assert moments == [60.0] * 8 + [moments[8]] * 10
    assert moments[8] == 120.0


@skipping_time
async def test_one_refusal_is_no_limit() -> None:
    pace = Pace("X")
    await calls(pace, 2)
    await pace.turn(within=LONG)
    pace.refused(None)
    assert await calls(pace, 20) == [1.0] * 20


@skipping_time
async def test_whoever_cannot_wait_is_told_for_how_long() -> None:
    pace = Pace("X", per_minute=1)
    await pace.turn(within=LONG)
    await asyncio.sleep(20)
    with pytest.raises(RateLimited) as caught:
        await pace.turn(within=5.0)
    assert (caught.value.retry_after, now()) == (40.0, 20.0)
