"""Alembic runs this to migrate over the connection it was given, inside the transaction that is open on it."""

from alembic import context

from bythebook.database.schema import METADATA

context.configure(connection=context.config.attributes["connection"], target_metadata=METADATA)
with context.begin_transaction():
    context.run_migrations()
