"""The tables of the database, the same in SQLite and PostgreSQL.

JSON is stored as text: both databases then preserve every character, and no query searches inside it.
"""

from datetime import UTC, datetime

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeDecorator

VERSION = "0005"
"""The newest migration. A new database gets the tables below; an older one is migrated to them."""


class UtcDateTime(TypeDecorator[datetime]):
    """A time in UTC. SQLite drops the time zone, so it is restored on load."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:  # noqa: ARG002
        return value.astimezone(UTC) if value else None

    def process_result_value(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:  # noqa: ARG002
        return value.replace(tzinfo=UTC) if value and value.tzinfo is None else value


class Clock(FunctionElement[float]):
    """Seconds since 1970 by the clock of the database, which all its clients share. Constant within a statement."""

    type = sa.Float()
    inherit_cache = True


@compiles(Clock, "sqlite")
def _sqlite_clock(*_: object, **__: object) -> str:
    return "((julianday('now') - 2440587.5) * 86400.0)"


@compiles(Clock, "postgresql")
def _postgresql_clock(*_: object, **__: object) -> str:
    return "CAST(extract(epoch FROM statement_timestamp()) AS FLOAT)"


METADATA = sa.MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    }
)


def _conversation_id_column() -> sa.Column[str]:
    return sa.Column("conversation_id", sa.Text, sa.ForeignKey("conversations.id", ondelete="CASCADE"), nullable=False)


conversations = sa.Table(
    "conversations",
    METADATA,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("user_id", sa.Text, nullable=False),
    sa.Column("model", sa.Text, nullable=False),
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("max_history", sa.Integer, nullable=False),
    sa.Column("turn_count", sa.Integer, nullable=False),
    sa.Column("retrieval_count", sa.Integer, nullable=False),
    sa.Column("total_tokens_used", sa.Integer, nullable=False, server_default="0"),
    sa.Column("last_number", sa.Integer, nullable=False),  # of the newest turn, in any state
    sa.Column("next_position", sa.Integer, nullable=False),  # of the next message
    sa.Column("history_from", sa.Integer, nullable=False),  # position of the first message since the last reset
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("updated_at", UtcDateTime, nullable=False),
    sa.Column("last_message_at", UtcDateTime, nullable=False),
    sa.Index("ix_conversations_user_id_updated_at", "user_id", "updated_at"),
    sa.Index("ix_conversations_updated_at", "updated_at"),
)

turns = sa.Table(
    "turns",
    METADATA,
    sa.Column("id", sa.Text, primary_key=True),
    _conversation_id_column(),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("question", sa.Text, nullable=False),
    sa.Column("standalone_question", sa.Text, nullable=False),
    sa.Column("retrieval_results", sa.Text, nullable=False),
    sa.Column("response", sa.Text),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("error", sa.Text, nullable=False),
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("duration_seconds", sa.Float),
    sa.Column("owner", sa.Text, nullable=False),  # lease owner
    sa.Column("lease_until", sa.Float, nullable=False),  # seconds since 1970 by the clock of the database
    sa.UniqueConstraint("conversation_id", "number"),
    # Guarantees the order of turns: the database refuses two running turns.
    sa.Index(
        "ix_turns_running",
        "conversation_id",
        unique=True,
        sqlite_where=sa.text("state = 'running'"),
        postgresql_where=sa.text("state = 'running'"),
    ),
)

messages = sa.Table(
    "messages",
    METADATA,
    sa.Column("id", sa.Text, primary_key=True),
    _conversation_id_column(),
    sa.Column("turn_id", sa.Text),  # NULL for the system message
    sa.Column("position", sa.Integer, nullable=False),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("content", sa.Text, nullable=False),
    sa.Column("timestamp", UtcDateTime, nullable=False),
    sa.Column("citations", sa.Text, nullable=False),
    sa.Column("token_count", sa.Integer, nullable=False),
    sa.Column("tool_calls", sa.Text, nullable=False),
    sa.Column("tool_call_id", sa.Text),
    sa.Column("name", sa.Text),
    sa.Column("metadata", sa.Text, nullable=False),
    sa.UniqueConstraint("conversation_id", "position"),
)

keys = sa.Table(
    "keys",
    METADATA,
    sa.Column("id", sa.Text, primary_key=True),  # public part of the key
    sa.Column("digest", sa.Text, nullable=False),  # SHA-256 of the whole key, which is not stored
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("scopes", sa.Text, nullable=False),
    sa.Column("origins", sa.Text, nullable=False),  # origin of a site token; empty for an API key
    sa.Column("budget", sa.Integer),  # daily quota of a site token
    sa.Column("created_at", UtcDateTime, nullable=False),
    sa.Column("expires_at", UtcDateTime),
    sa.Column("revoked_at", UtcDateTime),
)

rates = sa.Table(
    "rates",
    METADATA,
    sa.Column("subject", sa.Text, primary_key=True),  # rate-limited subject
    sa.Column("until", sa.Float, nullable=False),  # start of the next window, by the clock of the database
    sa.Column("taken", sa.Integer, nullable=False),
    sa.Index("ix_rates_until", "until"),
)

repeats = sa.Table(
    "repeats",
    METADATA,
    sa.Column("user_id", sa.Text, primary_key=True),
    sa.Column("key", sa.Text, primary_key=True),  # Idempotency-Key of the request
    sa.Column("asked", sa.Text, nullable=False),  # fingerprint of the request
    sa.Column(
        "session_id", sa.Text, sa.ForeignKey("conversations.id", ondelete="CASCADE")
    ),  # deleted with its conversation
    sa.Column("answer", sa.Text),  # JSON of the response, once complete
    sa.Column("owner", sa.Text, nullable=False),  # lease owner
    sa.Column("until", sa.Float, nullable=False),  # end of the lease or of the retention, by the clock of the database
    sa.Index("ix_repeats_session_id", "session_id"),
    sa.Index("ix_repeats_until", "until"),
)

asked = sa.Table(
    "asked",
    METADATA,
    sa.Column("id", sa.Text, primary_key=True),  # id of the response
    sa.Column("user_id", sa.Text, nullable=False),
    sa.Column(
        "conversation_id", sa.Text, sa.ForeignKey("conversations.id", ondelete="CASCADE")
    ),  # NULL without a session
    sa.Column("question", sa.Text, nullable=False),  # empty if log_unanswered is off
    sa.Column("outcome", sa.Text, nullable=False),
    sa.Column("generation", sa.Text, nullable=False),
    sa.Column("nearest", sa.Text, nullable=False),
    sa.Column("confidence", sa.Float),
    sa.Column("asked_at", UtcDateTime, nullable=False),
    sa.Column("rating", sa.Text),  # NULL without a rating
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("rated_at", UtcDateTime),
    sa.Index("ix_asked_asked_at", "asked_at"),
    sa.Index("ix_asked_conversation_id", "conversation_id"),
)
