"""Opens a database, SQLite or PostgreSQL by its URL, with current tables.

Work is a plain function of a connection and runs in one transaction. On PostgreSQL it awaits without blocking the event
loop. On SQLite the whole function runs in a thread: passing each statement to a thread, as the asynchronous SQLite
drivers do, takes several times as long as the statements.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from bythebook.database.schema import METADATA, VERSION
from bythebook.errors import ConfigurationError, Unavailable

T = TypeVar("T")

READERS = 4
BUSY_SECONDS = 5.0
CONNECT_SECONDS = 5.0
COMMAND_SECONDS = 10.0

_MIGRATING = 0x62797468
"""The PostgreSQL advisory lock held during a migration: any number that is otherwise unused."""

_OURS_TO_MEND = ("28", "3D", "42501")
"""PostgreSQL's error codes for a wrong password, a missing database and missing privileges."""

_FILE_TROUBLE = ("unable to open", "not a database", "readonly", "malformed")


class Database(Protocol):
    """Runs functions in transactions and raises this package's errors."""

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Run `work` with a consistent snapshot."""
        ...

    async def write(self, work: Callable[[Connection], T]) -> T:
        """Run `work` and commit its changes, or roll back if it raises."""
        ...

    async def close(self) -> None: ...


@asynccontextmanager
async def open_database(url: str) -> AsyncIterator[Database]:
    """Open a database with current tables. Several processes may open it at once, also for the first time."""
    database = _database(url)
    try:
        if await database.read(_version) != VERSION:
            await database.write(_upgrade)
        yield database
    finally:
        await database.close()


def _database(url: str) -> Database:
    try:
        known = make_url(url)
        kind = known.get_backend_name()
        if kind == "sqlite":
            return SqliteDatabase(known)
        if kind in {"postgresql", "postgres"}:
            return PostgresqlDatabase(known)
    except ArgumentError as exc:
        raise ConfigurationError("database.url is not a URL. Use sqlite:///FILE or postgresql://HOST/NAME.") from exc
    except ModuleNotFoundError as exc:
        raise ConfigurationError("PostgreSQL needs a driver. Run: pip install 'bythebook[postgres]'.") from exc
    raise ConfigurationError(f"database.url names {kind!r}; only sqlite and postgresql are supported.")


class SqliteDatabase:
    """A SQLite file that several processes may open."""

    def __init__(self, url: URL) -> None:
        if not url.database or url.database == ":memory:":
            raise ConfigurationError("database.url must name a file, as in sqlite:///conversations.db.")
        try:
            file = Path(url.database)
            file.parent.mkdir(parents=True, exist_ok=True)
            if not file.exists():
                file.touch(mode=0o600)  # it holds what readers asked
        except OSError as exc:
            raise ConfigurationError(f"there can be no database at {url.database}: {exc}. Check database.url.") from exc
        patient = url.set(drivername="sqlite", query={"timeout": str(BUSY_SECONDS), **url.query})
        self._engine = create_engine(patient, hide_parameters=True)
        event.listen(self._engine, "connect", _prepare_sqlite)
        event.listen(self._engine, "begin", _begin_sqlite)
        self._for_writing = self._engine.execution_options(writing=True)
        self._readers = ThreadPoolExecutor(READERS, "conversations-read")
        # SQLite has one writer. The writers of this process queue here, which is fairer than SQLite's own retry loop.
        self._writer = ThreadPoolExecutor(1, "conversations-write")

    async def read(self, work: Callable[[Connection], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._readers, _run, self._engine, work)

    async def write(self, work: Callable[[Connection], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._writer, _run, self._for_writing, work)

    async def close(self) -> None:
        for pool in (self._writer, self._readers):
            await asyncio.to_thread(pool.shutdown)
        self._engine.dispose()


def _run(engine: Engine, work: Callable[[Connection], T]) -> T:
    with _translate_errors(), engine.begin() as connection:
        return work(connection)


def _prepare_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # Python's own transactions begin too late: see _begin_sqlite
    connection.execute("PRAGMA foreign_keys = ON")
    # WAL mode: readers continue while another process writes. The file remembers it, so later opens cost nothing.
    connection.execute("PRAGMA journal_mode = WAL")
    # A killed process loses nothing. A power failure may lose the last turns; preventing that would cost every
    # reader two disk flushes in each turn.
    connection.execute("PRAGMA synchronous = NORMAL")


def _begin_sqlite(connection: Connection) -> None:
    # A transaction that reads first and writes later cannot wait for another writer, so begin it as a write.
    writing = connection.get_execution_options().get("writing", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")


class PostgresqlDatabase:
    """A database on a PostgreSQL server."""

    def __init__(self, url: URL) -> None:
        query = dict(url.query)
        if "sslmode" in query:  # hosting services write sslmode; the driver calls it ssl
            query["ssl"] = query.pop("sslmode")
        self._engine: AsyncEngine = create_async_engine(
            url.set(drivername="postgresql+asyncpg", query=query),
            hide_parameters=True,
            pool_pre_ping=True,
            connect_args={"timeout": CONNECT_SECONDS, "command_timeout": COMMAND_SECONDS},
        )
        self._for_reading = self._engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)

    async def read(self, work: Callable[[Connection], T]) -> T:
        return await self._run(self._for_reading, work)

    async def write(self, work: Callable[[Connection], T]) -> T:
        return await self._run(self._engine, work)

    async def _run(self, engine: AsyncEngine, work: Callable[[Connection], T]) -> T:
        with _translate_errors():
            async with engine.begin() as connection:
                return await connection.run_sync(work)

    async def close(self) -> None:
        await self._engine.dispose()


def _version(connection: Connection) -> str | None:
    """The current migration of the tables; None if there are no tables. Raises an error if it is newer than this
    program.
    """
    if not connection.dialect.has_table(connection, "alembic_version"):
        return None
    version: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
    if version and version > VERSION:
        raise ConfigurationError("the conversation database was written by a newer bythebook. Install that one.")
    return version


def _upgrade(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATING})
    # Another process may have migrated while this one waited for the lock.
    version = _version(connection)
    if version == VERSION:
        return
    # Importing Alembic takes longer than storing a turn, and migrations are rare.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    if version is None:
        METADATA.create_all(connection)
        command.stamp(config, "head")
    else:
        command.upgrade(config, "head")


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Translate errors of SQLAlchemy and the drivers."""
    try:
        yield
    except DBAPIError as exc:
        code, words = str(getattr(exc.orig, "sqlstate", "")), str(exc.orig)
        if code.startswith(_OURS_TO_MEND) or any(trouble in words for trouble in _FILE_TROUBLE):
            raise ConfigurationError(f"the conversation database cannot be used: {words}. Check database.url.") from exc
        raise Unavailable(f"the conversation database failed: {words}") from exc
    except (PoolTimeout, OSError) as exc:
        raise Unavailable(f"the conversation database did not answer: {exc}") from exc
