"""SPEC 5 and HARDENING R4, R6: attempts, pauses, deadlines and the states of an outside call."""

from __future__ import annotations

import asyncio
import math
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from bythebook.errors import BookError, DeadlineExceeded, InputError, ProviderAuthError, ProviderError, RateLimited
from bythebook.upstream.client import CallReport, CallState, RetryPolicy, Upstream
from bythebook.upstream.deadline import Deadline
from tests.support.clock import autojump_clock

if TYPE_CHECKING:
    from collections.abc import Sequence

HANG = "hang"


class Service:
    """A service with scripted results: errors are raised, a hang never ends, any other text is the answer."""

    def __init__(self, *acts: Exception | str) -> None:
        self.acts = list(acts)
        self.visits: list[float] = []

    async def __call__(self) -> str:
        self.visits.append(asyncio.get_running_loop().time())
        act = self.acts[min(len(self.visits), len(self.acts)) - 1]
        if isinstance(act, Exception):
            raise act
        if act == HANG:
            await asyncio.Event().wait()
        return act


def model(chance: float = 1.0, **policy: float) -> Upstream:
    return Upstream("model", policy=RetryPolicy(**policy), chance=lambda: chance)  # type: ignore[arg-type]


def down() -> ProviderError:
    return ProviderError("model failed")


def busy(retry_after: float | None = None) -> RateLimited:
    return RateLimited("model is busy", retry_after=retry_after)


@pytest.mark.parametrize(
    ("acts", "answer", "visits"),
    [
        pytest.param(["fine"], "fine", [0.0], id="nothing fails"),
        pytest.param([down(), "fine"], "fine", [0.0, 0.25], id="one failure"),
        pytest.param([down(), down(), "fine"], "fine", [0.0, 0.25, 0.75], id="two failures: the wait doubles"),
        pytest.param([down()], "api_error", [0.0, 0.25, 0.75], id="at most three attempts"),
        pytest.param([busy(2.0), "fine"], "fine", [0.0, 2.25], id="waits for Retry-After and a pause"),
        pytest.param([busy(0.0), "fine"], "fine", [0.0, 0.25], id="backs off after a Retry-After of 0"),
        pytest.param([busy(), "fine"], "fine", [0.0, 0.25], id="backs off after a rate limit without Retry-After"),
        pytest.param([InputError("no")], "invalid_input", [0.0], id="a rejection is not retried"),
        pytest.param([ProviderAuthError("no")], "provider_auth", [0.0], id="a rejected key is not retried"),
        pytest.param([HANG, "fine"], "fine", [0.0, 2.75], id="a hang leaves time for another attempt"),
        pytest.param([HANG], "timeout", [0.0, 2.75, 4.375], id="repeated hangs end at the deadline"),
    ],
)
@autojump_clock
async def test_retries_within_the_deadline(
    acts: Sequence[Exception | str], answer: str, visits: Sequence[float]
) -> None:
    service = Service(*acts)
    try:
        said = await model().call(service, deadline=Deadline.after(30.0, first_token=5.0), stage="generate")
    except BookError as error:
        said = error.code
    assert said == answer
    assert service.visits == pytest.approx(visits)
    assert asyncio.get_running_loop().time() <= 5.0


@pytest.mark.parametrize("chance", [0.0, 0.1, 0.5, 0.999])
@autojump_clock
async def test_the_pause_is_random_below_its_limit(chance: float) -> None:
    service = Service(down())
    with pytest.raises(ProviderError):
        await model(chance).call(service, deadline=Deadline.after(30.0), stage="generate")
    assert service.visits == pytest.approx([0.0, 0.25 * chance, 0.75 * chance])


@pytest.mark.parametrize(
    ("error", "asked"),
    [
        pytest.param(busy(60.0), 60.0, id="429 that asks for a minute"),
        pytest.param(busy(5.0), 5.0, id="429 that asks for exactly the time left"),
        pytest.param(ProviderError("down for a while", retry_after=60.0), 60.0, id="503 that asks for a minute"),
    ],
)
@autojump_clock
async def test_a_retry_after_beyond_the_deadline_is_an_immediate_rate_limit(error: BookError, asked: float) -> None:
    service = Service(error)
    with pytest.raises(RateLimited) as raised:
        await model().call(service, deadline=Deadline.after(30.0, first_token=5.0), stage="generate")
    assert (raised.value.retry_after, raised.value.stage) == (asked, "generate")
    assert (asyncio.get_running_loop().time(), len(service.visits)) == (0.0, 1)


