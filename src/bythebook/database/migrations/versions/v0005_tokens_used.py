"""Conversations count the tokens that were used for them. The URL of a selected text becomes a URN."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    tokens = sa.Column("total_tokens_used", sa.Integer, nullable=False, server_default=sa.text("0"))
    op.add_column("conversations", tokens)
    for table, column in (("turns", "retrieval_results"), ("turns", "response"), ("messages", "citations")):
        urls: sa.ColumnClause[str] = sa.column(column)
        renamed = sa.func.replace(urls, '"selection:', '"urn:bythebook:selection')
        op.execute(sa.table(table, urls).update().values({column: renamed}))
