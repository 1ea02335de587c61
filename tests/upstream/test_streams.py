"""SPEC 5 and HARDENING R6: a stream is tried again only while nobody has seen any of it, and always ends in time."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

from bythebook.errors import BookError, ProviderError
from bythebook.testing.clock import skipping_time
from bythebook.upstream import BreakerState, CallReport, Deadline, Policy, Upstream

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

CUT, HANG, DRIP = "cut", "hang", "drip"


class Source:
    """A stream for each visit, written as its items. A capital letter is text, anything else a preamble."""

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
    """What was handed out, the code of the error and its stage."""
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
        pytest.param(["rrr"], "rrr", "", "", 1, id="a stream of nothing but preamble is complete"),
        pytest.param([[CUT], "ABC"], "ABC", "", "", 2, id="cut at once, then good"),
        pytest.param([["r", CUT], "rABC"], "rABC", "", "", 2, id="cut in the preamble: nobody saw it"),
        pytest.param([["A", CUT], "ABC"], "A", "api_error", "generate: mid-stream", 1, id="cut once seen is the end"),
        pytest.param([[CUT]], "", "api_error", "generate: first token", 3, id="three attempts at most"),
        pytest.param([[HANG], "ABC"], "ABC", "", "", 2, id="a hang before the first token, then good"),
        pytest.param([[HANG]], "", "timeout", "generate: first token", 3, id="R6: hung before the first token"),
        pytest.param([["r", HANG]], "", "timeout", "generate: first token", 3, id="R6: hung after the preamble"),
        pytest.param([["A", HANG]], "A", "timeout", "generate: mid-stream", 1, id="R6: hung mid-stream"),
    ],
)
@skipping_time
async def test_streams(visits: Sequence[Sequence[str]], seen: str, code: str, stage: str, visited: int) -> None:
    source = Source(*visits)
    upstream = Upstream("model", chance=lambda: 1.0)
    assert await read(upstream, source, Deadline.after(30.0, first_token=5.0)) == (seen, code, stage)
    assert source.visited == visited
    assert source.open == 0
    limit = 30.0 if "mid-stream" in stage else 5.0
    assert asyncio.get_running_loop().time() <= limit + 0.001


@pytest.mark.parametrize("attempts", [pytest.param(3, id="it can be begun again"), pytest.param(1, id="it cannot")])
@skipping_time
async def test_a_stream_that_stalls_is_given_up_while_it_can_be_begun_again(attempts: int) -> None:
    """The caller begins again what has been seen. The last time it is waited for as long as there is time."""
    source, upstream = Source(["A", HANG]), Upstream("model", policy=Policy(attempts=attempts))
    assert await read(upstream, source, Deadline.after(30.0)) == ("A", "timeout", "generate: mid-stream")
    assert source.open == 0
    assert asyncio.get_running_loop().time() == pytest.approx(5.1 if attempts > 1 else 30.0)


@pytest.mark.parametrize(
    ("width", "attempts", "ends"),
    [
        pytest.param(6, 3, 6.0, id="a word a second is no answer in thirty"),
        pytest.param(6, 1, 30.0, id="but better than nothing where it is the last attempt"),
        pytest.param(20, 3, 30.0, id="three words a second are slow, and may get there"),
    ],
)
@skipping_time
async def test_a_stream_too_slow_for_an_answer_is_given_up(width: int, attempts: int, ends: float) -> None:
    upstream = Upstream("model", policy=Policy(attempts=attempts))
    _, code, _ = await read(upstream, Source([DRIP]), Deadline.after(30.0), size=lambda _: width)
    assert code == "timeout"
    assert asyncio.get_running_loop().time() == pytest.approx(ends)


@skipping_time
async def test_a_slow_reader_does_not_make_a_slow_stream() -> None:
    upstream = Upstream("model")
    async with aclosing(
        upstream.stream(Source("ABCDEFGH"), deadline=Deadline.after(30.0), stage="generate", size=lambda _: 5)
    ) as items:
        seen = []
        async for item in items:
            await asyncio.sleep(3.0)
            seen.append(item)
    assert "".join(seen) == "ABCDEFGH"


@skipping_time
async def test_a_dripping_stream_ends_at_the_deadline() -> None:
    source = Source([DRIP])
    seen, code, stage = await read(Upstream("model"), source, Deadline.after(30.0, first_token=5.0))
    assert (code, stage) == ("timeout", "generate: mid-stream")
    assert 29 <= len(seen) <= 30
    assert asyncio.get_running_loop().time() == pytest.approx(30.0)
    assert source.open == 0


@skipping_time
async def test_a_reader_who_leaves_closes_the_stream_and_counts_for_nothing() -> None:
    heard: list[CallReport] = []
    upstream = Upstream("model", policy=Policy(opens_after=1))
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
@skipping_time
async def test_a_cancelled_reader_closes_the_stream_at_once(items: Sequence[str]) -> None:
    upstream, source = Upstream("model", policy=Policy(opens_after=1)), Source(items)
    reader = asyncio.ensure_future(read(upstream, source, Deadline.after(30.0)))
    await asyncio.sleep(1.0)
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    assert (source.open, upstream.breaker.state) == (0, BreakerState.CLOSED)
    assert asyncio.get_running_loop().time() == 1.0


@pytest.mark.parametrize(("attempts", "state"), [(3, BreakerState.CLOSED), (1, BreakerState.OPEN)])
@skipping_time
async def test_a_stream_that_is_begun_again_has_not_failed_yet(attempts: int, state: BreakerState) -> None:
    upstream = Upstream("model")
    for _ in range(5):
        cut = upstream.stream(Source(["A", CUT]), deadline=Deadline.after(30.0), stage="generate", attempts=attempts)
        with pytest.raises(ProviderError):
            [item async for item in cut]
    assert upstream.breaker.state == state


@skipping_time
async def test_five_streams_cut_in_the_middle_open_the_breaker() -> None:
    upstream = Upstream("model")
    for _ in range(5):
        await read(upstream, Source(["A", CUT]), Deadline.after(30.0))
    assert upstream.breaker.state == BreakerState.OPEN
    assert await read(upstream, Source("ABC"), Deadline.after(30.0)) == ("", "unavailable", "generate: first token")
