"""Conversations in a SQL database. SQLite and PostgreSQL use the same statements.

A turn is leased to the process that began it. Another process marks it interrupted when the owner has certainly died,
which is detected immediately on the same machine, or when the lease has expired. The lease is longer than any answer
may take, so it needs no renewal. If an answer still arrives later, its turn is no longer running and it is discarded.

Functions of a connection run inside an open transaction. Statements are built once: building one in SQLAlchemy takes
longer than running it in SQLite.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, fields, replace
from datetime import datetime
from itertools import dropwhile
from typing import Any, TypeVar

from sqlalchemy import Connection, RowMapping, and_, bindparam, delete, func, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from bythebook.conversations import (
    MOST_TURNS,
    Conversation,
    ConversationStatus,
    ConversationSummary,
    ConversationTurn,
    Message,
    TurnState,
)
from bythebook.conversations.locks import LeaseOwner, TurnQueues
from bythebook.conversations.models import count_searches, is_storable, is_uuid4, to_utc, utc_now
from bythebook.database.engine import Database, open_database
from bythebook.database.schema import Clock, conversations, messages, turns
from bythebook.errors import ContextOverflow, InputError, NotFound, Unavailable
from bythebook.serialization import from_json

T = TypeVar("T")

LEASE_SECONDS = 120.0
"""Maximum duration of a turn: longer than the deadline of any answer."""

PATIENCE_SECONDS = 30.0
"""How long a question waits for earlier turns."""

LOOK_AGAIN_SECONDS = 0.05
"""Polling interval for turns of other processes."""


@asynccontextmanager
async def open_conversations(
    url: str, *, lease: float = LEASE_SECONDS, patience: float = PATIENCE_SECONDS
) -> AsyncIterator["SqlConversations"]:
    """Open the database at this URL, and create or migrate its tables if needed."""
    async with open_database(url) as database:
        store = SqlConversations(database, lease=lease, patience=patience)
        try:
            yield store
        finally:
            await store.close()


class SqlConversations:
    """Conversations, turns and messages in three tables."""

    def __init__(self, database: Database, *, lease: float = LEASE_SECONDS, patience: float = PATIENCE_SECONDS) -> None:
        self._database = database
        self._lease = lease
        self._patience = patience
        self._owner = str(LeaseOwner.current())
        self._running: set[str] = set()
        self._queues = TurnQueues()

    async def close(self) -> None:
        """Mark the unfinished turns of this process as interrupted."""
        if self._running:
            # Without the database, other processes detect it themselves once this one has ended.
            with suppress(Unavailable):
                await self._database.write(lambda connection: connection.execute(_INTERRUPT_ALL, {"me": self._owner}))

    async def create(self, conversation: Conversation) -> None:
        if not conversation.messages:
            raise InputError("a conversation starts with a system message.")
        await self._database.write(lambda connection: _create(connection, conversation))

    async def load(self, conversation_id: str, *, user_id: str) -> Conversation:
        _check(conversation_id, user_id)

        def read(connection: Connection) -> Conversation:
            row = _one(connection, _THEIRS, this=conversation_id, reader=user_id)
            return _to_conversation(row, _message_rows(connection, row, latest=row["next_position"]))

        return await self._database.read(read)

    async def turns(self, conversation_id: str, *, user_id: str) -> list[ConversationTurn]:
        _check(conversation_id, user_id)

        def list_rows(connection: Connection) -> list[RowMapping]:
            _one(connection, _THEIRS, this=conversation_id, reader=user_id)
            return list(connection.execute(_TURNS, {"this": conversation_id}).mappings())

        rows = await self._database.read(list_rows)
        if any(row["state"] == TurnState.RUNNING and self._has_dead_owner(row) for row in rows):
            await self._database.write(lambda connection: self._is_busy(connection, conversation_id))
            rows = await self._database.read(list_rows)
        return [_to_turn(row) for row in rows]

    async def latest(self, *, user_id: str, limit: int, after: str = "") -> list[ConversationSummary]:
        if not is_storable(user_id) or not is_storable(after):
            return []

        def list_rows(connection: Connection) -> list[RowMapping]:
            wanted = {"reader": user_id, "most": limit}
            if not after:
                return list(connection.execute(_LATEST, wanted).mappings())
            since = _one(connection, _THEIRS, this=after, reader=user_id)["updated_at"]
            return list(connection.execute(_LATER, wanted | {"since": since, "this": after}).mappings())

        return [ConversationSummary(**row) for row in await self._database.read(list_rows)]

    async def begin_turn(
        self, conversation_id: str, question: str, *, user_id: str, most_turns: int = MOST_TURNS
    ) -> tuple[ConversationTurn, Conversation]:
        _check(conversation_id, user_id)
        turn = ConversationTurn(conversation_id, 1, question)
        owned = {"owner": self._owner, "lease": self._lease}

        def begun(connection: Connection, row: RowMapping) -> tuple[ConversationTurn, Conversation]:
            since = {"this": row["id"], "since": row["history_from"]}
            if (connection.scalar(_COUNT_QUESTIONS, since) or 0) >= most_turns:
                raise ContextOverflow(f"this conversation has had its {most_turns} turns. Reset it or start a new one.")
            started = replace(turn, number=row["last_number"] + 1, created_at=utc_now())
            return started, _begin(connection, started, row, owned=owned)

        self._running.add(turn.id)
        try:
            return await self._when_free(conversation_id, begun, user_id=user_id)
        except BaseException:
            # A cancelled transaction may have committed the turn, which nothing would finish.
            await self._give_up(turn)
            raise

    async def finish_turn(self, turn: ConversationTurn, messages: Sequence[Message]) -> None:
        if turn.state is TurnState.RUNNING:
            raise InputError(f"turn {turn.number} is still running: finish it as completed or failed.")
        if turn.state is not TurnState.COMPLETED and messages:
            raise InputError(f"a {turn.state} turn keeps no messages.")

        def finish(connection: Connection) -> None:
            row = _end(connection, turn)
            if turn.state is TurnState.COMPLETED:
                _append(connection, turn, row, exchange=_check_exchange(messages, since=row["last_message_at"]))

        try:
            await self._database.write(finish)
        except InputError:
            raise  # the caller may still finish the turn another way
        except BaseException:
            await self._give_up(turn)
            raise
        self._running.discard(turn.id)
        self._queues.wake(turn.conversation_id)

    async def record(self, conversation: Conversation, turn: ConversationTurn, messages: Sequence[Message]) -> None:
        if turn.state is not TurnState.COMPLETED:
            raise InputError(f"a conversation begins with a completed turn, not a {turn.state} one.")
        said = _check_exchange(messages, since=conversation.created_at)
        owned = {"owner": self._owner, "lease": self._lease}

        def insert_all(connection: Connection) -> None:
            _create(connection, conversation)
            row = _one(connection, _ANY_ONES, this=conversation.id)
            _begin(connection, turn, row, owned=owned)
            _append(connection, turn, {**row, "last_number": turn.number}, exchange=said)

        await self._database.write(insert_all)

    async def reset(self, conversation_id: str, *, user_id: str) -> None:
        _check(conversation_id, user_id)
        await self._when_free(conversation_id, _reset, user_id=user_id)

    async def delete(self, conversation_id: str, *, user_id: str) -> None:
        _check(conversation_id, user_id)

        def remove(connection: Connection) -> None:
            row = _one(connection, _LOCK, this=conversation_id, reader=user_id)
            connection.execute(_DELETE, {"this": row["id"]})

        await self._database.write(remove)

    async def expire(self, before: datetime) -> int:
        parameters = {"before": to_utc(before)}
        return await self._database.write(lambda connection: connection.execute(_EXPIRE, parameters).rowcount)

    async def _when_free(self, conversation_id: str, act: Callable[[Connection, RowMapping], T], *, user_id: str) -> T:
        """Run `act` while no turn of the conversation is running, in order of arrival."""

        def attempt(connection: Connection) -> tuple[T] | None:
            row = _one(connection, _LOCK, this=conversation_id, reader=user_id)
            return None if self._is_busy(connection, conversation_id) else (act(connection, row),)

        try:
            async with asyncio.timeout(self._patience), self._queues.acquire(conversation_id) as queue:
                while not (done := await self._database.write(attempt)):
                    await queue.wait(LOOK_AGAIN_SECONDS)
                return done[0]
        except TimeoutError as exc:
            raise Unavailable("an earlier question of this conversation is still being answered.") from exc

    async def _give_up(self, turn: ConversationTurn) -> None:
        """Mark a turn that this process gives up as interrupted, if it was begun."""
        self._running.discard(turn.id)
        self._queues.wake(turn.conversation_id)
        with suppress(Unavailable):
            await self._database.write(lambda connection: connection.execute(_INTERRUPT, {"this": turn.id}))

    def _is_busy(self, connection: Connection, conversation_id: str) -> bool:
        """True if a turn is running. A turn whose owner has died is marked interrupted."""
        row = connection.execute(_RUNNING_TURN, {"this": conversation_id}).mappings().one_or_none()
        if row is None or not self._has_dead_owner(row):
            return row is not None
        connection.execute(_INTERRUPT, {"this": row["id"]})
        return False

    def _has_dead_owner(self, row: RowMapping) -> bool:
        if row["overdue"]:
            return True
        if row["owner"] == self._owner:
            return row["id"] not in self._running
        return LeaseOwner.parse(row["owner"]).is_dead()


def _check(conversation_id: str, user_id: str) -> None:
    """An id that cannot be stored is not found, whether or not the database is reachable."""
    if not is_uuid4(conversation_id) or not is_storable(user_id):
        raise NotFound("there is no such conversation.")


def _check_exchange(said: Sequence[Message], *, since: datetime) -> list[Message]:
    """Check that the messages are one question with its answer, none older than `since`."""
    exchange = Conversation([Message("system", "The exchange begins.", timestamp=since)])
    for message in said:
        exchange.add_message(message)
    if exchange.turn_count != 1 or exchange.status is not ConversationStatus.COMPLETED:
        raise InputError("the messages of a completed turn begin with its question and end with its answer.")
    return exchange.messages[1:]


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
_LATER = _LATEST.where(
    or_(
        conversations.c.updated_at < bindparam("since"),
        and_(conversations.c.updated_at == bindparam("since"), conversations.c.id > bindparam("this")),
    )
)
_COUNT_QUESTIONS = select(func.count()).where(
    messages.c.conversation_id == bindparam("this"),
    messages.c.position >= bindparam("since"),
    messages.c.role == "user",
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

_LOCK, _LOCK_ANY_ONES = _THEIRS.with_for_update(), _ANY_ONES.with_for_update()
_CHANGE = update(conversations).where(conversations.c.id == bindparam("this"))
_DELETE = delete(conversations).where(conversations.c.id == bindparam("this"))
_EXPIRE = delete(conversations).where(conversations.c.updated_at < bindparam("before"))
_BEGIN = insert(turns).values(lease_until=Clock() + bindparam("lease"))
_END = update(turns).where(turns.c.id == bindparam("this"), _RUNNING)
_INTERRUPT = _END.values(state=TurnState.INTERRUPTED.value)
_INTERRUPT_ALL = (
    update(turns).where(turns.c.owner == bindparam("me"), _RUNNING).values(state=TurnState.INTERRUPTED.value)
)


def _create(connection: Connection, conversation: Conversation) -> None:
    messages_said = _to_message_rows(conversation.messages, conversation.id, position=0)
    latest = max(conversation.created_at, *(message.timestamp for message in conversation.messages))
    row = {name: getattr(conversation, name) for name in _CONVERSATION_FIELDS} | {
        "status": conversation.status.value,
        "title": "",
        "last_number": 0,
        "next_position": len(messages_said),
        "history_from": 1,
        "updated_at": latest,
        "last_message_at": latest,
    }
    try:
        connection.execute(insert(conversations), row)
        connection.execute(insert(messages), messages_said)
    except IntegrityError as exc:
        raise InputError(f"the conversation {conversation.id!r} or one of its messages is kept already.") from exc


def _one(connection: Connection, wanted: Any, **given: str) -> RowMapping:
    """The only conversation that a statement selects."""
    row: RowMapping | None = connection.execute(wanted, given).mappings().one_or_none()
    if row is None:
        raise NotFound("there is no such conversation.")
    return row


def _message_rows(connection: Connection, row: RowMapping, *, latest: int) -> list[RowMapping]:
    """The system message and the whole exchanges since the last reset among the `latest` messages."""
    since = max(row["history_from"], row["next_position"] - latest)
    system, *said = connection.execute(_SAID, {"this": row["id"], "since": since}).mappings()
    return [system, *dropwhile(lambda message: message["role"] != "user", said)]


def _begin(connection: Connection, turn: ConversationTurn, row: RowMapping, *, owned: dict[str, Any]) -> Conversation:
    """Store a new turn in a locked conversation, and return the conversation as the model will see it."""
    # Exchanges beyond max_history are not shown. The new question takes one more message.
    said = _message_rows(connection, row, latest=row["max_history"])
    connection.execute(_BEGIN, _to_row(turn) | owned)
    noted = {
        "last_number": turn.number,
        "title": row["title"] or " ".join(turn.question.split())[:LONGEST_TITLE],
        "status": ConversationStatus.ACTIVE.value,
        "updated_at": _later(row),
    }
    connection.execute(_CHANGE, {"this": row["id"], **noted})
    return _to_conversation({**row, **noted}, said)


def _end(connection: Connection, turn: ConversationTurn) -> RowMapping:
    """Store the result of a running turn, and lock its conversation."""
    row = _one(connection, _LOCK_ANY_ONES, this=turn.conversation_id)
    if not connection.execute(_END, {"this": turn.id, **_to_row(turn)}).rowcount:
        raise Unavailable(f"turn {turn.number} is no longer running, so its answer was not kept. Ask again.")
    return row


def _append(
    connection: Connection, turn: ConversationTurn, row: Mapping[str, Any] | RowMapping, *, exchange: Sequence[Message]
) -> None:
    """Append the messages of a turn to a locked conversation."""
    said = _to_message_rows(exchange, row["id"], position=row["next_position"])
    connection.execute(insert(messages), [each | {"turn_id": turn.id} for each in said])
    # In prefetch mode no tool message records the search.
    searches = count_searches(exchange) or bool(turn.retrieval_results)
    grown = {
        "status": ConversationStatus.COMPLETED.value,
        "turn_count": row["turn_count"] + 1,
        "retrieval_count": row["retrieval_count"] + searches,
        "total_tokens_used": row["total_tokens_used"] + ((turn.response or {}).get("tokens_used") or 0),
        "next_position": row["next_position"] + len(said),
        "last_message_at": exchange[-1].timestamp,
        "updated_at": _later(row),
    }
    connection.execute(_CHANGE, {"this": row["id"], **grown})


def _reset(connection: Connection, row: RowMapping) -> None:
    status = ConversationStatus.CREATED if row["status"] == ConversationStatus.CREATED else ConversationStatus.ACTIVE
    afresh = {"history_from": row["next_position"], "status": status.value, "updated_at": _later(row)}
    connection.execute(_CHANGE, {"this": row["id"], **afresh})


def _later(row: Mapping[str, Any] | RowMapping) -> datetime:
    """The current time, or the latest stored time if another machine's clock is ahead."""
    before: datetime = row["updated_at"]
    return max(before, utc_now())


