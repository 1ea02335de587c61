"""How patient we are with a service.

Calls to a service outside this process, each bounded, retried and counted in one place.
"""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Final, NoReturn, TypeVar

from bythebook.errors import BookError, DeadlineExceeded, RateLimited
from bythebook.telemetry import figure, log, span
from bythebook.upstream.circuit_breaker import Breaker
from bythebook.upstream.classify import judge_ours
from bythebook.upstream.deadline import now

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator

    from bythebook.upstream.classify import Failure, Judge
    from bythebook.upstream.deadline import Deadline


@dataclass(frozen=True, slots=True)
class Policy:
    """How often a call is tried, how long it rests in between, and when a service is left alone."""

    attempts: int = 3
    patience: int = 0
    """How often a service may ask us to wait before that counts as an attempt. None where somebody is waiting."""
    first_wait: float = 0.25
    """The ceiling of the first wait. It doubles with every attempt; the wait is anything below it."""
    longest_wait: float = 4.0
    share: float = 0.5
    """An attempt with another behind it may use this share of the time left, so that a hang is not the end."""
    stall: float = 5.0
    """The seconds without a word after which a stream is given up, while it can still be begun again."""
    least: int = 300
    """A stream too slow to bring this much in its time is given up likewise: in characters, two sentences or three."""
    opens_after: int = 5
    """The number of calls failed in a row, each after all of its attempts, on which the circuit breaker opens."""
    rest: float = 10.0
    """The seconds an open circuit breaker waits before it lets one call try."""

    def wait(self, attempt: int, chance: float) -> float:
        """The seconds to wait after this attempt, `chance` being drawn evenly from 0 to 1."""
        return chance * min(self.longest_wait, self.first_wait * 2.0 ** (attempt - 1))


T = TypeVar("T")


class CallState(StrEnum):
    """Where an outside call stands. Every call begins pending and ends succeeded or failed_permanent."""

    PENDING = "pending"
    EXECUTING = "executing"
    RETRYING = "retrying"
    SUCCEEDED = "succeeded"
    FAILED_PERMANENT = "failed_permanent"


@dataclass(frozen=True, slots=True)
class CallReport:
    """One change of state, for the event stream and the logs."""

    upstream: str
    stage: str
    state: CallState
    attempt: int = 0
    wait: float = 0.0
    """The seconds until the next attempt, while retrying."""
    error: BookError | None = None
    """What failed. None at the end of a failed call: it was cancelled, or the error is not ours."""


def unheard(_report: CallReport) -> None:
    """For callers that do not follow their calls."""


def plenty(_item: object) -> int:
    """For streams whose very first item is worth showing, and none says how far it has come."""
    return 1_000_000


