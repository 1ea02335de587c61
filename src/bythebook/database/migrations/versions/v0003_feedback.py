"""Create the answer log and the ratings."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "asked",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("user_id", sa.Text, nullable=False),
        sa.Column("conversation_id", sa.Text),
        sa.Column("question", sa.Text, nullable=False),
        sa.Column("outcome", sa.Text, nullable=False),
        sa.Column("generation", sa.Text, nullable=False),
        sa.Column("nearest", sa.Text, nullable=False),
        sa.Column("confidence", sa.Float),
        sa.Column("asked_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("rating", sa.Text),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("rated_at", sa.DateTime(timezone=True)),
        sa.ForeignKeyConstraint(
            ["conversation_id"], ["conversations.id"], name="fk_asked_conversation_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_asked"),
    )
    op.create_index("ix_asked_asked_at", "asked", ["asked_at"])
    op.create_index("ix_asked_conversation_id", "asked", ["conversation_id"])
    # Ratings are not stored with the turn, because an answer without a session has no turn.
    op.drop_column("turns", "feedback")


def downgrade() -> None:
    op.add_column("turns", sa.Column("feedback", sa.Text))
    op.drop_table("asked")
