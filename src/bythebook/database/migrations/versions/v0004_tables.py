"""The tables of version 0.1.0, from which later migrations start. A new database is created from the schema."""

revision = "0004"
down_revision = None


def upgrade() -> None:
    """Nothing to do: a database without tables is not migrated."""
