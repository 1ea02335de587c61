"""HARDENING R5: the circuit breaker."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from bythebook.errors import (
    BookError,
    DeadlineExceeded,
    InputError,
    ProviderAuthError,
    ProviderError,
    RateLimited,
    Unavailable,
)
from bythebook.upstream.circuit_breaker import BreakerState
from bythebook.upstream.client import RetryPolicy, Upstream
from bythebook.upstream.deadline import Deadline
from tests.support.clock import autojump_clock

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

ONCE = RetryPolicy(attempts=1, opens_after=5, rest=10.0)


class Service:
    """A service that counts its calls and fails on demand."""

    def __init__(self) -> None:
        self.visits = 0
        self.error: Exception | None = None
        self.answers = asyncio.Event()
        self.answers.set()

    async def __call__(self) -> str:
        self.visits += 1
        await self.answers.wait()
        if self.error:
            raise self.error
        return "fine"


async def attempt(upstream: Upstream, work: Callable[[], Awaitable[str]]) -> str:
    """The answer, or the code of the error."""
    try:
        return await upstream.call(work, deadline=Deadline.after(30.0), stage="generate")
    except BookError as error:
        return error.code


async def opened(upstream: Upstream, service: Service) -> None:
    service.error = ProviderError("down")
    for _ in range(5):
        await attempt(upstream, service)


@pytest.mark.parametrize(
    ("outcomes", "state"),
    [
        pytest.param("ffff", BreakerState.CLOSED, id="four failures"),
        pytest.param("fffff", BreakerState.OPEN, id="exactly the fifth opens"),
        pytest.param("ffffsffff", BreakerState.CLOSED, id="four failures, a success, four failures"),
        pytest.param("ffffsfffff", BreakerState.OPEN, id="five in a row after a success"),
        pytest.param("rrrrrrrrrr", BreakerState.CLOSED, id="rate limits never count"),
        pytest.param("aaaaaaaaaa", BreakerState.CLOSED, id="rejected keys never count"),
        pytest.param("xxxxxxxxxx", BreakerState.CLOSED, id="rejections never count"),
        pytest.param("bbbbbbbbbb", BreakerState.CLOSED, id="bugs of the program never count"),
        pytest.param("ffffrxabf", BreakerState.OPEN, id="errors that do not count do not end a row"),
        pytest.param("ddddd", BreakerState.OPEN, id="timeouts count"),
    ],
)
@autojump_clock
async def test_opens_after_five_failures_in_a_row(outcomes: str, state: BreakerState) -> None:
    errors: dict[str, Exception | None] = {
        "f": ProviderError("down"),
        "s": None,
        "r": RateLimited("slow down"),
        "a": ProviderAuthError("no"),
        "x": InputError("bad request"),
        "b": KeyError("a bug"),
        "d": DeadlineExceeded("too slow"),
    }
    upstream, service = Upstream("model", policy=ONCE), Service()
    for outcome in outcomes:
        service.error = errors[outcome]
        try:
            await attempt(upstream, service)
        except KeyError:
            assert outcome == "b"
    assert upstream.breaker.state == state
    assert service.visits == len(outcomes)


@autojump_clock
async def test_a_call_counts_once_for_all_of_its_attempts() -> None:
    upstream, service = Upstream("model", policy=RetryPolicy(attempts=3)), Service()
    service.error = ProviderError("down")
    for _ in range(4):
        await attempt(upstream, service)
    assert (service.visits, upstream.breaker.state) == (12, BreakerState.CLOSED)
    await attempt(upstream, service)
    assert (service.visits, upstream.breaker.state) == (15, BreakerState.OPEN)


@autojump_clock
async def test_an_open_breaker_rejects_at_once_with_retry_after() -> None:
    loop = asyncio.get_running_loop()
    upstream, service = Upstream("model", policy=ONCE), Service()
    await opened(upstream, service)
    await asyncio.sleep(4.0)
    before = loop.time()
    with pytest.raises(Unavailable, match="model keeps failing") as refused:
        await upstream.call(service, deadline=Deadline.after(30.0), stage="generate")
    assert loop.time() == before
    assert refused.value.retry_after == pytest.approx(6.0)
    assert refused.value.stage == "generate"
    assert service.visits == 5


@pytest.mark.parametrize(
    ("error", "after", "state"),
    [
        pytest.param(None, "fine", BreakerState.CLOSED, id="the probe succeeds"),
        pytest.param(ProviderError("still down"), "api_error", BreakerState.OPEN, id="the probe fails"),
        pytest.param(InputError("refused"), "invalid_input", BreakerState.HALF_OPEN, id="the probe is inconclusive"),
    ],
)
@autojump_clock
async def test_a_half_open_breaker_admits_exactly_one_of_fifty_calls(
    error: Exception | None, after: str, state: BreakerState
) -> None:
    upstream, service = Upstream("model", policy=RetryPolicy(attempts=3)), Service()
    await opened(upstream, service)
    visits = service.visits
    await asyncio.sleep(10.0)
    assert upstream.breaker.state == BreakerState.HALF_OPEN
    service.error = error
    service.answers.clear()
    async with asyncio.TaskGroup() as group:
        calls = [group.create_task(attempt(upstream, service)) for _ in range(50)]
        await asyncio.sleep(0.1)
        service.answers.set()
    results = [call.result() for call in calls]
    assert service.visits - visits == 1
    assert sorted(results) == sorted([after, *["unavailable"] * 49])
    assert upstream.breaker.state == state


@autojump_clock
async def test_cancellations_do_not_count_and_a_cancelled_probe_is_released() -> None:
    upstream, service = Upstream("model", policy=ONCE), Service()
    service.answers.clear()
    calls = [asyncio.ensure_future(attempt(upstream, service)) for _ in range(50)]
    await asyncio.sleep(0)
    for call in calls:
        call.cancel()
    assert {type(result) for result in await asyncio.gather(*calls, return_exceptions=True)} == {asyncio.CancelledError}
    assert (service.visits, upstream.breaker.state) == (50, BreakerState.CLOSED)

    service.answers.set()
    await opened(upstream, service)
    await asyncio.sleep(10.0)
    service.answers.clear()
    probe = asyncio.ensure_future(attempt(upstream, service))
    await asyncio.sleep(0)
    assert await attempt(upstream, service) == "unavailable"
    probe.cancel()
    await asyncio.gather(probe, return_exceptions=True)
    service.answers.set()
    service.error = None
    assert await attempt(upstream, service) == "fine"
    assert upstream.breaker.state == BreakerState.CLOSED


@autojump_clock
async def test_a_call_admitted_before_the_breaker_opened_does_not_close_it() -> None:
    upstream, service, slow = Upstream("model", policy=ONCE), Service(), Service()
    slow.answers.clear()
    early = asyncio.ensure_future(attempt(upstream, slow))
    await asyncio.sleep(0)
    await opened(upstream, service)
    slow.answers.set()
    assert await early == "fine"
    assert upstream.breaker.state == BreakerState.OPEN
