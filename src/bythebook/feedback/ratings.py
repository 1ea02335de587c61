"""What was asked and what became of it, kept so that an answer can be rated and a gap in the book be found.

The ledger: every answer by its id, with what its reader thought of it, in a SQL database.

One row serves both feedback and the questions a book could not answer. A row goes with its conversation; an answer
nobody rated goes after a month.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, bindparam, delete, func, insert, or_, select, update

from bythebook.conversations.models import in_utc, is_storable, is_uuid4, now
from bythebook.database.schema import asked, conversations
from bythebook.errors import InputError, NotFound

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy import Connection, RowMapping

    from bythebook.database.engine import Database


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


ANSWERED = "answered"
"""The outcome that is no gap, unless it was rated down."""

_THEIRS = select(asked).where(asked.c.id == bindparam("this"), asked.c.user_id == bindparam("reader")).with_for_update()
_RATE = update(asked).where(asked.c.id == bindparam("this"))
_GAP = and_(asked.c.question != "", or_(asked.c.outcome != ANSWERED, asked.c.rating == Rating.DOWN.value))
_SINCE = and_(_GAP, asked.c.asked_at >= bindparam("since"))
_UNANSWERED = select(asked).where(_SINCE).order_by(asked.c.asked_at.desc(), asked.c.id).limit(bindparam("most"))
_HOW_MANY = select(func.count()).select_from(asked).where(_SINCE)
_FORGET = delete(asked).where(
    asked.c.outcome == ANSWERED, asked.c.rating.is_(None), asked.c.asked_at < bindparam("before")
)


class Ledger:
    """What was asked, what became of it, and what readers thought of that."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def keep(self, entries: Sequence[Asked]) -> None:
        """Write these down. What no database can keep, or whose conversation was deleted meanwhile, is left out."""
        rows = [_row(entry) for entry in entries if is_storable(entry.question) and is_storable(entry.user_id)]
        if rows:
            await self._database.write(lambda connection: _insert(connection, rows))

    async def rate(self, feedback: Feedback, *, user_id: str) -> Feedback:
        """Keep what this reader thinks of an answer of theirs; a later rating replaces an earlier one.

        Rating the same way again changes nothing. Another reader's answer is as absent as one that never was.
        """
        if not is_uuid4(feedback.response_id) or not is_storable(user_id):
            raise NotFound("there is no such answer.")
        return await self._database.write(lambda connection: _rate(connection, feedback, user_id))

    async def unanswered(self, *, since: datetime, limit: int) -> list[Asked]:
        """The `limit` latest questions since then that were refused, asked back or rated down, the latest first."""
        given = {"since": in_utc(since), "most": limit}
        return await self._database.read(
            lambda connection: [_entry(row) for row in connection.execute(_UNANSWERED, given).mappings()]
        )

    async def count_unanswered(self, *, since: datetime) -> int:
        """How many such questions there are in all."""
        given = {"since": in_utc(since)}
        return await self._database.read(lambda connection: connection.scalar(_HOW_MANY, given) or 0)

    async def forget(self, before: datetime) -> int:
        """Forget the answers from before then that nobody rated, and say how many."""
        given = {"before": in_utc(before)}
        return await self._database.write(lambda connection: connection.execute(_FORGET, given).rowcount)


def _insert(connection: Connection, rows: list[dict[str, Any]]) -> None:
    of = {row["conversation_id"] for row in rows} - {None}
    # Locked, so that none of them is deleted before its rows are in.
    there = select(conversations.c.id).where(conversations.c.id.in_(of)).with_for_update(read=True, key_share=True)
    kept: set[str | None] = {None, *(connection.scalars(there) if of else ())}
    if standing := [row for row in rows if row["conversation_id"] in kept]:
        connection.execute(insert(asked), standing)


def _rate(connection: Connection, feedback: Feedback, user_id: str) -> Feedback:
    given = {"this": feedback.response_id, "reader": user_id}
    row = connection.execute(_THEIRS, given).mappings().one_or_none()
    if row is None:
        raise NotFound("there is no such answer.")
    if (row["rating"], row["reason"]) == (feedback.rating, feedback.reason):
        return Feedback(feedback.response_id, feedback.rating, feedback.reason, row["rated_at"])
    changed = {"rating": feedback.rating.value, "reason": feedback.reason, "rated_at": feedback.rated_at}
    connection.execute(_RATE, {"this": feedback.response_id, **changed})
    return feedback


def _row(entry: Asked) -> dict[str, Any]:
    return {
        "id": entry.id,
        "user_id": entry.user_id,
        "conversation_id": entry.conversation_id,
        "question": entry.question,
        "outcome": entry.outcome,
        "generation": entry.generation,
        "nearest": json.dumps([asdict(section) for section in entry.nearest]),
        "confidence": entry.confidence,
        "asked_at": entry.asked_at,
        "reason": "",
    }


def _entry(row: RowMapping) -> Asked:
    return Asked(
        id=row["id"],
        user_id=row["user_id"],
        question=row["question"],
        outcome=row["outcome"],
        generation=row["generation"],
        nearest=tuple(
            Section(**section | {"headings": tuple(section["headings"])}) for section in json.loads(row["nearest"])
        ),
        confidence=row["confidence"],
        conversation_id=row["conversation_id"],
        asked_at=row["asked_at"],
        rating=Rating(row["rating"]) if row["rating"] else None,
        reason=row["reason"],
    )
