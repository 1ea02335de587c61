"""What is said to the database: each function is a statement or two inside a transaction that is open already.

Statements are built once. Building one takes SQLAlchemy longer than SQLite takes to run it.
"""

from __future__ import annotations

from itertools import dropwhile
from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, delete, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from bythebook.conversations import Conversation, ConversationSummary, Status, TurnState
from bythebook.conversations.conversation import count_searches
from bythebook.conversations.message import now
from bythebook.conversations.records import conversation_row, message_rows, to_conversation, turn_row
from bythebook.conversations.schema import Clock, conversations, messages, turns
from bythebook.errors import InputError, NotFound, Unavailable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy import Connection, RowMapping

    from bythebook.conversations import ConversationTurn, Message

LONGEST_TITLE = 100

_RUNNING = turns.c.state == TurnState.RUNNING.value
_OVERDUE = (turns.c.lease_until < Clock()).label("overdue")
_SUMMARY = [conversations.c[name] for name in ("id", "title", "created_at", "updated_at", "turn_count")]

_ANY_ONES = select(conversations).where(conversations.c.id == bindparam("this"))
_THEIRS = _ANY_ONES.where(conversations.c.user_id == bindparam("reader"))
_LATEST = (
    select(*_SUMMARY)
    .where(conversations.c.user_id == bindparam("reader"))
    .order_by(conversations.c.updated_at.desc(), conversations.c.id)
    .limit(bindparam("most"))
)
_SAID = (
    select(messages)
    .where(messages.c.conversation_id == bindparam("this"))
    .where(or_(messages.c.position == 0, messages.c.position >= bindparam("since")))
    .order_by(messages.c.position)
)
_TURNS = select(turns, _OVERDUE).where(turns.c.conversation_id == bindparam("this")).order_by(turns.c.number)
_RUNNING_TURN = select(turns.c.id, turns.c.owner, _OVERDUE).where(
    turns.c.conversation_id == bindparam("this"), _RUNNING
)

_FIND, _LOCK, _LOCK_ANY_ONES = _THEIRS, _THEIRS.with_for_update(), _ANY_ONES.with_for_update()
_CHANGE = update(conversations).where(conversations.c.id == bindparam("this"))
_DELETE = delete(conversations).where(conversations.c.id == bindparam("this"))
_EXPIRE = delete(conversations).where(conversations.c.updated_at < bindparam("before"))
_BEGIN = insert(turns).values(lease_until=Clock() + bindparam("lease"))
_END = update(turns).where(turns.c.id == bindparam("this"), _RUNNING)
_INTERRUPT = _END.values(state=TurnState.INTERRUPTED.value)
_INTERRUPT_ALL = (
    update(turns).where(turns.c.owner == bindparam("me"), _RUNNING).values(state=TurnState.INTERRUPTED.value)
)


def create(connection: Connection, conversation: Conversation) -> None:
    said = message_rows(conversation.messages, conversation.id, position=0)
    try:
        connection.execute(insert(conversations), conversation_row(conversation))
        connection.execute(insert(messages), said)
    except IntegrityError as exc:
        raise InputError(f"the conversation {conversation.id!r} or one of its messages is kept already.") from exc


def find(connection: Connection, conversation_id: str, *, user_id: str) -> RowMapping:
    """The reader's conversation as it is."""
    return _one(connection, _FIND, this=conversation_id, reader=user_id)


def lock(connection: Connection, conversation_id: str, *, user_id: str) -> RowMapping:
    """The reader's conversation, which nobody else changes until the transaction ends."""
    return _one(connection, _LOCK, this=conversation_id, reader=user_id)


def _one(connection: Connection, wanted: Any, **given: str) -> RowMapping:
    row: RowMapping | None = connection.execute(wanted, given).mappings().one_or_none()
    if row is None:
        raise NotFound("there is no such conversation.")
    return row


def read(connection: Connection, row: RowMapping) -> Conversation:
    """All of the conversation since it was last reset."""
    return to_conversation(row, _said(connection, row, latest=row["next_position"]))


