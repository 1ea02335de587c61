"""Conversations count the tokens that were used for them."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.add_column(
        "conversations", sa.Column("total_tokens_used", sa.Integer, nullable=False, server_default=sa.text("0"))
    )
