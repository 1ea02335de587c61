"""Feedback: ratings of answers, the answer log, and the report of gaps: questions that the book does not answer."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from bythebook.conversations.models import is_storable, to_utc, utc_now
from bythebook.errors import InputError

MAX_REASON_LENGTH = 1000


class Rating(StrEnum):
    """A reader's rating of an answer."""

    UP = "up"
    DOWN = "down"

    @classmethod
    def _missing_(cls, value: object) -> "Rating":  # noqa: ARG003 - the input is not echoed
        raise InputError("a rating is 'up' or 'down'.")


@dataclass(frozen=True, slots=True)
class NearestSection:
    """A section of the book that is similar to a question."""

    url: str
    title: str
    headings: tuple[str, ...]
    anchor: str
    score: float
    """Cosine similarity of question and passage, 0 to 1."""

    @property
    def name(self) -> str:
        """The section as a path of headings."""
        return " > ".join(self.headings) or self.title


@dataclass(frozen=True, slots=True)
class AnswerLogEntry:
    """A question and its outcome, under the id of the response."""

    id: str
    user_id: str
    question: str
    """The self-contained form used for the search. Empty if questions are not stored."""
    outcome: str
    generation: str
    nearest: tuple[NearestSection, ...] = ()
    coverage: float | None = None
    conversation_id: str | None = None
    asked_at: datetime = field(default_factory=utc_now)
    rating: Rating | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Feedback:
    """A rating of one answer by its reader."""

    response_id: str
    rating: Rating
    reason: str = ""
    rated_at: datetime = field(default_factory=utc_now)

    def __post_init__(self) -> None:
        object.__setattr__(self, "reason", self.reason.strip())
        object.__setattr__(self, "rated_at", to_utc(self.rated_at))
        if len(self.reason) > MAX_REASON_LENGTH:
            raise InputError(f"the reason has {len(self.reason)} characters; at most {MAX_REASON_LENGTH} are kept.")
        if not is_storable(self.reason):
            raise InputError("the reason has NUL or half a surrogate pair in it, which is not valid text.")


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
