"""Alembic runs this script on an existing connection, inside its open transaction."""

from alembic import context

from bythebook.database.schema import METADATA

context.configure(connection=context.config.attributes["connection"], target_metadata=METADATA)
with context.begin_transaction():
    context.run_migrations()
