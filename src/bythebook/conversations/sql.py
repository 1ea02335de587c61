"""Conversations in a SQL database. The same statements serve SQLite and PostgreSQL.

A turn belongs to the process that began it until its lease ends. Another process takes it for interrupted when the
owner is certainly gone, which can be told at once on the same machine, or when the lease is over. The lease is longer
than any answer may take, so nothing has to be renewed; and should an answer come later all the same, it finds its turn
no longer running and is not kept.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from itertools import dropwhile
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import delete, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from bythebook.conversations import (
    Conversation,
    ConversationSummary,
    ConversationTurn,
    Message,
    Status,
    TurnState,
)
from bythebook.conversations.conversation import count_searches, is_uuid4
from bythebook.conversations.database import open_database
from bythebook.conversations.message import is_storable, now
from bythebook.conversations.owner import Owner
from bythebook.conversations.queues import Queues
from bythebook.conversations.records import conversation_row, message_rows, to_conversation, to_turn, turn_row
from bythebook.conversations.schema import conversations, messages, turns
from bythebook.errors import InputError, NotFound, Unavailable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import RowMapping, Select, Update
    from sqlalchemy.ext.asyncio import AsyncConnection

    from bythebook.conversations.database import Database

T = TypeVar("T")

_ABSENT = "there is no such conversation."

LONGEST_TITLE = 100
LOOK_AGAIN_SECONDS = 0.05
"""How often to look for a turn of another process to end."""


@asynccontextmanager
async def open_conversations(
    url: str, *, lease: float = 120.0, patience: float = 30.0
) -> AsyncIterator[SqlConversations]:
    """Conversations in the database at this URL, made or brought up to date if need be.

    `lease` is how many seconds a turn may run, and must be more than the deadline of an answer; `patience` is how many
    a question waits for those before it.
    """
    async with open_database(url) as database:
        store = SqlConversations(database, lease=lease, patience=patience)
        try:
            yield store
        finally:
            await store.close()


class SqlConversations:
    """Conversations, turns and messages in three tables."""

    def __init__(self, database: Database, *, lease: float, patience: float) -> None:
        self._database = database
        self._lease = lease
        self._patience = patience
        self._owner = Owner.here()
        self._running: set[str] = set()
        self._queues = Queues()

    async def close(self) -> None:
        """Give up the turns that were begun here and not finished."""
        if self._running:
            ours = (turns.c.owner == str(self._owner)) & (turns.c.state == TurnState.RUNNING.value)
            # Without the database others find out by themselves: this process is gone soon.
            with suppress(Unavailable):
                async with self._database.writing() as connection:
                    await connection.execute(update(turns).where(ours).values(state=TurnState.INTERRUPTED.value))

    async def create(self, conversation: Conversation) -> None:
        said = message_rows(conversation.messages, conversation.id, position=0)
        if not said:
            raise InputError("a conversation starts with a system message.")
        async with self._database.writing() as connection:
            try:
                await connection.execute(insert(conversations), conversation_row(conversation))
                await connection.execute(insert(messages), said)
            except IntegrityError as exc:
                raise InputError(f"there is a conversation {conversation.id!r} already.") from exc

    async def load(self, conversation_id: str, *, user_id: str) -> Conversation:
        async with self._database.reading() as connection:
            row = await _one(connection, _theirs(conversation_id, user_id))
            return to_conversation(row, await _said(connection, row, latest=row["next_position"]))

    async def turns(self, conversation_id: str, *, user_id: str) -> list[ConversationTurn]:
        async with self._database.reading() as connection:
            await _one(connection, _theirs(conversation_id, user_id))
            rows = await self._turns(connection, conversation_id)
        if any(row["state"] == TurnState.RUNNING and self._is_abandoned(row) for row in rows):
            async with self._database.writing() as connection:
                await self._is_busy(connection, conversation_id)
                rows = await self._turns(connection, conversation_id)
        return [to_turn(row) for row in rows]

    async def latest(self, *, user_id: str, limit: int) -> list[ConversationSummary]:
        if not is_storable(user_id):
            return []
        shown = [conversations.c[name] for name in ("id", "title", "created_at", "updated_at", "turn_count")]
        newest = select(*shown).where(conversations.c.user_id == user_id)
        newest = newest.order_by(conversations.c.updated_at.desc(), conversations.c.id).limit(limit)
        async with self._database.reading() as connection:
            return [ConversationSummary(**row) for row in (await connection.execute(newest)).mappings()]

    async def begin_turn(
        self, conversation_id: str, question: str, *, user_id: str
    ) -> tuple[ConversationTurn, Conversation]:
        turn = ConversationTurn(conversation_id, 1, question)

        async def begin(connection: AsyncConnection, row: RowMapping) -> tuple[ConversationTurn, Conversation]:
            begun = replace(turn, number=row["last_number"] + 1, created_at=now())
            said = await _said(connection, row, latest=row["max_history"])
            return begun, to_conversation(await self._insert(connection, begun, row), said)

        begun, conversation = await self._when_free(conversation_id, begin, user_id=user_id)
        self._running.add(begun.id)
        return begun, conversation

    async def finish_turn(self, turn: ConversationTurn, messages: Sequence[Message]) -> None:
        if turn.state is TurnState.RUNNING:
            raise InputError(f"turn {turn.number} is still running: finish it as completed, failed or interrupted.")
        if turn.state is not TurnState.COMPLETED and messages:
            raise InputError(f"a {turn.state} turn keeps no messages.")
        try:
            async with self._database.writing() as connection:
                row = await _one(connection, _any_ones(turn.conversation_id).with_for_update())
                await self._end(connection, turn)
                if turn.state is TurnState.COMPLETED:
                    await _append(connection, turn, row=row, exchange=_exchange(messages, since=row["last_message_at"]))
        finally:
            # However this went, nobody here is answering any more: what is still running in the database is abandoned.
            self._running.discard(turn.id)
            self._queues.stir(turn.conversation_id)

    async def reset(self, conversation_id: str, *, user_id: str) -> None:
        async def clear(connection: AsyncConnection, row: RowMapping) -> None:
            status = Status.CREATED if row["status"] == Status.CREATED else Status.ACTIVE
            afresh = {"history_from": row["next_position"], "status": status.value, "updated_at": _later(row)}
            await connection.execute(_changing(conversation_id).values(afresh))

        await self._when_free(conversation_id, clear, user_id=user_id)

    async def delete(self, conversation_id: str, *, user_id: str) -> None:
        async with self._database.writing() as connection:
            await _one(connection, _theirs(conversation_id, user_id).with_for_update())
            await connection.execute(delete(conversations).where(conversations.c.id == conversation_id))

    async def expire(self, before: datetime) -> int:
        async with self._database.writing() as connection:
            gone = await connection.execute(delete(conversations).where(conversations.c.updated_at < before))
            return gone.rowcount

    async def _when_free(
        self, conversation_id: str, act: Callable[[AsyncConnection, RowMapping], Awaitable[T]], *, user_id: str
    ) -> T:
        """Do this while no turn of the conversation is running, after those who came first."""
        try:
            async with asyncio.timeout(self._patience), self._queues.first_in(conversation_id) as queue:
                while True:
                    async with self._database.writing() as connection:
                        row = await _one(connection, _theirs(conversation_id, user_id).with_for_update())
                        if not await self._is_busy(connection, conversation_id):
                            return await act(connection, row)
                    await queue.pause(LOOK_AGAIN_SECONDS)
        except TimeoutError as exc:
            raise Unavailable("an earlier question of this conversation is still being answered.") from exc

    async def _insert(self, connection: AsyncConnection, turn: ConversationTurn, row: RowMapping) -> Mapping[str, Any]:
        """Keep a turn that begins, and give the row of its conversation as it is now."""
        owned = {"owner": str(self._owner), "lease_until": self._database.clock() + self._lease}
        await connection.execute(insert(turns).values(turn_row(turn) | owned))
        noted = {
            "last_number": turn.number,
            "title": row["title"] or " ".join(turn.question.split())[:LONGEST_TITLE],
            "status": Status.ACTIVE.value,
            "updated_at": _later(row),
        }
        await connection.execute(_changing(turn.conversation_id).values(noted))
        return {**row, **noted}

    async def _end(self, connection: AsyncConnection, turn: ConversationTurn) -> None:
        still_running = (turns.c.id == turn.id) & (turns.c.state == TurnState.RUNNING.value)
        ended = await connection.execute(update(turns).where(still_running).values(turn_row(turn)))
        if not ended.rowcount:
            raise Unavailable(f"turn {turn.number} is no longer running, so its answer was not kept. Ask again.")

    async def _turns(self, connection: AsyncConnection, conversation_id: str) -> Sequence[RowMapping]:
        overdue = (turns.c.lease_until < self._database.clock()).label("overdue")
        found = select(turns, overdue).where(turns.c.conversation_id == conversation_id).order_by(turns.c.number)
        return (await connection.execute(found)).mappings().all()

    async def _is_busy(self, connection: AsyncConnection, conversation_id: str) -> bool:
        """Whether a turn is being answered. One that nobody answers any more is marked interrupted."""
        overdue = (turns.c.lease_until < self._database.clock()).label("overdue")
        running = (turns.c.conversation_id == conversation_id) & (turns.c.state == TurnState.RUNNING.value)
        found = await connection.execute(select(turns.c.id, turns.c.owner, overdue).where(running))
        row = found.mappings().one_or_none()
        if row is None or not self._is_abandoned(row):
            return row is not None
        interrupted = update(turns).where(turns.c.id == row["id"]).values(state=TurnState.INTERRUPTED.value)
        await connection.execute(interrupted)
        return False

    def _is_abandoned(self, row: RowMapping) -> bool:
        if row["owner"] == str(self._owner):
            # Begun here by somebody who was cancelled before hearing of it, or not finished for want of the database.
            return row["id"] not in self._running
        return bool(row["overdue"]) or Owner.parse(row["owner"]).is_gone()


def _theirs(conversation_id: str, user_id: str) -> Select[Any]:
    if not is_uuid4(conversation_id) or not is_storable(user_id):
        raise NotFound(_ABSENT)
    return _any_ones(conversation_id).where(conversations.c.user_id == user_id)


def _any_ones(conversation_id: str) -> Select[Any]:
    return select(conversations).where(conversations.c.id == conversation_id)


async def _one(connection: AsyncConnection, wanted: Select[Any]) -> RowMapping:
    row: RowMapping | None = (await connection.execute(wanted)).mappings().one_or_none()
    if row is None:
        raise NotFound(_ABSENT)
    return row


async def _said(connection: AsyncConnection, row: RowMapping, *, latest: int) -> list[RowMapping]:
    """The system message and the whole exchanges since the last reset among the `latest` messages."""
    since = max(row["history_from"], row["next_position"] - latest)
    shown = or_(messages.c.position == 0, messages.c.position >= since)
    found = select(messages).where(messages.c.conversation_id == row["id"], shown).order_by(messages.c.position)
    system, *said = (await connection.execute(found)).mappings()
    return [system, *dropwhile(lambda message: message["role"] != "user", said)]


def _later(row: RowMapping) -> datetime:
    """Now, unless the clock of another machine was there already."""
    before: datetime = row["updated_at"]
    return max(before, now())


def _changing(conversation_id: str) -> Update:
    return update(conversations).where(conversations.c.id == conversation_id)


def _exchange(said: Sequence[Message], *, since: datetime) -> list[Message]:
    """These messages, if they are one question with its answer and what came between, none before `since`."""
    exchange = Conversation([Message("system", "The exchange begins.", timestamp=since)])
    for message in said:
        exchange.add_message(message)
    if exchange.turn_count != 1 or exchange.status is not Status.COMPLETED:
        raise InputError("the messages of a completed turn begin with its question and end with its answer.")
    return exchange.messages[1:]


async def _append(
    connection: AsyncConnection, turn: ConversationTurn, *, row: RowMapping, exchange: Sequence[Message]
) -> None:
    said = message_rows(exchange, turn.conversation_id, position=row["next_position"])
    await connection.execute(insert(messages), [each | {"turn_id": turn.id} for each in said])
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
    await connection.execute(_changing(turn.conversation_id).values(grown))
