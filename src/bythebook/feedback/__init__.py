"""Gaps: what readers asked and the book could not answer, by topic, and where the answer would belong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from bythebook.feedback.ratings import Section


@dataclass(frozen=True, slots=True)
class Place:
    """Where a missing section belongs: on this page, after this heading. Without a heading, after its introduction."""

    url: str
    title: str
    after: str

    def __str__(self) -> str:
        return f"“{self.title}”, after {f'“{self.after}”' if self.after else 'its introduction'}"


@dataclass(frozen=True, slots=True)
class Topic:
    """Questions that ask for the same thing."""

    label: str
    """The question in the middle of them."""
    terms: tuple[str, ...]
    """The words that set them apart, most telling first."""
    count: int
    refused: int
    rated_down: int
    examples: tuple[str, ...]
    """Some of the questions, each once, the most central first."""
    reasons: tuple[str, ...]
    """What readers said who rated an answer down, the latest first."""
    nearest: tuple[Section, ...]
    """The sections of the book that come nearest."""
    place: Place | None
    """None when they are not about this book."""
    last_asked_at: datetime


@dataclass(frozen=True, slots=True)
class GapReport:
    """What the book lacks, what was asked most first."""

    questions: int
    """How many questions it could not answer."""
    topics: tuple[Topic, ...]
    foreign: tuple[Topic, ...]
    """Not about this book: no section comes anywhere near."""
    unclear: tuple[str, ...]
    """Questions that could not be understood and were asked back, the latest first."""
    covered_since: int
    """Questions a newer generation of the book answers."""
    topics_left_out: int
    generation: str
    questions_left_out: int = 0
    """Older questions that were not looked at, because there are too many."""
