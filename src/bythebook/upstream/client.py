"""Calls to services outside this process: one deadline, one owner of retries, one circuit breaker per service."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from enum import Enum, StrEnum
from typing import Final, NoReturn, TypeVar

from bythebook.errors import BookError, DeadlineExceeded, RateLimited
from bythebook.telemetry import log, metric, span
from bythebook.upstream.circuit_breaker import CircuitBreaker
from bythebook.upstream.classify import ClassifiedError, ErrorClassifier, classify_book_error
from bythebook.upstream.deadline import Deadline, now

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How many attempts a call has, how long the pauses between them are, and when the circuit breaker opens."""

    attempts: int = 3
    patience: int = 0
    """How many rate limit responses are not counted as attempts. Keep it 0 where a reader waits for the answer."""
    first_wait: float = 0.25
    """The upper limit of the first pause. It doubles with every attempt; the pause is a random time below it."""
    longest_wait: float = 4.0
    share: float = 0.5
    """The share of the remaining time that an attempt may use if another attempt can follow it."""
    stall: float = 5.0
    """After this many seconds without an item, a stream fails early, as long as it can still be restarted."""
    least: int = 300
    """A stream that is too slow to deliver this much before its deadline fails early too: two or three sentences."""
    opens_after: int = 5
    """The circuit breaker opens after this many failed calls in a row. A call fails after all of its attempts."""
    rest: float = 10.0
    """The seconds an open circuit breaker waits before it lets one call through as a probe."""

    def wait(self, attempt: int, chance: float) -> float:
        """The seconds to wait after this attempt; `chance` is a random number from 0 to 1."""
        return chance * min(self.longest_wait, self.first_wait * 2.0 ** (attempt - 1))


class CallState(StrEnum):
    """The state of an outside call. Every call begins as pending and ends as succeeded or failed_permanent."""

    PENDING = "pending"
    EXECUTING = "executing"
    RETRYING = "retrying"
    SUCCEEDED = "succeeded"
    FAILED_PERMANENT = "failed_permanent"


@dataclass(frozen=True, slots=True)
class CallReport:
    """One change of a call's state."""

    upstream: str
    stage: str
    state: CallState
    attempt: int = 0
    wait: float = 0.0
    """The seconds until the next attempt, while retrying."""
    error: BookError | None = None
    """The failure. None at the end of a failed call that was cancelled or that raised a foreign error."""


def ignore_report(_report: CallReport) -> None:
    """For callers that do not follow the states of their calls."""


def count_any_item(_item: object) -> int:
    """For streams without a measure of size: the first item counts as content, and no stream is too slow."""
    return 1_000_000


