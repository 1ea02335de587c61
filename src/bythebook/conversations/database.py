"""An open database, SQLite or PostgreSQL by its URL, with the newest tables in it."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import URL, Connection, Float, cast, event, func, literal, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import create_async_engine

from bythebook.conversations.schema import VERSION
from bythebook.errors import BookError, ConfigurationError, Unavailable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from sqlalchemy import ColumnElement
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

BUSY_SECONDS = 5.0
CONNECT_SECONDS = 5.0
COMMAND_SECONDS = 10.0

_MIGRATING = 0x62797468
"""The PostgreSQL advisory lock that one migrating process holds: any number nobody else in the database uses."""

_OURS_TO_MEND = ("28", "3D", "42501")
"""PostgreSQL's codes for a wrong password, a database that is not there, and missing rights."""

_FILE_TROUBLE = ("unable to open", "not a database", "readonly", "malformed")


class Database:
    """Connections with a transaction around each use. Foreign errors come out as ours."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._for_writing = engine.execution_options(writing=True)
        self._is_sqlite = engine.dialect.name == "sqlite"
        # SQLite has one writer. Those of this process queue here, which is fairer than its sleeping and trying again.
        self._writer = asyncio.Lock() if self._is_sqlite else nullcontext()

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncConnection]:
        """A connection that sees everything as of one moment."""
        with _speaking_to_the_database():
            async with self._engine.connect() as connection:
                yield connection

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[AsyncConnection]:
        """A connection whose changes all last when the block ends well, and none otherwise."""
        with _speaking_to_the_database():
            async with self._writer, self._for_writing.begin() as connection:
                yield connection

    def clock(self) -> ColumnElement[float]:
        """Seconds since 1970 by the one clock that all users of the database share."""
        here: ColumnElement[float] = literal(time.time())
        return here if self._is_sqlite else cast(func.extract("epoch", func.clock_timestamp()), Float)

    async def migrate(self) -> None:
        """Bring the tables up to date. Nothing is imported or locked when they are."""
        async with self.reading() as connection:
            if await _version(connection) == VERSION:
                return
        async with self.writing() as connection:
            if not self._is_sqlite:
                await connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATING})
            # Another process may have been first while this one waited for the lock.
            if await _version(connection) != VERSION:
                await connection.run_sync(_upgrade)
        if self._is_sqlite:
            await self._log_ahead()

    async def _log_ahead(self) -> None:
        """Let readers of a SQLite file go on while one process writes. The file remembers it."""
        with _speaking_to_the_database():
            async with self._writer, self._engine.connect() as connection:
                raw = await connection.get_raw_connection()
                await raw.driver_connection.execute("PRAGMA journal_mode = WAL")  # type: ignore[union-attr]


@asynccontextmanager
async def open_database(url: str) -> AsyncIterator[Database]:
    """The database with the newest tables in it. Several processes may open it at once, also for the first time."""
    engine = _engine(url)
    try:
        database = Database(engine)
        await database.migrate()
        yield database
    finally:
        await engine.dispose()


def _engine(url: str) -> AsyncEngine:
    try:
        known = make_url(url)
    except ArgumentError as exc:
        raise ConfigurationError("database.url is not a URL. Use sqlite:///FILE or postgresql://HOST/NAME.") from exc
    kind = known.get_backend_name()
    try:
        if kind == "sqlite":
            return _sqlite(known)
        if kind in {"postgresql", "postgres"}:
            return _postgresql(known)
    except ModuleNotFoundError as exc:
        hint = "Run: pip install 'bythebook[postgres]'."
        raise ConfigurationError(f"{kind} needs a package that is not installed. {hint}") from exc
    raise ConfigurationError(f"database.url names {kind!r}; only sqlite and postgresql are supported.")


def _sqlite(url: URL) -> AsyncEngine:
    if not url.database or url.database == ":memory:":
        raise ConfigurationError("database.url must name a file, as in sqlite:///conversations.db.")
    Path(url.database).parent.mkdir(parents=True, exist_ok=True)
    engine = create_async_engine(
        url.set(drivername="sqlite+aiosqlite"), hide_parameters=True, connect_args={"timeout": BUSY_SECONDS}
    )
    event.listen(engine.sync_engine, "connect", _prepare_sqlite)
    event.listen(engine.sync_engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # Python's own would begin transactions too late: see _begin_sqlite.
    cursor = connection.cursor()
    cursor.execute("PRAGMA foreign_keys = ON")
    # A process that is killed loses nothing in either setting; FULL also keeps what was committed when the power goes.
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    # A transaction that reads first and writes later cannot wait for another writer: it must be one from the start.
    writing = connection.get_execution_options().get("writing", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")


def _postgresql(url: URL) -> AsyncEngine:
    query = dict(url.query)
    if "sslmode" in query:  # as every hosting service writes it; the driver calls it ssl
        query["ssl"] = query.pop("sslmode")
    return create_async_engine(
        url.set(drivername="postgresql+asyncpg", query=query),
        hide_parameters=True,
        pool_pre_ping=True,
        connect_args={"timeout": CONNECT_SECONDS, "command_timeout": COMMAND_SECONDS},
    )


async def _version(connection: AsyncConnection) -> str | None:
    """The migration the tables are at, None before the first. A newer one than ours is refused."""
    there = await connection.run_sync(lambda sync: sync.dialect.has_table(sync, "alembic_version"))
    version: str | None = await connection.scalar(text("SELECT version_num FROM alembic_version")) if there else None
    if version and version > VERSION:
        raise ConfigurationError("the conversation database was written by a newer bythebook. Install that one.")
    return version


def _upgrade(connection: Connection) -> None:
    # Alembic takes longer to import than a turn takes to store, and is hardly ever needed.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


@contextmanager
def _speaking_to_the_database() -> Iterator[None]:
    """Turn the errors of SQLAlchemy and the drivers into ours."""
    try:
        yield
    except BookError:
        raise
    except DBAPIError as exc:
        code, words = str(getattr(exc.orig, "sqlstate", "")), str(exc.orig)
        if code.startswith(_OURS_TO_MEND) or any(trouble in words for trouble in _FILE_TROUBLE):
            raise ConfigurationError(f"the conversation database cannot be used: {words}. Check database.url.") from exc
        raise Unavailable(f"the conversation database failed: {words}") from exc
    except (PoolTimeout, OSError) as exc:
        raise Unavailable(f"the conversation database did not answer: {exc}") from exc
