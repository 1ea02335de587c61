"""The adaptive rate limiter."""

from __future__ import annotations

import asyncio

import pytest

from bythebook.embeddings.remote import AdaptiveRateLimiter
from bythebook.errors import RateLimited
from bythebook.upstream.deadline import now
from tests.support.clock import autojump_clock

LONG = 1000.0


async def calls(pace: AdaptiveRateLimiter, count: int) -> list[float]:
    moments = []
    for _ in range(count):
        await pace.acquire(within=LONG)
        pace.record_success()
        moments.append(now())
    return moments


@autojump_clock
async def test_calls_do_not_wait_without_a_limit() -> None:
    assert await calls(AdaptiveRateLimiter("X"), 100) == [0.0] * 100


@autojump_clock
async def test_enforces_the_configured_limit_per_minute() -> None:
    assert await calls(AdaptiveRateLimiter("X", per_minute=3), 8) == [0.0] * 3 + [60.0] * 3 + [120.0] * 2


@autojump_clock
async def test_all_calls_pause_for_the_retry_after_time() -> None:
    pace = AdaptiveRateLimiter("X")
    await pace.acquire(within=LONG)
    assert pace.record_refusal(7.0) == 7.0
    async with asyncio.TaskGroup() as group:
        waiting = [group.create_task(calls(pace, 1)) for _ in range(3)]
    assert [task.result() for task in waiting] == [[7.0]] * 3


@autojump_clock
async def test_backs_off_exponentially_without_a_retry_after_time() -> None:
    pace = AdaptiveRateLimiter("X")
    rests = []
    for _ in range(8):
        await pace.acquire(within=LONG)
        rests.append(pace.record_refusal(None))
    assert rests == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]


@autojump_clock
async def test_refusals_of_concurrent_calls_count_once() -> None:
    pace = AdaptiveRateLimiter("X")
    for _ in range(4):
        await pace.acquire(within=LONG)
    assert [pace.record_refusal(None) for _ in range(4)] == [1.0] * 4


@autojump_clock
async def test_learns_the_limit_and_then_raises_it() -> None:
    pace = AdaptiveRateLimiter("X")
    await calls(pace, 8)
    for _ in range(2):
        await pace.acquire(within=LONG)
        pace.record_refusal(None)
    moments = await calls(pace, 8 + 10)
    assert moments == [60.0] * 8 + [moments[8]] * 10
    assert moments[8] == 120.0


@autojump_clock
async def test_a_single_refusal_sets_no_limit() -> None:
    pace = AdaptiveRateLimiter("X")
    await calls(pace, 2)
    await pace.acquire(within=LONG)
    pace.record_refusal(None)
    assert await calls(pace, 20) == [1.0] * 20


@autojump_clock
async def test_raises_rate_limited_if_the_wait_exceeds_the_deadline() -> None:
    pace = AdaptiveRateLimiter("X", per_minute=1)
    await pace.acquire(within=LONG)
    await asyncio.sleep(20)
    with pytest.raises(RateLimited) as caught:
        await pace.acquire(within=5.0)
    assert (caught.value.retry_after, now()) == (40.0, 20.0)