class Upstream:
    """One service outside this process."""

    def __init__(
        self,
        name: str,
        *,
        classify: ErrorClassifier = classify_book_error,
        policy: RetryPolicy = RetryPolicy(),  # noqa: B008 - it is frozen
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.name = name
        self.breaker = CircuitBreaker(name, opens_after=policy.opens_after, rest=policy.rest)
        self._classify = classify
        self._policy = policy
        self._chance = chance

    async def call(
        self,
        work: Callable[[], Awaitable[T]],
        *,
        deadline: Deadline,
        stage: str,
        report: Callable[[CallReport], None] = ignore_report,
    ) -> T:
        """Return the result of `work`, called as often as the policy and the deadline allow."""
        with self._track(_Call(self.name, stage, deadline, report, self._policy.attempts)) as call:
            while True:
                async with self._attempt(call):
                    return await work()

    async def stream(
        self,
        start: Callable[[], AsyncIterator[T]],
        *,
        deadline: Deadline,
        stage: str,
        size: Callable[[T], int] = count_any_item,
        report: Callable[[CallReport], None] = ignore_report,
        attempts: int | None = None,
    ) -> AsyncGenerator[T, None]:
        """Yield the items of the stream that `start` opens. It is retried only until the first item is yielded.

        A caller that restarts a broken stream itself passes `attempts`, the number it has left. While it has more
        than one, a stream that stalls, or is too slow by the `size` of its items, fails before its deadline.

        The first item is due at the deadline's first token, the last one before its end. Leading items without size
        are held back until an item with size follows or the stream ends, so that the stream can still be retried.
        Close the generator with `contextlib.aclosing` if you stop before its end.
        """
        # No function lies between this one and the source's items: every word of a model's answer passes here.
        allowed = attempts or self._policy.attempts
        stages = (f"{stage}: first token", f"{stage}: mid-stream")
        restarts = attempts is not None
        with self._track(_Call(self.name, stages[0], deadline, report, allowed, caller_restarts=restarts)) as call:
            opened = False
            while not opened:
                leading: list[T] = []
                async with self._attempt(call), _closing(source := start(), on_error_only=True):
                    async for item in source:
                        leading.append(item)
                        if size(item):
                            break
                    opened = True
            call.stage, call.deadline = stages[1], deadline.after_first_token()
            flow = _Flow(call.deadline.left())
            async with _closing(source):
                for item in leading:
                    flow.received += size(item)
                    yield item
                while True:
                    async with self._wait_for_item(call, flow):
                        following = await anext(source, _END)
                    if isinstance(following, _End):
                        break
                    flow.received += size(following)
                    yield following

    @contextmanager
    def _track(self, call: _Call) -> Iterator[_Call]:
        """Report the beginning and the end of the call, and set the stage of its errors."""
        call.report_state(CallState.PENDING)
        try:
            with call.measure(), self._pass_breaker(call):
                yield call
        except BaseException as exc:
            error = exc if isinstance(exc, BookError) else None
            if error:
                error.stage = error.stage or call.stage
            call.report_state(CallState.FAILED_PERMANENT, error=error)
            raise
        call.report_state(CallState.SUCCEEDED)

    @contextmanager
    def _pass_breaker(self, call: _Call) -> Iterator[None]:
        """Ask the circuit breaker for a permit, and report the outcome of the call to it."""
        if call.deadline.left() <= 0:
            raise call.timeout_error()
        permit = self.breaker.admit()
        if permit.probe:
            call.attempts = 1
        try:
            yield
        except BaseException:
            if call.upstream_failed:
                self.breaker.record_failure(permit)
            else:
                self.breaker.release(permit)
            raise
        self.breaker.record_success(permit)

    @asynccontextmanager
    async def _attempt(self, call: _Call) -> AsyncIterator[None]:
        """Run the block as one attempt. If it fails and may be retried, wait and suppress the error."""
        call.attempt += 1
        call.report_state(CallState.EXECUTING)
        left = call.deadline.left()
        try:
            async with call.limit(left if call.is_last_attempt else left * self._policy.share):
                yield
        except Exception as exc:
            await self._wait_or_raise(call, exc)

    async def _wait_or_raise(self, call: _Call, cause: Exception) -> None:
        """Wait before the next attempt, or raise the error that the caller gets."""
        failure = self._classify_error(cause)
        if isinstance(failure.error, RateLimited) and call.free_attempts < self._policy.patience:
            call.free_attempts += 1
        if not failure.again or call.is_last_attempt:
            self._raise(call, failure, cause)
        requested = failure.error.retry_after
        wait = (requested or 0.0) + self._policy.wait(call.attempt, self._chance())
        if wait < call.deadline.left():
            call.report_state(CallState.RETRYING, wait=wait, error=failure.error)
            await asyncio.sleep(wait)
        elif requested is None or isinstance(failure.error, RateLimited):
            self._raise(call, failure, cause)
        else:
            busy = RateLimited(
                f"{self.name} asks for {requested:.0f} s, more than the request has", retry_after=requested
            )
            self._raise(call, replace(failure, error=busy), cause)

    @asynccontextmanager
    async def _wait_for_item(self, call: _Call, flow: _Flow) -> AsyncIterator[None]:
        """Limit the wait for the next item of a stream whose first items were yielded."""
        left, before = call.deadline.left(), now()
        try:
            if not call.is_last_attempt and flow.is_too_slow(self._policy):
                raise call.timeout_error()
            async with call.limit(left if call.is_last_attempt else min(left, self._policy.stall)):
                yield
        except Exception as exc:
            self._raise(call, self._classify_error(exc), exc)
        finally:
            flow.waited += now() - before

    def _classify_error(self, error: Exception) -> ClassifiedError:
        classify = classify_book_error if isinstance(error, BookError) else self._classify
        failure = classify(self.name, error)
        if failure is None:
            raise error
        return failure

    def _raise(self, call: _Call, failure: ClassifiedError, cause: Exception) -> NoReturn:
        # A stream that the caller restarts has not failed yet.
        call.upstream_failed = failure.counts and (call.is_last_attempt or not call.caller_restarts)
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
    free_attempts: int = 0
    """How many attempts ended in a rate limit and are not counted."""
    caller_restarts: bool = False
    """Whether the caller restarts a stream that breaks after some of it was yielded."""
    upstream_failed: bool = False
    """Whether it failed in a way that the circuit breaker counts."""

    @property
    def is_last_attempt(self) -> bool:
        return self.attempt - self.free_attempts >= self.attempts

    def report_state(self, state: CallState, *, wait: float = 0.0, error: BookError | None = None) -> None:
        self.report(CallReport(self.upstream, self.stage, state, attempt=self.attempt, wait=wait, error=error))
        metric("calls", upstream=self.upstream, state=state)
        fields = {"upstream": self.upstream, "stage": self.stage, "state": state, "attempt": self.attempt}
        if error is None:
            log("call", **fields)
        elif state is CallState.RETRYING:
            log("call_retrying", **fields, wait=wait, error=error.code)
        else:
            log("call_failed", **fields, error=error.code)

    @contextmanager
    def measure(self) -> Iterator[None]:
        before = time.perf_counter()
        try:
            with span("call", upstream=self.upstream, stage=self.stage):
                yield
        finally:
            metric("call_seconds", time.perf_counter() - before, upstream=self.upstream)

    @asynccontextmanager
    async def limit(self, seconds: float) -> AsyncIterator[None]:
        """Raise DeadlineExceeded if the block takes longer."""
        try:
            async with asyncio.timeout(seconds) as limit:
                yield
        except TimeoutError as exc:
            if not limit.expired():
                raise
            raise self.timeout_error() from exc

    def timeout_error(self) -> DeadlineExceeded:
        return DeadlineExceeded(f"{self.upstream} did not answer in time ({self.stage})", stage=self.stage)


@dataclass(slots=True)
class _Flow:
    """How fast a stream delivers. Only the time spent waiting for its items counts, not the time to process them."""

    time: float
    """The seconds until the stream's deadline."""
    received: int = 0
    waited: float = 0.0

    def is_too_slow(self, policy: RetryPolicy) -> bool:
        """Whether the stream would deliver less than `policy.least` in its whole time at this speed."""
        return self.waited >= policy.stall and self.received * self.time < policy.least * self.waited


class _End(Enum):
    """The end of a stream, distinct from every item."""

    OF_STREAM = "end"


_END: Final = _End.OF_STREAM


@asynccontextmanager
async def _closing(source: AsyncIterator[T], *, on_error_only: bool = False) -> AsyncIterator[None]:
    """Close the source after the block if it can be closed; an iterator need not have `aclose`."""
    failed = True
    try:
        yield
        failed = False
    finally:
        if failed or not on_error_only:
            close = getattr(source, "aclose", None)
            if close:
                await close()
