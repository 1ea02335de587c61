"""Telemetry of upstream calls."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bythebook.errors import ProviderError
from bythebook.upstream.client import RetryPolicy, Upstream
from bythebook.upstream.deadline import Deadline
from tests.support.clock import autojump_clock
from tests.support.telemetry import RecordingListener, record_telemetry


def _states(recorded: RecordingListener) -> list[str]:
    return [labels["state"] for name, _, labels in recorded.metrics if name == "calls"]


def test_every_state_of_an_upstream_call_is_reported() -> None:
    answers: Iterator[str | Exception] = iter([ProviderError("down"), "well"])

    async def work() -> str:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    @autojump_clock
    async def call() -> None:
        upstream = Upstream("models.example", chance=lambda: 1.0)
        assert await upstream.call(work, deadline=Deadline.after(30), stage="generating") == "well"

    with record_telemetry() as recorded:
        call()
    assert _states(recorded) == ["pending", "executing", "retrying", "executing", "succeeded"]
    told = {"upstream": "models.example", "stage": "generating"}
    assert recorded.find_events("call_retrying") == [
        told | {"state": "retrying", "attempt": 1, "wait": 0.25, "error": "api_error"}
    ]
    assert recorded.find_events("call")[-1] == told | {"state": "succeeded", "attempt": 2}
    assert recorded.spans == [("call", "")]
    assert [name for name, *_ in recorded.metrics].count("call_seconds") == 1


def test_failed_calls_and_circuit_breaker_changes_are_reported() -> None:
    async def down() -> str:
        raise ProviderError("down")

    async def well() -> str:
        return "well"

    @autojump_clock
    async def call() -> None:
        upstream = Upstream("models.example", policy=RetryPolicy(attempts=1, opens_after=1, rest=0.0))
        with pytest.raises(ProviderError):
            await upstream.call(down, deadline=Deadline.after(30), stage="generating")
        await upstream.call(well, deadline=Deadline.after(30), stage="generating")

    with record_telemetry() as recorded:
        call()
    assert _states(recorded) == ["pending", "executing", "failed_permanent", "pending", "executing", "succeeded"]
    assert [fields["error"] for fields in recorded.find_events("call_failed")] == ["api_error"]
    assert [fields["state"] for fields in recorded.find_events("circuit_breaker_changed")] == [
        "open",
        "half_open",
        "closed",
    ]
    assert [value for name, value, _ in recorded.metrics if name == "circuit_breaker"] == [2, 1, 0]
