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
from bythebook.feedback.ratings import Asked, Feedback, Ledger, Rating, Section

if TYPE_CHECKING:
    from bythebook.database.engine import Database

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
FOG = Section("https://book/fog", "Fog", ("Fog", "The horn"), "the-horn", 0.41)


@pytest.fixture
def ledger(database: Database) -> Ledger:
    return Ledger(database)


def asked(outcome: str = "refused", *, minutes: int = 0, user_id: str = "ann", question: str = "How loud?") -> Asked:
    return Asked(
        id=str(uuid.uuid4()),
        user_id=user_id,
        question=question,
        outcome=outcome,
        generation="g000001",
        nearest=(FOG,),
        confidence=0.2,
        asked_at=BEGINNING + timedelta(minutes=minutes),
    )


async def gaps(ledger: Ledger, *, since: datetime = BEGINNING, limit: int = 100) -> list[Asked]:
    return await ledger.unanswered(since=since, limit=limit)


async def test_what_was_refused_or_asked_back_is_listed_whole_the_latest_first(ledger: Ledger) -> None:
    first, answered, second = asked(), asked("answered", minutes=1), asked("clarify", minutes=2)
    await ledger.keep([first, answered, second])
    assert await gaps(ledger) == [second, first]
    assert await gaps(ledger, since=second.asked_at) == [second]
    assert await gaps(ledger, limit=1) == [second]


async def test_an_answer_rated_down_is_a_gap_until_its_reader_thinks_better_of_it(ledger: Ledger) -> None:
    answered = asked("answered")
    await ledger.keep([answered])
    down = Feedback(answered.id, Rating.DOWN, "  It names the wrong bell.  ")
    assert await ledger.rate(down, user_id="ann") == down
    assert await gaps(ledger) == [replace(answered, rating=Rating.DOWN, reason="It names the wrong bell.")]
    await ledger.rate(Feedback(answered.id, Rating.UP), user_id="ann")
    assert await gaps(ledger) == []


async def test_rating_the_same_way_again_changes_nothing(ledger: Ledger) -> None:
    answered = asked("answered")
    await ledger.keep([answered])
    first = Feedback(answered.id, Rating.UP, "Clear.", rated_at=BEGINNING)
    again = [ledger.rate(Feedback(answered.id, Rating.UP, "Clear."), user_id="ann") for _ in range(10)]
    assert [await ledger.rate(first, user_id="ann"), *await asyncio.gather(*again)] == [first] * 11


@pytest.mark.parametrize("user_id", ["bob", "", "Ann", "an\0n", "\ud800"])
async def test_another_readers_answer_cannot_be_rated(ledger: Ledger, user_id: str) -> None:
    refused = asked()
    await ledger.keep([refused])
    with pytest.raises(NotFound, match="no such answer"):
        await ledger.rate(Feedback(refused.id, Rating.DOWN), user_id=user_id)
    assert await gaps(ledger) == [refused]


@pytest.mark.parametrize(
    "response_id", ["0b9b7d1c-3f57-4c33-8f0e-5d6d7a1c2b3e", "", "x' OR '1'='1", "\0", "\ud800", "9" * 10_000]
)
async def test_what_was_never_answered_cannot_be_rated(ledger: Ledger, response_id: str) -> None:
    with pytest.raises(NotFound, match="no such answer"):
        await ledger.rate(Feedback(response_id, Rating.UP), user_id="ann")


async def test_what_is_asked_in_a_conversation_goes_with_it(database: Database, ledger: Ledger) -> None:
    conversations = SqlConversations(database)
    conversation = Conversation([Message("system", "Answer from the book.")], user_id="ann")
    await conversations.create(conversation)
    inside, outside = replace(asked(), conversation_id=conversation.id), asked(minutes=1)
    await ledger.keep([inside, outside])
    assert await gaps(ledger) == [outside, inside]
    await conversations.delete(conversation.id, user_id="ann")
    assert await gaps(ledger) == [outside]
    # An answer may be written down after its reader has deleted everything.
    late, other = replace(inside, id=str(uuid.uuid4())), asked(minutes=2)
    await ledger.keep([late, other])
    assert await gaps(ledger) == [other, outside]


async def test_what_no_database_can_keep_does_not_keep_the_rest_out(ledger: Ledger) -> None:
    good = asked()
    await ledger.keep([asked(question="a\0b"), good, asked(user_id="\ud800")])
    assert await gaps(ledger) == [good]


async def test_without_its_words_an_answer_can_be_rated_and_is_no_gap(ledger: Ledger) -> None:
    wordless = asked(question="")
    await ledger.keep([wordless])
    await ledger.rate(Feedback(wordless.id, Rating.DOWN), user_id="ann")
    assert await gaps(ledger) == []


async def test_answers_nobody_rated_are_forgotten_in_time(ledger: Ledger) -> None:
    old, rated, refused, fresh = (asked("answered"), asked("answered"), asked(), asked("answered", minutes=9))
    await ledger.keep([old, rated, refused, fresh])
    await ledger.rate(Feedback(rated.id, Rating.DOWN), user_id="ann")
    assert await ledger.forget(BEGINNING + timedelta(minutes=5)) == 1
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
        pytest.param("up", "a\0b", "no text", id="NUL"),
        pytest.param("up", "\ud800", "no text", id="half a character"),
    ],
)
def test_feedback_that_cannot_be_used(rating: str, reason: str, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        Feedback(str(uuid.uuid4()), Rating(rating), reason)


def test_a_reason_may_have_a_thousand_characters() -> None:
    assert len(Feedback(str(uuid.uuid4()), Rating.UP, "x" * 1000).reason) == 1000
