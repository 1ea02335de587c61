"""Opening a database: URLs, errors and tables."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

import bythebook.database
from bythebook.conversations import Conversation, Message
from bythebook.conversations.store import open_conversations
from bythebook.database.engine import open_database
from bythebook.database.schema import METADATA, VERSION
from bythebook.errors import BookError, ConfigurationError, Unavailable

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from tests.support.postgres import Server

STARTED = Conversation([Message("system", "Answer from the book.")])


async def test_a_new_database_has_the_tables_of_the_schema(url: str) -> None:
    def differences(connection: Connection) -> list[object]:
        return list(compare_metadata(MigrationContext.configure(connection), METADATA))

    async with open_database(url) as database:
        assert await database.read(differences) == []


def test_the_version_is_the_newest_migration() -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(bythebook.database.__file__).parent / "migrations"))
    config.set_main_option("path_separator", "os")
    assert ScriptDirectory.from_config(config).get_current_head() == VERSION


async def test_reopening_keeps_the_data(url: str) -> None:
    async with open_conversations(url) as conversations:
        await conversations.create(STARTED)
    async with open_conversations(url) as conversations:
        assert await conversations.load(STARTED.id, user_id="") == STARTED


def test_opening_a_current_database_does_not_import_alembic(tmp_path: Path) -> None:
    script = (
        "import asyncio, sys\n"
        "from bythebook.conversations.store import open_conversations\n"
        "async def main():\n"
        "    async with open_conversations(sys.argv[1]): print('alembic' in sys.modules)\n"
        "asyncio.run(main())"
    )
    command = [sys.executable, "-c", script, f"sqlite:///{tmp_path}/conversations.db"]
    assert [subprocess.check_output(command, text=True) for _ in range(2)] == ["True\n", "False\n"]


def test_importing_the_models_does_not_import_sqlalchemy() -> None:
    script = "import sys, bythebook.conversations; print({'sqlalchemy', 'asyncpg', 'alembic'} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", script], text=True) == "set()\n"


async def test_a_newer_database_is_refused(url: str) -> None:
    async with open_database(url) as database:
        await database.write(
            lambda connection: connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9'")
        )
    with pytest.raises(ConfigurationError, match="newer bythebook"):
        async with open_conversations(url):
            pass


@pytest.mark.parametrize(
    ("url", "error", "complaint"),
    [
        pytest.param("conversations.db", ConfigurationError, "not a URL", id="a path"),
        pytest.param("sqlite://", ConfigurationError, "must name a file", id="SQLite in memory"),
        pytest.param("mysql://localhost/x", ConfigurationError, "'mysql'", id="another database"),
        pytest.param("sqlite:////proc/no/such.db", ConfigurationError, "can be no", id="a folder that cannot be"),
        pytest.param(
            "sqlite:////proc/x.db", ConfigurationError, "there can be no database", id="a file that cannot be"
        ),
        pytest.param("postgresql://127.0.0.1:1/x", Unavailable, "did not answer", id="no server there"),
        pytest.param(
            "postgres://u:secret@127.0.0.1:1/x?sslmode=disable", Unavailable, "did not", id="as hosts write it"
        ),
    ],
)
async def test_an_unusable_database_url_is_a_configuration_error(
    url: str, error: type[BookError], complaint: str
) -> None:
    with pytest.raises(error, match=complaint) as caught:
        async with open_conversations(url):
            pass
    assert "secret" not in str(caught.value)


async def test_a_missing_postgresql_database_is_a_configuration_error(postgres: Server) -> None:
    with pytest.raises(ConfigurationError, match="does not exist"):
        async with open_conversations(postgres.empty_database().replace("/postgres?", "/elsewhere?")):
            pass


async def test_a_file_that_is_not_a_database_is_a_configuration_error(tmp_path: Path) -> None:
    (tmp_path / "book.db").write_text("Once upon a time, long before there were databases." * 100)
    with pytest.raises(ConfigurationError, match="not a database"):
        async with open_conversations(f"sqlite:///{tmp_path}/book.db"):
            pass


async def test_the_folder_of_the_database_file_is_created(tmp_path: Path) -> None:
    async with open_conversations(f"sqlite:///{tmp_path}/new/100 %/conversations.db") as conversations:
        await conversations.create(STARTED)
    assert (tmp_path / "new" / "100 %" / "conversations.db").is_file()


async def test_a_locked_file_is_unavailable_until_it_is_released(tmp_path: Path) -> None:
    async with open_conversations(f"sqlite:///{tmp_path}/conversations.db?timeout=0.05") as conversations:
        other = sqlite3.connect(tmp_path / "conversations.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Unavailable, match="locked"):
            await conversations.create(STARTED)
        assert await conversations.latest(user_id="", limit=9) == []
        other.execute("ROLLBACK")
        other.close()
        await conversations.create(STARTED)


async def test_a_stopped_server_is_unavailable_until_it_restarts(postgres: Server) -> None:
    async with open_conversations(postgres.empty_database()) as conversations:
        await conversations.create(STARTED)
        with postgres.stopped(), pytest.raises(Unavailable):
            await conversations.load(STARTED.id, user_id="")
        assert await conversations.load(STARTED.id, user_id="") == STARTED
