"""The witness: tells whoever listens how a question went, and changes nothing about it."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from typing import TYPE_CHECKING

from bythebook.answers.events import Answered, Entered, Said, State
from bythebook.errors import BookError
from bythebook.telemetry import figure, log, span

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from bythebook.answers import AgentRequest, AgentResponse
    from bythebook.answers.events import Event

LEFT = "left"
"""The outcome of a question whose reader did not wait for the answer."""


async def witnessed(request: AgentRequest, events: AsyncGenerator[Event]) -> AsyncGenerator[Event]:
    """The same events, the last of them told as well."""
    telling = _Telling(request)
    with span("question"):
        try:
            async with aclosing(events):
                async for event in events:
                    telling.of(event)
                    yield event
        except (GeneratorExit, asyncio.CancelledError):
            telling.left()
            raise
        except Exception as error:
            telling.failed(error)
            raise


class _Telling:
    """What is said of one question, as it goes."""

    def __init__(self, request: AgentRequest) -> None:
        self._request = request
        self._started = time.perf_counter()
        self._first_token = 0.0
        self._answered = False

    def of(self, event: Event) -> None:
        if isinstance(event, Entered):
            log("state", state=event.state)
        elif isinstance(event, Said | Answered) and not self._first_token:
            self._first_token = self._elapsed()
            figure("first_token_seconds", self._first_token)
        if isinstance(event, Answered):
            self._answered = True
            self._tell(event.response)

    def left(self) -> None:
        # Whoever has the answer need not wait for the end of the stream.
        if not self._answered:
            figure("questions", outcome=LEFT)

    def failed(self, error: Exception) -> None:
        code = error.code if isinstance(error, BookError) else BookError.code
        figure("questions", outcome=code)
        log("state", state=State.FAILED)
        log(
            "question_failed",
            error=code,
            stage=error.stage if isinstance(error, BookError) else "",
            # What a reader did wrong is said to the reader alone, and what a foreign error says may be anything.
            message=str(error) if isinstance(error, BookError) and error.status_code >= 500 else "",
            seconds=self._elapsed(),
            question=self._request.query,
        )

    def _tell(self, response: AgentResponse) -> None:
        figure("questions", outcome=response.outcome)
        metadata = response.metadata
        log(
            "question",
            outcome=response.outcome,
            model=response.model,
            seconds=self._elapsed(),
            first_token_seconds=self._first_token,
            tokens=response.tokens_used,
            passages=metadata.chunk_count,
            cache_hit=metadata.cache_hit,
            generation=metadata.index_generation,
            question=self._request.query,
            selected_text=self._request.selected_text,
            answer=response.answer,
        )

    def _elapsed(self) -> float:
        return time.perf_counter() - self._started