@autojump_clock
async def test_a_rate_limit_always_has_retry_after() -> None:
    with pytest.raises(RateLimited) as raised:
        await model(longest_wait=4.0).call(Service(busy()), deadline=Deadline.after(30.0), stage="generate")
    assert raised.value.retry_after == 4.0
    assert raised.value.reader_message == "The service is busy. Please wait 4 seconds and try again."


@autojump_clock
async def test_without_time_for_a_retry_the_failure_itself_is_raised() -> None:
    service = Service(down())
    with pytest.raises(ProviderError):
        await model().call(service, deadline=Deadline.after(0.1), stage="generate")
    assert (len(service.visits), asyncio.get_running_loop().time()) == (1, 0.0)


@pytest.mark.parametrize("stage", ["embed", "search"])
@autojump_clock
async def test_a_timeout_names_its_stage(stage: str) -> None:
    with pytest.raises(DeadlineExceeded, match=stage) as raised:
        await model().call(Service(HANG), deadline=Deadline.after(30.0, first_token=5.0), stage=stage)
    assert raised.value.stage == stage
    assert asyncio.get_running_loop().time() == pytest.approx(5.0)


@autojump_clock
async def test_the_calls_of_a_request_share_its_deadline() -> None:
    async def slow() -> str:
        await asyncio.sleep(2.0)
        return "fine"

    deadline = Deadline.after(30.0, first_token=5.0)
    await model().call(slow, deadline=deadline, stage="embed")
    assert deadline.left() == pytest.approx(3.0)
    assert deadline.after_first_token().left() == pytest.approx(28.0)
    await asyncio.sleep(3.0)
    service = Service("fine")
    with pytest.raises(DeadlineExceeded, match="search"):
        await model().call(service, deadline=deadline, stage="search")
    assert service.visits == []
    assert await model().call(service, deadline=deadline.after_first_token(), stage="search") == "fine"


@autojump_clock
async def test_a_foreign_timeout_is_raised_unchanged() -> None:
    with pytest.raises(TimeoutError, match="theirs"):
        await model().call(Service(TimeoutError("theirs")), deadline=Deadline.after(30.0), stage="embed")


def states(heard: Sequence[CallReport]) -> list[tuple[CallState, int, float, str]]:
    return [(h.state, h.attempt, h.wait, h.error.code if h.error else "") for h in heard]


@pytest.mark.parametrize(
    ("acts", "expected"),
    [
        pytest.param(
            ["fine"],
            [("pending", 0, 0.0, ""), ("executing", 1, 0.0, ""), ("succeeded", 1, 0.0, "")],
            id="succeeds",
        ),
        pytest.param(
            [down(), "fine"],
            [
                ("pending", 0, 0.0, ""),
                ("executing", 1, 0.0, ""),
                ("retrying", 1, 0.25, "api_error"),
                ("executing", 2, 0.0, ""),
                ("succeeded", 2, 0.0, ""),
            ],
            id="succeeds after a retry",
        ),
        pytest.param(
            [InputError("no")],
            [("pending", 0, 0.0, ""), ("executing", 1, 0.0, ""), ("failed_permanent", 1, 0.0, "invalid_input")],
            id="fails",
        ),
        pytest.param(
            [KeyError("bug")],
            [("pending", 0, 0.0, ""), ("executing", 1, 0.0, ""), ("failed_permanent", 1, 0.0, "")],
            id="fails by a bug of the program",
        ),
    ],
)
@autojump_clock
async def test_reports_the_states_of_a_call(
    acts: Sequence[Exception | str], expected: Sequence[tuple[str, int, float, str]]
) -> None:
    heard: list[CallReport] = []
    with suppress(BookError, KeyError):
        await model().call(Service(*acts), deadline=Deadline.after(30.0), stage="generate", report=heard.append)
    assert states(heard) == expected
    assert {(report.upstream, report.stage) for report in heard} == {("model", "generate")}


@autojump_clock
async def test_a_cancelled_call_ends_failed_without_an_error() -> None:
    heard: list[CallReport] = []
    call = asyncio.ensure_future(
        model().call(Service(HANG), deadline=Deadline.after(30.0), stage="generate", report=heard.append)
    )
    await asyncio.sleep(1.0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert states(heard)[-1] == ("failed_permanent", 1, 0.0, "")
    assert asyncio.get_running_loop().time() == 1.0


def test_pauses_stay_below_the_longest() -> None:
    assert max(RetryPolicy().wait(attempt, 1.0) for attempt in range(1, 50)) == 4.0
    assert math.isfinite(RetryPolicy().wait(1000, 1.0))
