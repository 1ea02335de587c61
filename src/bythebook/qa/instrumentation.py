"""Instrumentation of a question: its span, its log events and its metrics."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from bythebook.answers import AgentRequest, AgentResponse, AnswerCompleted, Event, State, StateChanged, TextDelta
from bythebook.errors import BookError
from bythebook.qa.request import StageTimer
from bythebook.telemetry import log, metric, span

LEFT = "left"
"""The outcome of a question whose reader left before the answer."""

E = TypeVar("E", bound="Event")


@contextmanager
def instrument(request: AgentRequest, timer: StageTimer) -> Iterator[Callable[[E], E]]:
    """Measure a question. Call the given function with each event before it is yielded; it returns the event."""
    observer = _Observer(request, timer)
    with span("question"):
        try:
            yield observer.observe
        except (GeneratorExit, asyncio.CancelledError):
            observer.count_cancellation()
            raise
        except Exception as error:
            observer.log_failure(error)
            raise


class _Observer:
    """Reports one question to the listeners of telemetry."""

    def __init__(self, request: AgentRequest, timer: StageTimer) -> None:
        self._request = request
        self._timer = timer
        self._first_token = 0.0
        self._answered = False

    def observe(self, event: E) -> E:
        if isinstance(event, StateChanged):
            log("state_changed", state=event.state)
        elif isinstance(event, TextDelta | AnswerCompleted) and not self._first_token:
            self._first_token = self._seconds()
            metric("first_token_seconds", self._first_token)
        if isinstance(event, AnswerCompleted):
            self._answered = True
            self._log_answer(event.response)
        return event

    def count_cancellation(self) -> None:
        # With the answer received, leaving before the end of the stream is not a cancellation.
        if not self._answered:
            metric("questions", outcome=LEFT)

    def log_failure(self, error: Exception) -> None:
        code = error.code if isinstance(error, BookError) else BookError.code
        metric("questions", outcome=code)
        log("state_changed", state=State.FAILED)
        log(
            "question_failed",
            error=code,
            stage=error.stage if isinstance(error, BookError) else "",
            # Errors of the reader are reported to the reader only. The text of a foreign error may contain anything.
            message=str(error) if isinstance(error, BookError) and error.status_code >= 500 else "",
            seconds=self._seconds(),
            question=self._request.query,
        )

    def _log_answer(self, response: AgentResponse) -> None:
        metric("questions", outcome=response.outcome)
        metadata = response.metadata
        log(
            "question",
            outcome=response.outcome,
            model=response.model,
            seconds=self._seconds(),
            first_token_seconds=self._first_token,
            tokens=response.tokens_used,
            passages=metadata.chunk_count,
            cache_hit=metadata.cache_hit,
            generation=metadata.index_generation,
            question=self._request.query,
            selected_text=self._request.selected_text,
            answer=response.answer,
        )

    def _seconds(self) -> float:
        return self._timer.elapsed_ms() / 1000
