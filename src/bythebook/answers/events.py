"""The events of a question, in order. The last event of a stream is always `AnswerCompleted`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from bythebook.answers import AgentResponse
    from bythebook.retrieval import RetrievalResult


class State(StrEnum):
    """State of a request. Every request ends in completed or failed."""

    RECEIVED = "received"
    VALIDATING = "validating"
    RETRIEVING = "retrieving"
    GENERATING = "generating"
    COMPLETED = "completed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class StateChanged:
    """The request entered a new state."""

    state: State


@dataclass(frozen=True, slots=True)
class SourcesFound:
    """Passages were retrieved; a second search adds its passages."""

    results: tuple[RetrievalResult, ...]


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the answer as it is generated. Only `AnswerCompleted` is verified."""

    text: str


@dataclass(frozen=True, slots=True)
class AnswerCompleted:
    """The complete, verified answer."""

    response: AgentResponse


Event: TypeAlias = StateChanged | SourcesFound | TextDelta | AnswerCompleted