def _said(connection: Connection, row: RowMapping, *, latest: int) -> list[RowMapping]:
    """The system message and the whole exchanges since the last reset among the `latest` messages."""
    since = max(row["history_from"], row["next_position"] - latest)
    system, *said = connection.execute(_SAID, {"this": row["id"], "since": since}).mappings()
    return [system, *dropwhile(lambda message: message["role"] != "user", said)]


def list_latest(connection: Connection, *, user_id: str, limit: int) -> list[ConversationSummary]:
    rows = connection.execute(_LATEST, {"reader": user_id, "most": limit}).mappings()
    return [ConversationSummary(**row) for row in rows]


def list_turns(connection: Connection, conversation_id: str) -> list[RowMapping]:
    """The turns of a conversation, each with whether its lease is `overdue`."""
    return list(connection.execute(_TURNS, {"this": conversation_id}).mappings())


def running_turn(connection: Connection, conversation_id: str) -> RowMapping | None:
    return connection.execute(_RUNNING_TURN, {"this": conversation_id}).mappings().one_or_none()


def begin(connection: Connection, turn: ConversationTurn, row: RowMapping, *, owned: dict[str, Any]) -> Conversation:
    """Keep a turn that begins in a locked conversation, and give that conversation as a model is shown it."""
    # Exchanges beyond max_history are not shown, and with the new question not even one as long as that.
    said = _said(connection, row, latest=row["max_history"])
    connection.execute(_BEGIN, turn_row(turn) | owned)
    noted = {
        "last_number": turn.number,
        "title": row["title"] or " ".join(turn.question.split())[:LONGEST_TITLE],
        "status": Status.ACTIVE.value,
        "updated_at": _later(row),
    }
    connection.execute(_CHANGE, {"this": row["id"], **noted})
    return to_conversation({**row, **noted}, said)


def end(connection: Connection, turn: ConversationTurn) -> RowMapping:
    """Keep how a running turn ended, and lock its conversation."""
    row = _one(connection, _LOCK_ANY_ONES, this=turn.conversation_id)
    if not connection.execute(_END, {"this": turn.id, **turn_row(turn)}).rowcount:
        raise Unavailable(f"turn {turn.number} is no longer running, so its answer was not kept. Ask again.")
    return row


def append(connection: Connection, turn: ConversationTurn, row: RowMapping, *, exchange: Sequence[Message]) -> None:
    """Keep what was said in a turn of a locked conversation."""
    said = message_rows(exchange, row["id"], position=row["next_position"])
    connection.execute(insert(messages), [each | {"turn_id": turn.id} for each in said])
    # Where passages are fetched before the model is asked, no tool message tells of the search.
    searches = count_searches(exchange) or bool(turn.retrieval_results)
    grown = {
        "status": Status.COMPLETED.value,
        "turn_count": row["turn_count"] + 1,
        "retrieval_count": row["retrieval_count"] + searches,
        "next_position": row["next_position"] + len(said),
        "last_message_at": exchange[-1].timestamp,
        "updated_at": _later(row),
    }
    connection.execute(_CHANGE, {"this": row["id"], **grown})


def interrupt(connection: Connection, turn_id: str) -> None:
    connection.execute(_INTERRUPT, {"this": turn_id})


def interrupt_all(connection: Connection, *, owner: str) -> None:
    connection.execute(_INTERRUPT_ALL, {"me": owner})


def reset(connection: Connection, row: RowMapping) -> None:
    status = Status.CREATED if row["status"] == Status.CREATED else Status.ACTIVE
    afresh = {"history_from": row["next_position"], "status": status.value, "updated_at": _later(row)}
    connection.execute(_CHANGE, {"this": row["id"], **afresh})


def forget(connection: Connection, row: RowMapping) -> None:
    connection.execute(_DELETE, {"this": row["id"]})


def expire(connection: Connection, before: datetime) -> int:
    return connection.execute(_EXPIRE, {"before": before}).rowcount


def _later(row: RowMapping) -> datetime:
    """Now, unless the clock of another machine was there already."""
    before: datetime = row["updated_at"]
    return max(before, now())
