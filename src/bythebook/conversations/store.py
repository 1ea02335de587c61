"""Conversations in a SQL database. The same statements serve SQLite and PostgreSQL.

A turn belongs to the process that began it until its lease ends. Another process takes it for interrupted when the
owner is certainly gone, which can be told at once on the same machine, or when the lease is over. The lease is longer
than any answer may take, so nothing has to be renewed; and should an answer come later all the same, it finds its turn
no longer running and is not kept.

What is said to the database: each function is a statement or two inside a transaction that is open already.

Statements are built once. Building one takes SQLAlchemy longer than SQLite takes to run it.

Our nouns as rows of the tables, and back.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, fields, replace
from itertools import dropwhile
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import bindparam, delete, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from bythebook.conversations import (
    Conversation,
    ConversationSummary,
    ConversationTurn,
    Message,
    Status,
    ToolCall,
    TurnState,
)
from bythebook.conversations.locks import Owner, Queues
from bythebook.conversations.models import count_searches, in_utc, is_storable, is_uuid4, now
from bythebook.database.engine import open_database
from bythebook.database.schema import Clock, conversations, messages, turns
from bythebook.errors import InputError, NotFound, Unavailable
from bythebook.retrieval import RetrievalResult

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import Connection, RowMapping

    from bythebook.database.engine import Database


T = TypeVar("T")

LEASE_SECONDS = 120.0
"""How long a turn may run: more than the deadline of any answer."""

PATIENCE_SECONDS = 30.0
"""How long a question waits for those before it."""

LOOK_AGAIN_SECONDS = 0.05
"""How often to look for a turn of another process to end."""


@asynccontextmanager
async def open_conversations(
    url: str, *, lease: float = LEASE_SECONDS, patience: float = PATIENCE_SECONDS
) -> AsyncIterator[SqlConversations]:
    """Conversations in the database at this URL, made or brought up to date if need be."""
    async with open_database(url) as database:
        store = SqlConversations(database, lease=lease, patience=patience)
        try:
            yield store
        finally:
            await store.close()


class SqlConversations:
    """Conversations, turns and messages in three tables of a database."""

    def __init__(self, database: Database, *, lease: float = LEASE_SECONDS, patience: float = PATIENCE_SECONDS) -> None:
        self._database = database
        self._lease = lease
        self._patience = patience
        self._owner = str(Owner.here())
        self._running: set[str] = set()
        self._queues = Queues()

    async def close(self) -> None:
        """Give up the turns that were begun here and not finished."""
        if self._running:
            # Without the database others find out by themselves: this process is gone soon.
            with suppress(Unavailable):
                await self._database.write(lambda connection: interrupt_all(connection, owner=self._owner))

    async def create(self, conversation: Conversation) -> None:
        if not conversation.messages:
            raise InputError("a conversation starts with a system message.")
        await self._database.write(lambda connection: create(connection, conversation))

    async def load(self, conversation_id: str, *, user_id: str) -> Conversation:
        _check(conversation_id, user_id)
        return await self._database.read(
            lambda connection: read(connection, find(connection, conversation_id, user_id=user_id))
        )

    async def turns(self, conversation_id: str, *, user_id: str) -> list[ConversationTurn]:
        _check(conversation_id, user_id)

        def listed(connection: Connection) -> list[RowMapping]:
            find(connection, conversation_id, user_id=user_id)
            return list_turns(connection, conversation_id)

        rows = await self._database.read(listed)
        if any(row["state"] == TurnState.RUNNING and self._is_abandoned(row) for row in rows):
            await self._database.write(lambda connection: self._is_busy(connection, conversation_id))
            rows = await self._database.read(listed)
        return [to_turn(row) for row in rows]

    async def latest(self, *, user_id: str, limit: int) -> list[ConversationSummary]:
        if not is_storable(user_id):
            return []
        return await self._database.read(lambda connection: list_latest(connection, user_id=user_id, limit=limit))

    async def begin_turn(
        self, conversation_id: str, question: str, *, user_id: str
    ) -> tuple[ConversationTurn, Conversation]:
        _check(conversation_id, user_id)
        turn = ConversationTurn(conversation_id, 1, question)
        owned = {"owner": self._owner, "lease": self._lease}

        def begun(connection: Connection, row: RowMapping) -> tuple[ConversationTurn, Conversation]:
            started = replace(turn, number=row["last_number"] + 1, created_at=now())
            return started, begin(connection, started, row, owned=owned)

        self._running.add(turn.id)
        try:
            return await self._when_free(conversation_id, begun, user_id=user_id)
        except BaseException:
            # Cancelled, perhaps, with the turn in the database already: nobody will finish it.
            await self._give_up(turn)
            raise

    async def finish_turn(self, turn: ConversationTurn, messages: Sequence[Message]) -> None:
        if turn.state is TurnState.RUNNING:
            raise InputError(f"turn {turn.number} is still running: finish it as completed or failed.")
        if turn.state is not TurnState.COMPLETED and messages:
            raise InputError(f"a {turn.state} turn keeps no messages.")

        def finished(connection: Connection) -> None:
            row = end(connection, turn)
            if turn.state is TurnState.COMPLETED:
                append(connection, turn, row, exchange=_exchange(messages, since=row["last_message_at"]))

        try:
            await self._database.write(finished)
        except InputError:
            raise  # The turn is still theirs, to finish another way.
        except BaseException:
            await self._give_up(turn)
            raise
        self._running.discard(turn.id)
        self._queues.stir(turn.conversation_id)

    async def reset(self, conversation_id: str, *, user_id: str) -> None:
        _check(conversation_id, user_id)
        await self._when_free(conversation_id, reset, user_id=user_id)

    async def delete(self, conversation_id: str, *, user_id: str) -> None:
        _check(conversation_id, user_id)
        await self._database.write(
            lambda connection: forget(connection, lock(connection, conversation_id, user_id=user_id))
        )

    async def expire(self, before: datetime) -> int:
        return await self._database.write(lambda connection: expire(connection, in_utc(before)))

    async def _when_free(self, conversation_id: str, act: Callable[[Connection, RowMapping], T], *, user_id: str) -> T:
        """Do this while no turn of the conversation is running, after those who came first."""

        def attempt(connection: Connection) -> tuple[T] | None:
            row = lock(connection, conversation_id, user_id=user_id)
            return None if self._is_busy(connection, conversation_id) else (act(connection, row),)

        try:
            async with asyncio.timeout(self._patience), self._queues.first_in(conversation_id) as queue:
                while not (done := await self._database.write(attempt)):
                    await queue.pause(LOOK_AGAIN_SECONDS)
                return done[0]
        except TimeoutError as exc:
            raise Unavailable("an earlier question of this conversation is still being answered.") from exc

    async def _give_up(self, turn: ConversationTurn) -> None:
        """Leave nobody waiting for a turn that is not answered here any more, if it was ever begun."""
        self._running.discard(turn.id)
        self._queues.stir(turn.conversation_id)
        with suppress(Unavailable):
            await self._database.write(lambda connection: interrupt(connection, turn.id))

    def _is_busy(self, connection: Connection, conversation_id: str) -> bool:
        """Whether a turn is being answered. One that nobody answers any more is marked interrupted."""
        row = running_turn(connection, conversation_id)
        if row is None or not self._is_abandoned(row):
            return row is not None
        interrupt(connection, row["id"])
        return False

    def _is_abandoned(self, row: RowMapping) -> bool:
        if row["owner"] == self._owner:
            return row["id"] not in self._running
        return bool(row["overdue"]) or Owner.parse(row["owner"]).is_gone()


def _check(conversation_id: str, user_id: str) -> None:
    """What no conversation is kept under is absent, whether or not a database could be asked for it."""
    if not is_uuid4(conversation_id) or not is_storable(user_id):
        raise NotFound("there is no such conversation.")


def _exchange(said: Sequence[Message], *, since: datetime) -> list[Message]:
    """These messages, if they are one question with its answer and what came between, none before `since`."""
    exchange = Conversation([Message("system", "The exchange begins.", timestamp=since)])
    for message in said:
        exchange.add_message(message)
    if exchange.turn_count != 1 or exchange.status is not Status.COMPLETED:
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


_RESULT_FIELDS = frozenset(known.name for known in fields(RetrievalResult))


def conversation_row(conversation: Conversation) -> dict[str, Any]:
    moments = [conversation.created_at, *(message.timestamp for message in conversation.messages)]
    return {
        "id": conversation.id,
        "user_id": conversation.user_id,
        "model": conversation.model,
        "title": "",
        "status": conversation.status.value,
        "max_history": conversation.max_history,
        "turn_count": conversation.turn_count,
        "retrieval_count": conversation.retrieval_count,
        "last_number": 0,
        "next_position": len(conversation.messages),
        "history_from": 1,
        "created_at": conversation.created_at,
        "updated_at": max(moments),
        "last_message_at": max(moments),
    }


def to_conversation(row: RowMapping | Mapping[str, Any], said: Sequence[RowMapping]) -> Conversation:
    return Conversation(
        messages=[_to_message(each) for each in said],
        id=row["id"],
        user_id=row["user_id"],
        model=row["model"],
        max_history=row["max_history"],
        created_at=row["created_at"],
        status=Status(row["status"]),
        turn_count=row["turn_count"],
        retrieval_count=row["retrieval_count"],
    )


def message_rows(messages: Iterable[Message], conversation_id: str, *, position: int) -> list[dict[str, Any]]:
    """The rows of messages that follow each other from `position`."""
    return [
        {
            "id": message.id,
            "conversation_id": conversation_id,
            "turn_id": None,
            "position": number,
            "role": message.role,
            "content": message.content,
            "timestamp": message.timestamp,
            "citations": _written([dict(citation) for citation in message.citations]),
            "token_count": message.token_count,
            "tool_calls": _written([asdict(call) for call in message.tool_calls]),
            "tool_call_id": message.tool_call_id,
            "name": message.name,
            "metadata": _written(dict(message.metadata)),
        }
        for number, message in enumerate(messages, position)
    ]


def _to_message(row: RowMapping) -> Message:
    return Message(
        role=row["role"],
        content=row["content"],
        id=row["id"],
        timestamp=row["timestamp"],
        citations=tuple(json.loads(row["citations"])),
        token_count=row["token_count"],
        tool_calls=tuple(ToolCall(**call) for call in json.loads(row["tool_calls"])),
        tool_call_id=row["tool_call_id"],
        name=row["name"],
        metadata=json.loads(row["metadata"]),
    )


def turn_row(turn: ConversationTurn) -> dict[str, Any]:
    return {
        "id": turn.id,
        "conversation_id": turn.conversation_id,
        "number": turn.number,
        "question": turn.question,
        "standalone_question": turn.standalone_question,
        "retrieval_results": _written([asdict(result) for result in turn.retrieval_results]),
        "response": None if turn.response is None else _written(dict(turn.response)),
        "state": turn.state.value,
        "error": turn.error,
        "created_at": turn.created_at,
        "duration_seconds": turn.duration_seconds,
    }


def to_turn(row: RowMapping) -> ConversationTurn:
    return ConversationTurn(
        conversation_id=row["conversation_id"],
        number=row["number"],
        question=row["question"],
        standalone_question=row["standalone_question"],
        retrieval_results=tuple(_to_result(each) for each in json.loads(row["retrieval_results"])),
        response=None if row["response"] is None else json.loads(row["response"]),
        state=TurnState(row["state"]),
        error=row["error"],
        created_at=row["created_at"],
        duration_seconds=row["duration_seconds"],
        id=row["id"],
    )


def _to_result(stored: dict[str, Any]) -> RetrievalResult:
    """A result as it was stored; a field it no longer has is passed over, one it has gained since takes its default."""
    known = {name: value for name, value in stored.items() if name in _RESULT_FIELDS}
    return RetrievalResult(**known | {"heading_hierarchy": tuple(known["heading_hierarchy"])})


def _written(value: object) -> str:
    try:
        return json.dumps(value)
    except (TypeError, ValueError) as exc:
        raise InputError(f"citations, metadata and responses are kept as JSON: {exc}.") from exc