class Upstream:
    """One service outside this process."""

    def __init__(
        self,
        name: str,
        *,
        judge: Judge = judge_ours,
        policy: Policy = Policy(),  # noqa: B008 - it is frozen
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.name = name
        self.breaker = Breaker(name, opens_after=policy.opens_after, rest=policy.rest)
        self._judge = judge
        self._policy = policy
        self._chance = chance

    async def call(
        self,
        work: Callable[[], Awaitable[T]],
        *,
        deadline: Deadline,
        stage: str,
        report: Callable[[CallReport], None] = unheard,
    ) -> T:
        """What `work` brings back, in as many attempts as the policy and the deadline allow."""
        with self._followed(_Call(self.name, stage, deadline, report, self._policy.attempts)) as call:
            return await self._attempts(call, work)

    async def stream(
        self,
        start: Callable[[], AsyncIterator[T]],
        *,
        deadline: Deadline,
        stage: str,
        size: Callable[[T], int] = plenty,
        report: Callable[[CallReport], None] = unheard,
        attempts: int | None = None,
    ) -> AsyncGenerator[T, None]:
        """The items of the stream that `start` opens, tried again only while none has been handed out.

        `attempts` is for a caller that has used up some already, and begins again by itself what has been seen: while
        it still can, a stream that stalls, or comes too slowly by the `size` of its items, fails before its deadline.

        The first item is due at the deadline's first token, all of them before its end. Leading items without
        any `size` are held back until one follows that has some, or the stream ends: what nobody has seen can still be
        tried again. Close the generator (`contextlib.aclosing`) when you stop before its end.
        """
        allowed = attempts or self._policy.attempts
        whole = _Call(self.name, f"{stage}: first token", deadline, report, allowed, begun_again=attempts is not None)
        with self._followed(whole) as call:
            source, items = await self._attempts(call, lambda: _opened(start(), size))
            call.stage, call.deadline = f"{stage}: mid-stream", deadline.begun()
            flow = _Flow(call.deadline.left())
            async with _closing(source):
                for item in items:
                    flow.came += size(item)
                    yield item
                while not isinstance(following := await self._next(call, source, flow), _End):
                    flow.came += size(following)
                    yield following

    @contextmanager
    def _followed(self, call: _Call) -> Iterator[_Call]:
        """Tell whoever listens how the call begins and ends, and errors in which stage they happened."""
        call.tell(CallState.PENDING)
        try:
            with call.timed(), self._admitted(call):
                yield call
        except BaseException as exc:
            error = exc if isinstance(exc, BookError) else None
            if error:
                error.stage = error.stage or call.stage
            call.tell(CallState.FAILED_PERMANENT, error=error)
            raise
        call.tell(CallState.SUCCEEDED)

    @contextmanager
    def _admitted(self, call: _Call) -> Iterator[None]:
        """Ask the breaker for leave, and let it know what became of the call."""
        if call.deadline.left() <= 0:
            raise call.out_of_time()
        admission = self.breaker.admit()
        if admission.probe:
            call.attempts = 1
        try:
            yield
        except BaseException:
            if call.ill:
                self.breaker.failed(admission)
            else:
                self.breaker.neither(admission)
            raise
        self.breaker.succeeded(admission)

    async def _attempts(self, call: _Call, work: Callable[[], Awaitable[T]]) -> T:
        while True:
            call.attempt += 1
            call.tell(CallState.EXECUTING)
            left = call.deadline.left()
            try:
                return await call.bounded(work(), left if call.last else left * self._policy.share)
            except Exception as exc:
                await self._wait_or_raise(call, exc)

    async def _wait_or_raise(self, call: _Call, cause: Exception) -> None:
        """Rest before another attempt, or raise what the caller is to see."""
        failure = self._verdict(cause)
        if isinstance(failure.error, RateLimited) and call.waited < self._policy.patience:
            call.waited += 1
        if not failure.again or call.last:
            self._give_up(call, failure, cause)
        asked = failure.error.retry_after
        wait = (asked or 0.0) + self._policy.wait(call.attempt, self._chance())
        if wait < call.deadline.left():
            call.tell(CallState.RETRYING, wait=wait, error=failure.error)
            await asyncio.sleep(wait)
        elif asked is None or isinstance(failure.error, RateLimited):
            self._give_up(call, failure, cause)
        else:
            busy = RateLimited(f"{self.name} asks for {asked:.0f} s, more than the request has", retry_after=asked)
            self._give_up(call, replace(failure, error=busy), cause)

    async def _next(self, call: _Call, source: AsyncIterator[T], flow: _Flow) -> T | _End:
        left, before = call.deadline.left(), now()
        try:
            if not call.last and flow.too_slow(self._policy):
                raise call.out_of_time()
            return await call.bounded(anext(source, _END), left if call.last else min(left, self._policy.stall))
        except Exception as exc:
            self._give_up(call, self._verdict(exc), exc)
        finally:
            flow.waited += now() - before

    def _verdict(self, error: Exception) -> Failure:
        judge = judge_ours if isinstance(error, BookError) else self._judge
        failure = judge(self.name, error)
        if failure is None:
            raise error
        return failure

    def _give_up(self, call: _Call, failure: Failure, cause: Exception) -> NoReturn:
        # What the caller begins again has not failed yet.
        call.ill = failure.counts and (call.last or not call.begun_again)
        error = failure.error
        if isinstance(error, RateLimited) and error.retry_after is None:
            error.retry_after = self._policy.longest_wait
        if error is cause:
            raise error
        raise error from cause


@dataclass(slots=True)
class _Call:
    """One outside call, from its first attempt to its last."""

    upstream: str
    stage: str
    deadline: Deadline
    report: Callable[[CallReport], None]
    attempts: int
    attempt: int = 0
    waited: int = 0
    """How many of the attempts were answered with a wish to wait, and are not counted."""
    begun_again: bool = False
    """Whether the caller begins again a stream that breaks after some of it was seen."""
    ill: bool = False
    """Whether it failed in a way that the breaker counts."""

    @property
    def last(self) -> bool:
        return self.attempt - self.waited >= self.attempts

    def tell(self, state: CallState, *, wait: float = 0.0, error: BookError | None = None) -> None:
        self.report(CallReport(self.upstream, self.stage, state, attempt=self.attempt, wait=wait, error=error))
        figure("calls", upstream=self.upstream, state=state)
        told = {"upstream": self.upstream, "stage": self.stage, "state": state, "attempt": self.attempt}
        if error is None:
            log("call", **told)
        elif state is CallState.RETRYING:
            log("call_retrying", **told, wait=wait, error=error.code)
        else:
            log("call_failed", **told, error=error.code)

    @contextmanager
    def timed(self) -> Iterator[None]:
        before = time.perf_counter()
        try:
            with span("call", upstream=self.upstream, stage=self.stage):
                yield
        finally:
            figure("call_seconds", time.perf_counter() - before, upstream=self.upstream)

    async def bounded(self, work: Awaitable[T], seconds: float) -> T:
        try:
            async with asyncio.timeout(seconds) as limit:
                return await work
        except TimeoutError as exc:
            if not limit.expired():
                raise
            raise self.out_of_time() from exc

    def out_of_time(self) -> DeadlineExceeded:
        return DeadlineExceeded(f"{self.upstream} did not answer in time ({self.stage})", stage=self.stage)


@dataclass(slots=True)
class _Flow:
    """How fast a stream comes. Only waiting for it counts, not what is done with it in between."""

    time: float
    """The seconds it has."""
    came: int = 0
    waited: float = 0.0

    def too_slow(self, policy: Policy) -> bool:
        """Whether at this pace there would be less at the end than an answer takes."""
        return self.waited >= policy.stall and self.came * self.time < policy.least * self.waited


class _End(Enum):
    """The end of a stream, as no item can be."""

    OF_STREAM = "end"


_END: Final = _End.OF_STREAM


async def _opened(source: AsyncIterator[T], size: Callable[[T], int]) -> tuple[AsyncIterator[T], list[T]]:
    """A stream and what it begins with: up to the first item of any size, if there is one."""
    items: list[T] = []
    try:
        while not isinstance(item := await anext(source, _END), _End):
            items.append(item)
            if size(item):
                break
    except BaseException:
        await _close(source)
        raise
    return source, items


@asynccontextmanager
async def _closing(source: AsyncIterator[T]) -> AsyncIterator[None]:
    try:
        yield
    finally:
        await _close(source)


async def _close(source: AsyncIterator[T]) -> None:
    close = getattr(source, "aclose", None)
    if close:
        await close()
