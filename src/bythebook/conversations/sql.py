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
from typing import TYPE_CHECKING, TypeVar

from bythebook.conversations import Conversation, ConversationTurn, Message, Status, TurnState, statements
from bythebook.conversations.conversation import is_uuid4
from bythebook.conversations.database import open_database
from bythebook.conversations.message import in_utc, is_storable, now
from bythebook.conversations.owner import Owner
from bythebook.conversations.queues import Queues
from bythebook.conversations.records import to_turn
from bythebook.errors import InputError, NotFound, Unavailable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from datetime import datetime

    from sqlalchemy import Connection, RowMapping

    from bythebook.conversations import ConversationSummary
    from bythebook.conversations.database import Database

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
                await self._database.write(lambda connection: statements.interrupt_all(connection, owner=self._owner))

    async def create(self, conversation: Conversation) -> None:
        if not conversation.messages:
            raise InputError("a conversation starts with a system message.")
        await self._database.write(lambda connection: statements.create(connection, conversation))

    async def load(self, conversation_id: str, *, user_id: str) -> Conversation:
        _check(conversation_id, user_id)
        return await self._database.read(
            lambda connection: statements.read(
                connection, statements.find(connection, conversation_id, user_id=user_id)
            )
        )

    async def turns(self, conversation_id: str, *, user_id: str) -> list[ConversationTurn]:
        _check(conversation_id, user_id)

        def listed(connection: Connection) -> list[RowMapping]:
            statements.find(connection, conversation_id, user_id=user_id)
            return statements.list_turns(connection, conversation_id)

        rows = await self._database.read(listed)
        if any(row["state"] == TurnState.RUNNING and self._is_abandoned(row) for row in rows):
            await self._database.write(lambda connection: self._is_busy(connection, conversation_id))
            rows = await self._database.read(listed)
        return [to_turn(row) for row in rows]

    async def latest(self, *, user_id: str, limit: int) -> list[ConversationSummary]:
        if not is_storable(user_id):
            return []
        return await self._database.read(
            lambda connection: statements.list_latest(connection, user_id=user_id, limit=limit)
        )

    async def begin_turn(
        self, conversation_id: str, question: str, *, user_id: str
    ) -> tuple[ConversationTurn, Conversation]:
        _check(conversation_id, user_id)
        turn = ConversationTurn(conversation_id, 1, question)
        owned = {"owner": self._owner, "lease": self._lease}

        def begun(connection: Connection, row: RowMapping) -> tuple[ConversationTurn, Conversation]:
            started = replace(turn, number=row["last_number"] + 1, created_at=now())
            return started, statements.begin(connection, started, row, owned=owned)

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
            row = statements.end(connection, turn)
            if turn.state is TurnState.COMPLETED:
                statements.append(connection, turn, row, exchange=_exchange(messages, since=row["last_message_at"]))

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
        await self._when_free(conversation_id, statements.reset, user_id=user_id)

    async def delete(self, conversation_id: str, *, user_id: str) -> None:
        _check(conversation_id, user_id)
        await self._database.write(
            lambda connection: statements.forget(
                connection, statements.lock(connection, conversation_id, user_id=user_id)
            )
        )

    async def expire(self, before: datetime) -> int:
        return await self._database.write(lambda connection: statements.expire(connection, in_utc(before)))

    async def _when_free(self, conversation_id: str, act: Callable[[Connection, RowMapping], T], *, user_id: str) -> T:
        """Do this while no turn of the conversation is running, after those who came first."""

        def attempt(connection: Connection) -> tuple[T] | None:
            row = statements.lock(connection, conversation_id, user_id=user_id)
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
            await self._database.write(lambda connection: statements.interrupt(connection, turn.id))

    def _is_busy(self, connection: Connection, conversation_id: str) -> bool:
        """Whether a turn is being answered. One that nobody answers any more is marked interrupted."""
        row = statements.running_turn(connection, conversation_id)
        if row is None or not self._is_abandoned(row):
            return row is not None
        statements.interrupt(connection, row["id"])
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
