"""Create API keys, site tokens and rate-limit counters."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "keys",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("scopes", sa.Text, nullable=False),
        sa.Column("origins", sa.Text, nullable=False),
        sa.Column("budget", sa.Integer),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True)),
        sa.Column("revoked_at", sa.DateTime(timezone=True)),
        sa.PrimaryKeyConstraint("id", name="pk_keys"),
    )
    op.create_table(
        "rates",
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("until", sa.Float, nullable=False),
        sa.Column("taken", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("subject", name="pk_rates"),
    )
    op.create_index("ix_rates_until", "rates", ["until"])


def downgrade() -> None:
    for table in ("rates", "keys"):
        op.drop_table(table)
