"""What was asked and what became of it, kept so that an answer can be rated and a gap in the book be found."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from bythebook.conversations.message import in_utc, is_storable, now
from bythebook.errors import InputError

if TYPE_CHECKING:
    from datetime import datetime

LONGEST_REASON = 1000


class Rating(StrEnum):
    """What a reader thought of an answer."""

    UP = "up"
    DOWN = "down"

    @classmethod
    def _missing_(cls, value: object) -> Rating:  # noqa: ARG003 - what strangers send is not repeated
        raise InputError("a rating is 'up' or 'down'.")


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the book that came near to a question."""

    url: str
    title: str
    headings: tuple[str, ...]
    anchor: str
    score: float
    """Cosine of question and passage, 0 to 1."""

    @property
    def name(self) -> str:
        """The section as a path of headings."""
        return " > ".join(self.headings) or self.title


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with what became of it, under the id of its response."""

    id: str
    user_id: str
    question: str
    """As it was searched for, understandable by itself. Empty where questions are not written down."""
    outcome: str
    generation: str
    nearest: tuple[Section, ...] = ()
    confidence: float | None = None
    conversation_id: str | None = None
    asked_at: datetime = field(default_factory=now)
    rating: Rating | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Feedback:
    """What one reader thought of one answer. The reason is for whoever writes the book."""

    response_id: str
    rating: Rating
    reason: str = ""
    rated_at: datetime = field(default_factory=now)

    def __post_init__(self) -> None:
        object.__setattr__(self, "reason", self.reason.strip())
        object.__setattr__(self, "rated_at", in_utc(self.rated_at))
        if len(self.reason) > LONGEST_REASON:
            raise InputError(f"the reason has {len(self.reason)} characters; at most {LONGEST_REASON} are kept.")
        if not is_storable(self.reason):
            raise InputError("the reason has NUL or half a surrogate pair in it, which is no text.")
