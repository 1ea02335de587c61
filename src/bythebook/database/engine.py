"""An open database, SQLite or PostgreSQL by its URL, with the newest tables in it.

Work is a plain function of a connection and runs in one transaction. For PostgreSQL it waits without holding up the
event loop. For SQLite it runs in a thread, whole: handing over each statement by itself, as asynchronous drivers of
SQLite do, takes several times as long as the statements.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from sqlalchemy import create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import create_async_engine

from bythebook.database.schema import VERSION
from bythebook.errors import ConfigurationError, Unavailable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from sqlalchemy import URL, Connection, Engine
    from sqlalchemy.ext.asyncio import AsyncEngine

T = TypeVar("T")

READERS = 4
BUSY_SECONDS = 5.0
CONNECT_SECONDS = 5.0
COMMAND_SECONDS = 10.0

_MIGRATING = 0x62797468
"""The PostgreSQL advisory lock that one migrating process holds: any number nobody else in the database uses."""

_OURS_TO_MEND = ("28", "3D", "42501")
"""PostgreSQL's codes for a wrong password, a database that is not there, and missing rights."""

_FILE_TROUBLE = ("unable to open", "not a database", "readonly", "malformed")


class Database(Protocol):
    """Somewhere to read and write. Its errors are ours."""

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Do this with a connection that sees everything as of one moment."""
        ...

    async def write(self, work: Callable[[Connection], T]) -> T:
        """Do this and keep all it changed, or nothing if it fails."""
        ...

    async def close(self) -> None: ...


@asynccontextmanager
async def open_database(url: str) -> AsyncIterator[Database]:
    """The database with the newest tables in it. Several processes may open it at once, also for the first time."""
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
            return Sqlite(known)
        if kind in {"postgresql", "postgres"}:
            return Postgresql(known)
    except ArgumentError as exc:
        raise ConfigurationError("database.url is not a URL. Use sqlite:///FILE or postgresql://HOST/NAME.") from exc
    except ModuleNotFoundError as exc:
        raise ConfigurationError("PostgreSQL needs a driver. Run: pip install 'bythebook[postgres]'.") from exc
    raise ConfigurationError(f"database.url names {kind!r}; only sqlite and postgresql are supported.")


class Sqlite:
    """A SQLite file that several processes may have open."""

    def __init__(self, url: URL) -> None:
        if not url.database or url.database == ":memory:":
            raise ConfigurationError("database.url must name a file, as in sqlite:///conversations.db.")
        try:
            Path(url.database).parent.mkdir(parents=True, exist_ok=True)
        except OSError as exc:
            raise ConfigurationError(f"there can be no database at {url.database}: {exc}. Check database.url.") from exc
        patient = url.set(drivername="sqlite", query={"timeout": str(BUSY_SECONDS), **url.query})
        self._engine = create_engine(patient, hide_parameters=True)
        event.listen(self._engine, "connect", _prepare_sqlite)
        event.listen(self._engine, "begin", _begin_sqlite)
        self._for_writing = self._engine.execution_options(writing=True)
        self._readers = ThreadPoolExecutor(READERS, "conversations-read")
        # SQLite has one writer. Those of this process queue here, which is fairer than its sleeping and trying again.
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
    with _speaking_to_the_database(), engine.begin() as connection:
        return work(connection)


def _prepare_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # Python's own would begin transactions too late: see _begin_sqlite.
    connection.execute("PRAGMA foreign_keys = ON")
    # Readers go on while another process writes. The file remembers it, so that this costs nothing the next time.
    connection.execute("PRAGMA journal_mode = WAL")
    # A process that is killed loses nothing by it. Only when the power goes may the last few turns go too, and for
    # that a reader would wait for the disk twice in every turn.
    connection.execute("PRAGMA synchronous = NORMAL")


def _begin_sqlite(connection: Connection) -> None:
    # A transaction that reads first and writes later cannot wait for another writer: it must be one from the start.
    writing = connection.get_execution_options().get("writing", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")


class Postgresql:
    """A database on a PostgreSQL server."""

    def __init__(self, url: URL) -> None:
        query = dict(url.query)
        if "sslmode" in query:  # as every hosting service writes it; the driver calls it ssl
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
        with _speaking_to_the_database():
            async with engine.begin() as connection:
                return await connection.run_sync(work)

    async def close(self) -> None:
        await self._engine.dispose()


def _version(connection: Connection) -> str | None:
    """The migration the tables are at, None before the first. A newer one than ours is refused."""
    if not connection.dialect.has_table(connection, "alembic_version"):
        return None
    version: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
    if version and version > VERSION:
        raise ConfigurationError("the conversation database was written by a newer bythebook. Install that one.")
    return version


def _upgrade(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATING})
    # Another process may have been first while this one waited for the lock.
    if _version(connection) == VERSION:
        return
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
    except DBAPIError as exc:
        code, words = str(getattr(exc.orig, "sqlstate", "")), str(exc.orig)
        if code.startswith(_OURS_TO_MEND) or any(trouble in words for trouble in _FILE_TROUBLE):
            raise ConfigurationError(f"the conversation database cannot be used: {words}. Check database.url.") from exc
        raise Unavailable(f"the conversation database failed: {words}") from exc
    except (PoolTimeout, OSError) as exc:
        raise Unavailable(f"the conversation database did not answer: {exc}") from exc
