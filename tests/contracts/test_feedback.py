"""What the ledger of answers promises, on SQLite and on a real PostgreSQL server."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from bythebook.conversations import Conversation, Message
from bythebook.conversations.store import SqlConversations
from bythebook.errors import InputError, NotFound
from bythebook.feedback import AnswerLogEntry, Feedback, NearestSection, Rating
from bythebook.feedback.ratings import RatingStore

if TYPE_CHECKING:
    from bythebook.database.engine import Database

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
FOG = NearestSection("https://book/fog", "Fog", ("Fog", "The horn"), "the-horn", 0.41)


@pytest.fixture
def ledger(database: Database) -> RatingStore:
    return RatingStore(database)


def asked(
    outcome: str = "refused", *, minutes: int = 0, user_id: str = "ann", question: str = "How loud?"
) -> AnswerLogEntry:
    return AnswerLogEntry(
        id=str(uuid.uuid4()),
        user_id=user_id,
        question=question,
        outcome=outcome,
        generation="g000001",
        nearest=(FOG,),
        coverage=0.2,
        asked_at=BEGINNING + timedelta(minutes=minutes),
    )


async def gaps(ledger: RatingStore, *, since: datetime = BEGINNING, limit: int = 100) -> list[AnswerLogEntry]:
    return await ledger.list_unanswered_questions(since=since, limit=limit)


async def test_unanswered_questions_are_listed_latest_first(ledger: RatingStore) -> None:
    first, answered, second = asked(), asked("answered", minutes=1), asked("clarify", minutes=2)
    await ledger.add([first, answered, second])
    assert await gaps(ledger) == [second, first]
    assert await gaps(ledger, since=second.asked_at) == [second]
    assert await gaps(ledger, limit=1) == [second]


async def test_an_answer_rated_down_is_a_gap_until_it_is_rated_up(ledger: RatingStore) -> None:
    answered = asked("answered")
    await ledger.add([answered])
    down = Feedback(answered.id, Rating.DOWN, "  It names the wrong bell.  ")
    assert await ledger.rate(down, user_id="ann") == down
    assert await gaps(ledger) == [replace(answered, rating=Rating.DOWN, reason="It names the wrong bell.")]
    await ledger.rate(Feedback(answered.id, Rating.UP), user_id="ann")
    assert await gaps(ledger) == []


async def test_repeating_a_rating_changes_nothing(ledger: RatingStore) -> None:
    answered = asked("answered")
    await ledger.add([answered])
    first = Feedback(answered.id, Rating.UP, "Clear.", rated_at=BEGINNING)
    again = [ledger.rate(Feedback(answered.id, Rating.UP, "Clear."), user_id="ann") for _ in range(10)]
    assert [await ledger.rate(first, user_id="ann"), *await asyncio.gather(*again)] == [first] * 11


@pytest.mark.parametrize("user_id", ["bob", "", "Ann", "an\0n", "\ud800"])
async def test_an_answer_of_another_user_cannot_be_rated(ledger: RatingStore, user_id: str) -> None:
    refused = asked()
    await ledger.add([refused])
    with pytest.raises(NotFound, match="no such answer"):
        await ledger.rate(Feedback(refused.id, Rating.DOWN), user_id=user_id)
    assert await gaps(ledger) == [refused]


@pytest.mark.parametrize(
    "response_id", ["0b9b7d1c-3f57-4c33-8f0e-5d6d7a1c2b3e", "", "x' OR '1'='1", "\0", "\ud800", "9" * 10_000]
)
async def test_an_unknown_answer_cannot_be_rated(ledger: RatingStore, response_id: str) -> None:
    with pytest.raises(NotFound, match="no such answer"):
        await ledger.rate(Feedback(response_id, Rating.UP), user_id="ann")


async def test_entries_are_deleted_with_their_conversation(database: Database, ledger: RatingStore) -> None:
    conversations = SqlConversations(database)
    conversation = Conversation([Message("system", "Answer from the book.")], user_id="ann")
    await conversations.create(conversation)
    inside, outside = replace(asked(), conversation_id=conversation.id), asked(minutes=1)
    await ledger.add([inside, outside])
    assert await gaps(ledger) == [outside, inside]
    await conversations.delete(conversation.id, user_id="ann")
    assert await gaps(ledger) == [outside]
    # An answer may be written down after its reader has deleted everything.
    late, other = replace(inside, id=str(uuid.uuid4())), asked(minutes=2)
    await ledger.add([late, other])
    assert await gaps(ledger) == [other, outside]


async def test_text_that_databases_reject_does_not_block_other_entries(ledger: RatingStore) -> None:
    good = asked()
    await ledger.add([asked(question="a\0b"), good, asked(user_id="\ud800")])
    assert await gaps(ledger) == [good]


async def test_an_entry_without_a_question_can_be_rated_and_is_no_gap(ledger: RatingStore) -> None:
    wordless = asked(question="")
    await ledger.add([wordless])
    await ledger.rate(Feedback(wordless.id, Rating.DOWN), user_id="ann")
    assert await gaps(ledger) == []


async def test_old_answers_without_a_rating_are_deleted(ledger: RatingStore) -> None:
    old, rated, refused, fresh = (asked("answered"), asked("answered"), asked(), asked("answered", minutes=9))
    await ledger.add([old, rated, refused, fresh])
    await ledger.rate(Feedback(rated.id, Rating.DOWN), user_id="ann")
    assert await ledger.delete_unrated_answers(before=BEGINNING + timedelta(minutes=5)) == 1
    with pytest.raises(NotFound):
        await ledger.rate(Feedback(old.id, Rating.UP), user_id="ann")
    await ledger.rate(Feedback(fresh.id, Rating.UP), user_id="ann")
    assert {entry.id for entry in await gaps(ledger)} == {rated.id, refused.id}


@pytest.mark.parametrize(
    ("rating", "reason", "complaint"),
    [
        pytest.param("sideways", "", "'up' or 'down'", id="another rating"),
        pytest.param("UP", "", "'up' or 'down'", id="in capitals"),
        pytest.param("up", "x" * 1001, "1001 characters", id="a long reason"),
        pytest.param("up", "a\0b", "not valid text", id="NUL"),
        pytest.param("up", "\ud800", "not valid text", id="half a character"),
    ],
)
def test_rejects_invalid_feedback(rating: str, reason: str, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        Feedback(str(uuid.uuid4()), Rating(rating), reason)


def test_a_reason_may_have_a_thousand_characters() -> None:
    assert len(Feedback(str(uuid.uuid4()), Rating.UP, "x" * 1000).reason) == 1000
