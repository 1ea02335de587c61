"""SPEC 5 and HARDENING R6: a stream is retried only until its first item is yielded, and always ends in time."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

from bythebook.errors import BookError, ProviderError
from bythebook.upstream.circuit_breaker import BreakerState
from bythebook.upstream.client import CallReport, RetryPolicy, Upstream
from bythebook.upstream.deadline import Deadline
from tests.support.clock import autojump_clock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

CUT, HANG, DRIP = "cut", "hang", "drip"


class Source:
    """One scripted stream for each call. A capital letter is text, any other item is a preamble."""

    def __init__(self, *visits: Sequence[str]) -> None:
        self._visits = visits
        self.visited = 0
        self.open = 0

    async def __call__(self) -> AsyncIterator[str]:
        items = self._visits[min(self.visited, len(self._visits) - 1)]
        self.visited += 1
        self.open += 1
        try:
            for item in items:
                match item:
                    case "cut":
                        raise ProviderError("the stream ended without a finish reason")
                    case "hang":
                        await asyncio.Event().wait()
                    case "drip":
                        while True:
                            await asyncio.sleep(1.0)
                            yield "D"
                    case _:
                        await asyncio.sleep(0.1)
                        yield item
        finally:
            self.open -= 1


def size(item: str) -> int:
    return 1000 if item.isupper() else 0


async def read(
    upstream: Upstream, source: Source, deadline: Deadline, *, size: Callable[[str], int] = size
) -> tuple[str, str, str]:
    """The items yielded, the code of the error and its stage."""
    seen = ""
    try:
        async with aclosing(upstream.stream(source, deadline=deadline, stage="generate", size=size)) as items:
            async for item in items:
                seen += item
    except BookError as error:
        return seen, error.code, error.stage
    return seen, "", ""


@pytest.mark.parametrize(
    ("visits", "seen", "code", "stage", "visited"),
    [
        pytest.param(["ABC"], "ABC", "", "", 1, id="nothing fails"),
        pytest.param([""], "", "", "", 1, id="an empty stream"),
        pytest.param(["rABC"], "rABC", "", "", 1, id="a preamble comes first"),
        pytest.param(["rrr"], "rrr", "", "", 1, id="a stream of preamble only is complete"),
        pytest.param([[CUT], "ABC"], "ABC", "", "", 2, id="cut at once, then good"),
        pytest.param([["r", CUT], "rABC"], "rABC", "", "", 2, id="cut in the preamble, before anything is yielded"),
        pytest.param(
            [["A", CUT], "ABC"], "A", "api_error", "generate: mid-stream", 1, id="not retried once text is yielded"
        ),
        pytest.param([[CUT]], "", "api_error", "generate: first token", 3, id="three attempts at most"),
        pytest.param([[HANG], "ABC"], "ABC", "", "", 2, id="a hang before the first token, then good"),
        pytest.param([[HANG]], "", "timeout", "generate: first token", 3, id="R6: hung before the first token"),
        pytest.param([["r", HANG]], "", "timeout", "generate: first token", 3, id="R6: hung after the preamble"),
        pytest.param([["A", HANG]], "A", "timeout", "generate: mid-stream", 1, id="R6: hung mid-stream"),
    ],
)
@autojump_clock
async def test_retries_until_the_first_item(
    visits: Sequence[Sequence[str]], seen: str, code: str, stage: str, visited: int
) -> None:
    source = Source(*visits)
    upstream = Upstream("model", chance=lambda: 1.0)
    assert await read(upstream, source, Deadline.after(30.0, first_token=5.0)) == (seen, code, stage)
    assert source.visited == visited
    assert source.open == 0
    limit = 30.0 if "mid-stream" in stage else 5.0
    assert asyncio.get_running_loop().time() <= limit + 0.001


@pytest.mark.parametrize("attempts", [pytest.param(3, id="can be restarted"), pytest.param(1, id="last attempt")])
@autojump_clock
async def test_a_stalled_stream_fails_early_while_it_can_be_restarted(attempts: int) -> None:
    """The caller restarts the stream. Its last attempt may use all of the time."""
    source, upstream = Source(["A", HANG]), Upstream("model", policy=RetryPolicy(attempts=attempts))
    assert await read(upstream, source, Deadline.after(30.0)) == ("A", "timeout", "generate: mid-stream")
    assert source.open == 0
    assert asyncio.get_running_loop().time() == pytest.approx(5.1 if attempts > 1 else 30.0)


@pytest.mark.parametrize(
    ("width", "attempts", "ends"),
    [
        pytest.param(6, 3, 6.0, id="one word a second is too slow"),
        pytest.param(6, 1, 30.0, id="one word a second in the last attempt"),
        pytest.param(20, 3, 30.0, id="three words a second are fast enough"),
    ],
)
@autojump_clock
async def test_a_stream_too_slow_for_an_answer_fails_early(width: int, attempts: int, ends: float) -> None:
    upstream = Upstream("model", policy=RetryPolicy(attempts=attempts))
    _, code, _ = await read(upstream, Source([DRIP]), Deadline.after(30.0), size=lambda _: width)
    assert code == "timeout"
    assert asyncio.get_running_loop().time() == pytest.approx(ends)


@autojump_clock
async def test_the_time_of_the_consumer_does_not_count() -> None:
    upstream = Upstream("model")
    async with aclosing(
        upstream.stream(Source("ABCDEFGH"), deadline=Deadline.after(30.0), stage="generate", size=lambda _: 5)
    ) as items:
        seen = []
        async for item in items:
            await asyncio.sleep(3.0)
            seen.append(item)
    assert "".join(seen) == "ABCDEFGH"


@autojump_clock
async def test_an_endless_stream_ends_at_the_deadline() -> None:
    source = Source([DRIP])
    seen, code, stage = await read(Upstream("model"), source, Deadline.after(30.0, first_token=5.0))
    assert (code, stage) == ("timeout", "generate: mid-stream")
    assert 29 <= len(seen) <= 30
    assert asyncio.get_running_loop().time() == pytest.approx(30.0)
    assert source.open == 0


@autojump_clock
async def test_leaving_closes_the_stream_and_does_not_count_as_failure() -> None:
    heard: list[CallReport] = []
    upstream = Upstream("model", policy=RetryPolicy(opens_after=1))
    source = Source("ABC")
    async with aclosing(
        upstream.stream(source, deadline=Deadline.after(30.0), stage="generate", report=heard.append)
    ) as items:
        assert await anext(items) == "A"
    assert source.open == 0
    assert upstream.breaker.state == BreakerState.CLOSED
    assert [(report.state, report.error) for report in heard][-1] == ("failed_permanent", None)


@pytest.mark.parametrize(
    "items", [pytest.param([HANG], id="before the first token"), pytest.param(["A", HANG], id="mid-stream")]
)
@autojump_clock
async def test_cancellation_closes_the_stream_at_once(items: Sequence[str]) -> None:
    upstream, source = Upstream("model", policy=RetryPolicy(opens_after=1)), Source(items)
    reader = asyncio.ensure_future(read(upstream, source, Deadline.after(30.0)))
    await asyncio.sleep(1.0)
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    assert (source.open, upstream.breaker.state) == (0, BreakerState.CLOSED)
    assert asyncio.get_running_loop().time() == 1.0


@pytest.mark.parametrize(("attempts", "state"), [(3, BreakerState.CLOSED), (1, BreakerState.OPEN)])
@autojump_clock
async def test_a_stream_that_can_be_restarted_has_not_failed_yet(attempts: int, state: BreakerState) -> None:
    upstream = Upstream("model")
    for _ in range(5):
        cut = upstream.stream(Source(["A", CUT]), deadline=Deadline.after(30.0), stage="generate", attempts=attempts)
        with pytest.raises(ProviderError):
            [item async for item in cut]
    assert upstream.breaker.state == state


@autojump_clock
async def test_five_streams_cut_in_the_middle_open_the_breaker() -> None:
    upstream = Upstream("model")
    for _ in range(5):
        await read(upstream, Source(["A", CUT]), Deadline.after(30.0))
    assert upstream.breaker.state == BreakerState.OPEN
    assert await read(upstream, Source("ABC"), Deadline.after(30.0)) == ("", "unavailable", "generate: first token")