# A column has the name of its field.
_CONVERSATION_FIELDS = [known.name for known in fields(Conversation) if known.name != "messages"]


def _to_row(record: Message | ConversationTurn) -> dict[str, Any]:
    """The fields of a record by column. Tuples and mappings are stored as JSON."""
    return {known.name: _to_column(getattr(record, known.name)) for known in fields(record)}


def _to_column(value: Any) -> Any:
    if isinstance(value, TurnState):
        return value.value
    if not isinstance(value, tuple | Mapping):
        return value
    try:
        return json.dumps(dict(value) if isinstance(value, Mapping) else value, default=asdict)
    except (TypeError, ValueError) as exc:
        raise InputError(f"citations, metadata and responses are kept as JSON: {exc}.") from exc


def _to_message_rows(said: Iterable[Message], conversation_id: str, *, position: int) -> list[dict[str, Any]]:
    """Rows of consecutive messages, starting at `position`."""
    return [
        {**_to_row(message), "conversation_id": conversation_id, "turn_id": None, "position": number}
        for number, message in enumerate(said, position)
    ]


def _to_conversation(row: Mapping[str, Any] | RowMapping, said: Sequence[RowMapping]) -> Conversation:
    stored = {name: row[name] for name in _CONVERSATION_FIELDS}
    status = ConversationStatus(row["status"])
    return Conversation(**stored | {"messages": [_to_message(each) for each in said], "status": status})


def _to_message(row: RowMapping) -> Message:
    parsed = {name: json.loads(row[name]) for name in ("tool_calls", "citations", "metadata")}
    message: Message = from_json(Message, {**row, **parsed})
    return message


def _to_turn(row: RowMapping) -> ConversationTurn:
    parsed = {name: json.loads(row[name]) for name in ("retrieval_results", "response") if row[name] is not None}
    turn: ConversationTurn = from_json(ConversationTurn, {**row, **parsed})
    return turn
