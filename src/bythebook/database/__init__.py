"""The SQL database that conversations, access and feedback share: SQLite or PostgreSQL."""
