"""A turn: one question with what was found for it and what was answered."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from bythebook.conversations.message import in_utc, is_storable, new_id, now
from bythebook.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from bythebook.conversations.message import Record
    from bythebook.passages import RetrievalResult


class TurnState(StrEnum):
    """Running, then one of the others for good. Interrupted: whoever was answering is gone."""

    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class ConversationTurn:
    """One question of a conversation, and what became of it. Numbers count from 1 and have no gaps."""

    conversation_id: str
    number: int
    question: str
    standalone_question: str = ""
    """The question as it was searched for, understandable without the ones before it."""
    retrieval_results: tuple[RetrievalResult, ...] = ()
    response: Record | None = None
    """The AgentResponse as JSON has it, once there is one."""
    state: TurnState = TurnState.RUNNING
    error: str = ""
    """The code of the error a failed turn ended with."""
    created_at: datetime = field(default_factory=now)
    duration_seconds: float | None = None
    """How long it took to complete or fail; how long an interrupted turn ran, nobody knows."""
    id: str = field(default_factory=new_id)

    def __post_init__(self) -> None:
        for flaw in self._flaws():
            raise InputError(flaw)
        object.__setattr__(self, "created_at", in_utc(self.created_at))

    def _flaws(self) -> Iterator[str]:
        if self.number < 1:
            yield f"turns are numbered from 1, not {self.number}."
        if not self.question.strip():
            yield "the question of a turn is empty."
        if not is_storable(self.question) or not is_storable(self.standalone_question):
            yield "the question has NUL or half a surrogate pair in it, which is no text."
        if self.duration_seconds is not None and not self.duration_seconds > 0:
            yield f"duration_seconds must be greater than 0, not {self.duration_seconds}."
        if self.state in {TurnState.COMPLETED, TurnState.FAILED} and self.duration_seconds is None:
            yield f"a {self.state} turn needs its duration_seconds."
        if (self.state is TurnState.COMPLETED) != (self.response is not None):
            yield "a completed turn has a response, and no other has one."
        if self.response and self.response.get("grounded") and not self.retrieval_results:
            yield "nothing was retrieved, so the response must say that the book has no information, not be grounded."

    def completed(
        self,
        response: Record,
        *,
        retrieval_results: Sequence[RetrievalResult],
        duration_seconds: float,
        standalone_question: str = "",
    ) -> ConversationTurn:
        """This turn with its answer."""
        return replace(
            self,
            state=TurnState.COMPLETED,
            response=response,
            retrieval_results=tuple(retrieval_results),
            standalone_question=standalone_question or self.standalone_question,
            duration_seconds=duration_seconds,
        )

    def failed(self, error: str, *, duration_seconds: float) -> ConversationTurn:
        """This turn, ended by an error with this code."""
        return replace(self, state=TurnState.FAILED, error=error, duration_seconds=duration_seconds)
