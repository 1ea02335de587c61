"""What is told of calls to services outside."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bythebook.errors import ProviderError
from bythebook.testing import skipping_time
from bythebook.upstream import Deadline, Policy, Upstream
from tests.support.telemetry import Heard, hearing


def _states(heard: Heard) -> list[str]:
    return [labels["state"] for name, _, labels in heard.figures if name == "calls"]


def test_every_state_of_a_call_is_told_with_its_attempt_and_who_was_called() -> None:
    answers: Iterator[str | Exception] = iter([ProviderError("down"), "well"])

    async def work() -> str:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    @skipping_time
    async def call() -> None:
        upstream = Upstream("models.example", chance=lambda: 1.0)
        assert await upstream.call(work, deadline=Deadline.after(30), stage="generating") == "well"

    with hearing() as heard:
        call()
    assert _states(heard) == ["pending", "executing", "retrying", "executing", "succeeded"]
    told = {"upstream": "models.example", "stage": "generating"}
    assert heard.told("call_retrying") == [
        told | {"state": "retrying", "attempt": 1, "wait": 0.25, "error": "api_error"}
    ]
    assert heard.told("call")[-1] == told | {"state": "succeeded", "attempt": 2}
    assert heard.spans == [("call", "")]
    assert [name for name, *_ in heard.figures].count("call_seconds") == 1


def test_a_call_that_is_given_up_and_a_breaker_that_opens_and_closes_are_told() -> None:
    async def down() -> str:
        raise ProviderError("down")

    async def well() -> str:
        return "well"

    @skipping_time
    async def call() -> None:
        upstream = Upstream("models.example", policy=Policy(attempts=1, opens_after=1, rest=0.0))
        with pytest.raises(ProviderError):
            await upstream.call(down, deadline=Deadline.after(30), stage="generating")
        await upstream.call(well, deadline=Deadline.after(30), stage="generating")

    with hearing() as heard:
        call()
    assert _states(heard) == ["pending", "executing", "failed_permanent", "pending", "executing", "succeeded"]
    assert [fields["error"] for fields in heard.told("call_failed")] == ["api_error"]
    assert [fields["state"] for fields in heard.told("breaker")] == ["open", "half_open", "closed"]
    assert [value for name, value, _ in heard.figures if name == "breaker"] == [2, 1, 0]
