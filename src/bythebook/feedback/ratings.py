"""The SQL store of answered questions and their ratings.

One row serves both the rating of an answer and the report of gaps. A row is deleted with its conversation; the row of
an answered question without a rating is deleted after 30 days.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, and_, bindparam, delete, func, insert, or_, select, update

from bythebook.conversations.models import is_storable, is_uuid4, to_utc
from bythebook.database.engine import Database
from bythebook.database.schema import asked, conversations
from bythebook.errors import NotFound
from bythebook.feedback import AnswerLogEntry, Feedback, Rating
from bythebook.serialization import from_json

ANSWERED = "answered"
"""The only outcome that is not a gap, unless the answer was rated down."""

_OWN = select(asked).where(asked.c.id == bindparam("this"), asked.c.user_id == bindparam("reader")).with_for_update()
_RATE = update(asked).where(asked.c.id == bindparam("this"))
_GAP = and_(asked.c.question != "", or_(asked.c.outcome != ANSWERED, asked.c.rating == Rating.DOWN.value))
_SINCE = and_(_GAP, asked.c.asked_at >= bindparam("since"))
_UNANSWERED = select(asked).where(_SINCE).order_by(asked.c.asked_at.desc(), asked.c.id).limit(bindparam("most"))
_COUNT_UNANSWERED = select(func.count()).select_from(asked).where(_SINCE)
_DELETE = delete(asked).where(
    asked.c.outcome == ANSWERED, asked.c.rating.is_(None), asked.c.asked_at < bindparam("before")
)


class RatingStore:
    """Stores answered questions with their outcomes and ratings."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, entries: Sequence[AnswerLogEntry]) -> None:
        """Insert entries, except those with text that databases reject and those of a deleted conversation."""
        rows = [_to_row(entry) for entry in entries if is_storable(entry.question) and is_storable(entry.user_id)]
        if rows:
            await self._database.write(lambda connection: _insert(connection, rows))

    async def rate(self, feedback: Feedback, *, user_id: str) -> Feedback:
        """Store the rating of an answer; a later rating replaces an earlier one.

        Repeating a rating changes nothing. Raises NotFound for the answer of another user, as for an unknown one.
        """
        if not is_uuid4(feedback.response_id) or not is_storable(user_id):
            raise NotFound("there is no such answer.")
        return await self._database.write(lambda connection: _rate(connection, feedback, user_id))

    async def list_unanswered_questions(self, *, since: datetime, limit: int) -> list[AnswerLogEntry]:
        """The `limit` latest questions since then that were refused, unclear or rated down, latest first."""
        parameters = {"since": to_utc(since), "most": limit}
        return await self._database.read(
            lambda connection: [_to_entry(row) for row in connection.execute(_UNANSWERED, parameters).mappings()]
        )

    async def count_unanswered_questions(self, *, since: datetime) -> int:
        """The number of such questions without the limit."""
        parameters = {"since": to_utc(since)}
        return await self._database.read(lambda connection: connection.scalar(_COUNT_UNANSWERED, parameters) or 0)

    async def delete_unrated_answers(self, *, before: datetime) -> int:
        """Delete the answered questions from before then that have no rating. Returns their number."""
        parameters = {"before": to_utc(before)}
        return await self._database.write(lambda connection: connection.execute(_DELETE, parameters).rowcount)


def _insert(connection: Connection, rows: list[dict[str, Any]]) -> None:
    referenced = {row["conversation_id"] for row in rows} - {None}
    # Lock the conversations, so that none is deleted before its rows are inserted.
    existing = (
        select(conversations.c.id).where(conversations.c.id.in_(referenced)).with_for_update(read=True, key_share=True)
    )
    valid: set[str | None] = {None, *(connection.scalars(existing) if referenced else ())}
    if accepted := [row for row in rows if row["conversation_id"] in valid]:
        connection.execute(insert(asked), accepted)


def _rate(connection: Connection, feedback: Feedback, user_id: str) -> Feedback:
    parameters = {"this": feedback.response_id, "reader": user_id}
    row = connection.execute(_OWN, parameters).mappings().one_or_none()
    if row is None:
        raise NotFound("there is no such answer.")
    if (row["rating"], row["reason"]) == (feedback.rating, feedback.reason):
        return Feedback(feedback.response_id, feedback.rating, feedback.reason, row["rated_at"])
    changed = {"rating": feedback.rating.value, "reason": feedback.reason, "rated_at": feedback.rated_at}
    connection.execute(_RATE, {"this": feedback.response_id, **changed})
    return feedback


def _to_row(entry: AnswerLogEntry) -> dict[str, Any]:
    row = asdict(entry)
    row["confidence"] = row.pop("coverage")
    return row | {"nearest": json.dumps(row["nearest"]), "rating": None, "reason": ""}


def _to_entry(row: RowMapping) -> AnswerLogEntry:
    stored = {**row, "nearest": json.loads(row["nearest"]), "coverage": row["confidence"]}
    entry: AnswerLogEntry = from_json(AnswerLogEntry, stored)
    return entry
