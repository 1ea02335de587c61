"""Create the table of idempotent requests."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_table(
        "repeats",
        sa.Column("user_id", sa.Text, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("asked", sa.Text, nullable=False),
        sa.Column("session_id", sa.Text),
        sa.Column("answer", sa.Text),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("until", sa.Float, nullable=False),
        sa.ForeignKeyConstraint(["session_id"], ["conversations.id"], name="fk_repeats_session_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("user_id", "key", name="pk_repeats"),
    )
    op.create_index("ix_repeats_session_id", "repeats", ["session_id"])
    op.create_index("ix_repeats_until", "repeats", ["until"])


def downgrade() -> None:
    op.drop_table("repeats")
