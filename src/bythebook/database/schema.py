"""The tables of the database, the same in SQLite and PostgreSQL.

JSON is stored as text: both databases then preserve every character, and no query searches inside it.
"""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import (
    Column,
    DateTime,
    Dialect,
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

VERSION = "0004"
"""The newest migration. The migrations up to it create the tables below."""


class UtcDateTime(TypeDecorator[datetime]):
    """A time in UTC. SQLite drops the time zone, so it is restored on load."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        return value.astimezone(UTC) if value else None

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        return value.replace(tzinfo=UTC) if value and value.tzinfo is None else value


class Clock(FunctionElement[float]):
    """Seconds since 1970 by the clock of the database, which all its clients share. Constant within a statement."""

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


def _conversation_id_column() -> Column[str]:
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
    Column("last_number", Integer, nullable=False),  # of the newest turn, in any state
    Column("next_position", Integer, nullable=False),  # of the next message
    Column("history_from", Integer, nullable=False),  # position of the first message since the last reset
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    Column("last_message_at", UtcDateTime, nullable=False),
    Index("ix_conversations_user_id_updated_at", "user_id", "updated_at"),
    Index("ix_conversations_updated_at", "updated_at"),
)

turns = Table(
    "turns",
    METADATA,
    Column("id", Text, primary_key=True),
    _conversation_id_column(),
    Column("number", Integer, nullable=False),
    Column("question", Text, nullable=False),
    Column("standalone_question", Text, nullable=False),
    Column("retrieval_results", Text, nullable=False),
    Column("response", Text),
    Column("state", Text, nullable=False),
    Column("error", Text, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("duration_seconds", Float),
    Column("owner", Text, nullable=False),  # lease owner
    Column("lease_until", Float, nullable=False),  # seconds since 1970 by the clock of the database
    UniqueConstraint("conversation_id", "number"),
    # Guarantees the order of turns: the database refuses two running turns.
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
    _conversation_id_column(),
    Column("turn_id", Text),  # NULL for the system message
    Column("position", Integer, nullable=False),
    Column("role", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("timestamp", UtcDateTime, nullable=False),
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
    Column("id", Text, primary_key=True),  # public part of the key
    Column("digest", Text, nullable=False),  # SHA-256 of the whole key, which is not stored
    Column("name", Text, nullable=False),
    Column("scopes", Text, nullable=False),
    Column("origins", Text, nullable=False),  # origin of a site token; empty for an API key
    Column("budget", Integer),  # daily quota of a site token
    Column("created_at", UtcDateTime, nullable=False),
    Column("expires_at", UtcDateTime),
    Column("revoked_at", UtcDateTime),
)

rates = Table(
    "rates",
    METADATA,
    Column("subject", Text, primary_key=True),  # rate-limited subject
    Column("until", Float, nullable=False),  # start of the next window, by the clock of the database
    Column("taken", Integer, nullable=False),
    Index("ix_rates_until", "until"),
)

repeats = Table(
    "repeats",
    METADATA,
    Column("user_id", Text, primary_key=True),
    Column("key", Text, primary_key=True),  # Idempotency-Key of the request
    Column("asked", Text, nullable=False),  # fingerprint of the request
    Column("session_id", Text, ForeignKey("conversations.id", ondelete="CASCADE")),  # deleted with its conversation
    Column("answer", Text),  # JSON of the response, once complete
    Column("owner", Text, nullable=False),  # lease owner
    Column("until", Float, nullable=False),  # end of the lease or of the retention, by the clock of the database
    Index("ix_repeats_session_id", "session_id"),
    Index("ix_repeats_until", "until"),
)

asked = Table(
    "asked",
    METADATA,
    Column("id", Text, primary_key=True),  # id of the response
    Column("user_id", Text, nullable=False),
    Column("conversation_id", Text, ForeignKey("conversations.id", ondelete="CASCADE")),  # NULL without a session
    Column("question", Text, nullable=False),  # empty if log_unanswered is off
    Column("outcome", Text, nullable=False),
    Column("generation", Text, nullable=False),
    Column("nearest", Text, nullable=False),
    Column("confidence", Float),
    Column("asked_at", UtcDateTime, nullable=False),
    Column("rating", Text),  # NULL without a rating
    Column("reason", Text, nullable=False),
    Column("rated_at", UtcDateTime),
    Index("ix_asked_asked_at", "asked_at"),
    Index("ix_asked_conversation_id", "conversation_id"),
)
