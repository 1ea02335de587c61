"""What happens while a question is answered, in order. The last event of a stream is always `Answered`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from bythebook.answers import AgentResponse
    from bythebook.retrieval import RetrievalResult


class State(StrEnum):
    """Where a request is. Every one ends in completed or failed."""

    RECEIVED = "received"
    VALIDATING = "validating"
    RETRIEVING = "retrieving"
    GENERATING = "generating"
    COMPLETED = "completed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Entered:
    """The request has come to this state."""

    state: State


@dataclass(frozen=True, slots=True)
class Searched:
    """These passages were found; after a second search, these as well."""

    results: tuple[RetrievalResult, ...]


@dataclass(frozen=True, slots=True)
class Said:
    """More of the answer, as it comes. What was said is proven only in `Answered`."""

    text: str


@dataclass(frozen=True, slots=True)
class Answered:
    """The proven answer, whole."""

    response: AgentResponse


Event: TypeAlias = Entered | Searched | Said | Answered
