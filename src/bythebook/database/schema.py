"""The tables of the database, the same in SQLite and PostgreSQL: conversations, and who may hold them.

What JSON has is kept as text: both databases then keep every character, and nobody searches inside it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sqlalchemy import (
    Column,
    DateTime,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeDecorator

if TYPE_CHECKING:
    from sqlalchemy import Dialect

VERSION = "0004"
"""The newest migration. The tables below are what the migrations up to it make."""


class Moment(TypeDecorator[datetime]):
    """A time in UTC. SQLite forgets the zone, so it is given back."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        return value.astimezone(UTC) if value else None

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        return value.replace(tzinfo=UTC) if value and value.tzinfo is None else value


class Clock(FunctionElement[float]):
    """Seconds since 1970, by the one clock that all users of a database share. It stands still within a statement."""

    type = Float()
    inherit_cache = True


@compiles(Clock, "sqlite")
def _sqlite_clock(*_: object, **__: object) -> str:
    return "((julianday('now') - 2440587.5) * 86400.0)"


@compiles(Clock, "postgresql")
def _postgresql_clock(*_: object, **__: object) -> str:
    return "CAST(extract(epoch FROM statement_timestamp()) AS FLOAT)"


METADATA = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    }
)


def _of_conversation() -> Column[str]:
    return Column("conversation_id", Text, ForeignKey("conversations.id", ondelete="CASCADE"), nullable=False)


conversations = Table(
    "conversations",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("user_id", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("max_history", Integer, nullable=False),
    Column("turn_count", Integer, nullable=False),
    Column("retrieval_count", Integer, nullable=False),
    Column("last_number", Integer, nullable=False),  # of the newest turn, whatever became of it
    Column("next_position", Integer, nullable=False),  # of the next message
    Column("history_from", Integer, nullable=False),  # position of the first message since the last reset
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    Column("last_message_at", Moment, nullable=False),
    Index("ix_conversations_user_id_updated_at", "user_id", "updated_at"),
    Index("ix_conversations_updated_at", "updated_at"),
)

turns = Table(
    "turns",
    METADATA,
    Column("id", Text, primary_key=True),
    _of_conversation(),
    Column("number", Integer, nullable=False),
    Column("question", Text, nullable=False),
    Column("standalone_question", Text, nullable=False),
    Column("retrieval_results", Text, nullable=False),
    Column("response", Text),
    Column("state", Text, nullable=False),
    Column("error", Text, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("duration_seconds", Float),
    Column("owner", Text, nullable=False),  # who answers it
    Column("lease_until", Float, nullable=False),  # seconds since 1970, by the database's own clock
    UniqueConstraint("conversation_id", "number"),
    # The order of turns rests on this: two at once is something the database itself refuses.
    Index(
        "ix_turns_running",
        "conversation_id",
        unique=True,
        sqlite_where=text("state = 'running'"),
        postgresql_where=text("state = 'running'"),
    ),
)

messages = Table(
    "messages",
    METADATA,
    Column("id", Text, primary_key=True),
    _of_conversation(),
    Column("turn_id", Text),  # the turn it was said in; none for the system message
    Column("position", Integer, nullable=False),
    Column("role", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("timestamp", Moment, nullable=False),
    Column("citations", Text, nullable=False),
    Column("token_count", Integer, nullable=False),
    Column("tool_calls", Text, nullable=False),
    Column("tool_call_id", Text),
    Column("name", Text),
    Column("metadata", Text, nullable=False),
    UniqueConstraint("conversation_id", "position"),
)

keys = Table(
    "keys",
    METADATA,
    Column("id", Text, primary_key=True),  # a part of the secret that is no secret
    Column("digest", Text, nullable=False),  # SHA-256 of the whole secret, which is kept nowhere
    Column("name", Text, nullable=False),
    Column("scopes", Text, nullable=False),
    Column("origins", Text, nullable=False),  # where the token of a site may be used; empty for a key
    Column("budget", Integer),  # questions a day, for the token of a site
    Column("created_at", Moment, nullable=False),
    Column("expires_at", Moment),
    Column("revoked_at", Moment),
)

rates = Table(
    "rates",
    METADATA,
    Column("subject", Text, primary_key=True),  # whose requests are counted
    Column("until", Float, nullable=False),  # when counting starts afresh, by the database's own clock
    Column("taken", Integer, nullable=False),
    Index("ix_rates_until", "until"),
)

repeats = Table(
    "repeats",
    METADATA,
    Column("user_id", Text, primary_key=True),
    Column("key", Text, primary_key=True),  # the Idempotency-Key of the request
    Column("asked", Text, nullable=False),  # a fingerprint of the request
    Column("session_id", Text, ForeignKey("conversations.id", ondelete="CASCADE")),  # forgotten with its conversation
    Column("answer", Text),  # once there is one
    Column("owner", Text, nullable=False),  # who answers it
    Column("until", Float, nullable=False),  # how long it is held, or its answer kept, by the database's own clock
    Index("ix_repeats_session_id", "session_id"),
    Index("ix_repeats_until", "until"),
)

asked = Table(
    "asked",
    METADATA,
    Column("id", Text, primary_key=True),  # of the response
    Column("user_id", Text, nullable=False),
    Column("conversation_id", Text, ForeignKey("conversations.id", ondelete="CASCADE")),  # none without a session
    Column("question", Text, nullable=False),  # empty where questions are not to be written down
    Column("outcome", Text, nullable=False),
    Column("generation", Text, nullable=False),
    Column("nearest", Text, nullable=False),
    Column("confidence", Float),
    Column("asked_at", Moment, nullable=False),
    Column("rating", Text),  # once a reader gave one
    Column("reason", Text, nullable=False),
    Column("rated_at", Moment),
    Index("ix_asked_asked_at", "asked_at"),
    Index("ix_asked_conversation_id", "conversation_id"),
)
