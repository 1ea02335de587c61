"""Feedback: ratings of answers, the answer log, and the report of gaps: questions that the book does not answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from bythebook.feedback.ratings import NearestSection


@dataclass(frozen=True, slots=True)
class InsertionPoint:
    """Where to insert a missing section: on this page, after this heading, or after the introduction if it is empty."""

    url: str
    title: str
    after: str

    def __str__(self) -> str:
        return f"“{self.title}”, after {f'“{self.after}”' if self.after else 'its introduction'}"


@dataclass(frozen=True, slots=True)
class Topic:
    """A group of similar questions."""

    label: str
    """The most central question."""
    terms: tuple[str, ...]
    """The most distinctive words, most distinctive first."""
    count: int
    refused: int
    rated_down: int
    examples: tuple[str, ...]
    """Some of the questions without duplicates, most central first."""
    reasons: tuple[str, ...]
    """The reasons of readers who rated an answer down, latest first."""
    nearest: tuple[NearestSection, ...]
    """The most similar sections of the book."""
    place: InsertionPoint | None
    """None if the questions are not about this book."""
    last_asked_at: datetime


@dataclass(frozen=True, slots=True)
class GapReport:
    """What the book lacks, most frequent topics first."""

    questions: int
    """The number of questions without a good answer."""
    topics: tuple[Topic, ...]
    foreign: tuple[Topic, ...]
    """Topics that are not about this book: no section is similar."""
    unclear: tuple[str, ...]
    """Questions that were answered with a request for clarification, latest first."""
    covered_since: int
    """The number of questions that a newer generation of the book answers."""
    topics_left_out: int
    generation: str
    questions_left_out: int = 0
    """The number of older questions left out of the report because of its limit."""
