"""Shared fixtures (embedding model, small book, databases, command line) and the markers `fast` and `slow`."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings as hypothesis_settings

from bythebook.book import Book
from bythebook.errors import ConfigurationError
from bythebook.models import REQUIRED, install
from bythebook.settings import Settings
from tests.support.postgres import Server, running_postgres

if TYPE_CHECKING:
    from bythebook.database.engine import Database
    from bythebook.testing import ScriptedServer

LIGHTHOUSE = Path(__file__).parent / "books" / "lighthouse"

# No deadline for examples, because the machine may be busy. In CI the examples are deterministic.
hypothesis_settings.register_profile("calm", deadline=None, derandomize=bool(os.environ.get("CI")))
hypothesis_settings.load_profile("calm")

# Only the tests of a live Qdrant server may use it. All other tests use local books.
for _name in ("QDRANT_URL", "QDRANT_API_KEY"):
    if _name in os.environ:
        os.environ[f"LIVE_{_name}"] = os.environ.pop(_name)

Run = Callable[..., "subprocess.CompletedProcess[str]"]
Opened = Callable[..., AbstractAsyncContextManager[Book]]


SLOW_FOLDERS = frozenset({"browser", "chaos", "contracts", "ingest", "journeys"})
SLOW_MODULES = frozenset(
    "test_hostile_html test_over_sockets test_qdrant_attached test_qdrant_client test_qdrant_generations test_quotes "
    "test_sandbox test_sitemap test_source".split()
)
SLOW_FIXTURES = frozenset({"bythebook", "model_folder", "postgres", "shelved"})
"""These start a process, load the embedding model, or build an index with it."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test as `fast` or `slow`: by folder, module, fixture, database, kind, or an explicit marker."""
    for item in items:
        folder = item.path.relative_to(Path(__file__).parent).parts[0]
        used = set(getattr(item, "fixturenames", ()))
        is_slow = folder in SLOW_FOLDERS or item.path.stem in SLOW_MODULES or used & SLOW_FIXTURES
        is_property = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
        if is_slow or is_property or "postgresql" in item.name or "hostile" in item.name:
            item.add_marker(pytest.mark.slow)
        if not item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.fast)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full-size", action="store_true", help="Run the chaos tests at full size.")
    parser.addoption("--collections", type=Path, help="A folder of public datasets, for tests that use them.")


@pytest.fixture(scope="session")
def collections(request: pytest.FixtureRequest) -> Path | None:
    """The folder of public datasets, if there is one. It is not part of this project."""
    folder: Path | None = request.config.getoption("--collections")
    return folder if folder and folder.is_dir() else None


@pytest.fixture(scope="session")
def model_folder() -> Path:
    """The folder of the local models. Without those of a new book a test is skipped; in CI it fails."""
    folder = Settings.load().model_folder
    try:
        for spec in REQUIRED:
            install.find(folder, spec)
    except ConfigurationError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no local models: {error}")
    return folder


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A real PostgreSQL server."""
    with running_postgres() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database, parametrised over SQLite and PostgreSQL."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/conversations.db"
    server: Server = request.getfixturevalue("postgres")
    return server.empty_database()


@pytest.fixture
async def database(url: str) -> AsyncIterator[Database]:
    """An open empty database with the current schema, parametrised over SQLite and PostgreSQL."""
    from bythebook.database.engine import open_database

    async with open_database(url) as opened:
        yield opened


@pytest.fixture
def lighthouse(tmp_path: Path) -> Path:
    """A copy of the source folder of the small book, which a test may change."""
    return Path(shutil.copytree(LIGHTHOUSE, tmp_path / "lighthouse"))


@pytest.fixture(scope="session")
def shelved(model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of the small book, ingested once, for tests that do not change it."""
    folder = tmp_path_factory.mktemp("shelved")

    async def ingest() -> None:
        settings = Settings.load({"data_dir": folder, "model_folder": model_folder}, folder=folder)
        async with Book.open(settings) as book:
            await book.ingest(LIGHTHOUSE)

    asyncio.run(ingest())
    return folder


@pytest.fixture
def opened(shelved: Path, model_folder: Path, tmp_path: Path) -> Opened:
    """Opens the small book with the model of this server, or without a model."""

    @asynccontextmanager
    async def open_book(server: ScriptedServer | None, **settings: object) -> AsyncIterator[Book]:
        chosen: dict[str, object] = {"data_dir": shelved, "model_folder": model_folder}
        chosen["database_url"] = f"sqlite:///{tmp_path / 'talks.db'}"
        # A slow machine must not fail a test. Tests of deadlines set their own.
        chosen |= {"first_token_seconds": 60.0, "answer_seconds": 120.0}
        if server:
            chosen |= {"base_url": server.base_url, "model": "scripted"}
        async with Book.open(Settings.load(chosen | settings, folder=tmp_path)) as book:
            yield book

    return open_book


def copied(shelved: Path, folder: Path) -> Path:
    """Copy the small book without the conversations of other tests."""
    return Path(shutil.copytree(shelved, folder, ignore=shutil.ignore_patterns("conversations.db*", "asked")))


@pytest.fixture
async def book(model_folder: Path, tmp_path: Path) -> AsyncIterator[Book]:
    """An open book without pages."""
    settings = Settings.load({"data_dir": tmp_path / "data", "model_folder": model_folder}, folder=tmp_path)
    async with Book.open(settings) as opened:
        yield opened


@pytest.fixture
def bythebook(model_folder: Path, tmp_path: Path) -> Run:
    """Runs the command line in an empty folder, isolated from the settings of this machine except for the model."""

    def run(*arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "BYTHEBOOK_MODEL_FOLDER": str(model_folder)}
        return subprocess.run(
            [sys.executable, "-m", "bythebook", *map(str, arguments)],
            cwd=tmp_path,
            env=environment | variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    return run
