"""Create conversations, turns and messages."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    _conversations()
    _turns()
    _messages()


def downgrade() -> None:
    for table in ("messages", "turns", "conversations"):
        op.drop_table(table)


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False)


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer, nullable=False)


def _moment(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=False)


def _of_conversation(table: str) -> sa.ForeignKeyConstraint:
    name = f"fk_{table}_conversation_id"
    return sa.ForeignKeyConstraint(["conversation_id"], ["conversations.id"], name=name, ondelete="CASCADE")


def _conversations() -> None:
    op.create_table(
        "conversations",
        _text("id"),
        _text("user_id"),
        _text("model"),
        _text("title"),
        _text("status"),
        _number("max_history"),
        _number("turn_count"),
        _number("retrieval_count"),
        _number("last_number"),
        _number("next_position"),
        _number("history_from"),
        _moment("created_at"),
        _moment("updated_at"),
        _moment("last_message_at"),
        sa.PrimaryKeyConstraint("id", name="pk_conversations"),
    )
    op.create_index("ix_conversations_updated_at", "conversations", ["updated_at"])
    op.create_index("ix_conversations_user_id_updated_at", "conversations", ["user_id", "updated_at"])


def _turns() -> None:
    op.create_table(
        "turns",
        _text("id"),
        _text("conversation_id"),
        _number("number"),
        _text("question"),
        _text("standalone_question"),
        _text("retrieval_results"),
        sa.Column("response", sa.Text),
        _text("state"),
        _text("error"),
        _moment("created_at"),
        sa.Column("duration_seconds", sa.Float),
        _text("owner"),
        sa.Column("lease_until", sa.Float, nullable=False),
        sa.Column("feedback", sa.Text),
        _of_conversation("turns"),
        sa.PrimaryKeyConstraint("id", name="pk_turns"),
        sa.UniqueConstraint("conversation_id", "number", name="uq_turns_conversation_id_number"),
    )
    running = sa.text("state = 'running'")
    op.create_index(
        "ix_turns_running", "turns", ["conversation_id"], unique=True, sqlite_where=running, postgresql_where=running
    )


def _messages() -> None:
    op.create_table(
        "messages",
        _text("id"),
        _text("conversation_id"),
        sa.Column("turn_id", sa.Text),
        _number("position"),
        _text("role"),
        _text("content"),
        _moment("timestamp"),
        _text("citations"),
        _number("token_count"),
        _text("tool_calls"),
        sa.Column("tool_call_id", sa.Text),
        sa.Column("name", sa.Text),
        _text("metadata"),
        _of_conversation("messages"),
        sa.PrimaryKeyConstraint("id", name="pk_messages"),
        sa.UniqueConstraint("conversation_id", "position", name="uq_messages_conversation_id_position"),
    )
