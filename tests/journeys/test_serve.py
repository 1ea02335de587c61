"""`bythebook serve`: its output, its errors, its workers and its shutdown."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from bythebook.cli.serve import serve
from bythebook.errors import ConfigurationError, InputError, NotFound
from bythebook.server.serve import bind, format_url
from bythebook.settings import Settings
from tests.support.live_server import PATIENCE, ask, eventually, is_ready, live, reading

QUESTION = "How often does the fog horn sound?"


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_port_in_use_is_an_error_with_its_number() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(ConfigurationError, match=rf"port {port} of 127\.0\.0\.1 is in use.*--port"):
            serve(port=port)


def test_a_foreign_host_is_an_error_with_its_name() -> None:
    with pytest.raises(ConfigurationError, match=r"does not have the address 192\.0\.2\.1"):
        serve(host="192.0.2.1", port=0)


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "localhost"])  # noqa: S104 - nothing listens there
def test_the_announced_url_is_usable(host: str) -> None:
    with bind(host, 0) as bound:
        assert format_url(bound) == f"http://127.0.0.1:{bound.getsockname()[1]}"


def test_a_server_needs_at_least_one_worker() -> None:
    with pytest.raises(ConfigurationError, match="workers must be from 1"):
        serve(workers=0)


def test_a_server_needs_a_book(model_folder: Path) -> None:
    with pytest.raises(NotFound, match="there is no book yet"):
        serve(port=0)


def test_a_missing_folder_is_an_error_with_its_name() -> None:
    with pytest.raises(InputError, match="there is no folder or file 'nowhere'"):
        serve(port=0, ingest=Path("nowhere"))


def test_watching_needs_a_folder() -> None:
    with pytest.raises(InputError, match="--ingest FOLDER"):
        serve(port=0, watch=True)


async def test_workers_share_a_port_and_a_dead_one_is_replaced(
    shelved: Path, model_folder: Path, tmp_path: Path
) -> None:
    database = f"sqlite:///{tmp_path / 'talks.db'}"
    with live(tmp_path, "--workers", "2", data_dir=shelved, model_folder=model_folder, database_url=database) as server:
        first = set(server.children())
        assert len(first) == 2
        assert server.said().count("warning: without a key") == 1
        killed = min(first)
        os.kill(killed, signal.SIGKILL)
        await eventually(lambda: len(set(server.children()) - first) == 1, "another worker")
        await eventually(lambda: _answers(server.url), "an answer")
        workers = server.children()
        server.tell(signal.SIGINT)
        assert server.ended() == 130
        assert "A worker exited with code -9" in server.said()
    assert not any(map(_runs, workers))


def _runs(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


async def _answers(url: str) -> bool:
    async with reading(url) as client:
        return (await ask(client, QUESTION)).status_code == 200


async def test_a_worker_without_supervisor_releases_its_port(shelved: Path, model_folder: Path, tmp_path: Path) -> None:
    chosen = {"data_dir": shelved, "model_folder": model_folder, "database_url": f"sqlite:///{tmp_path / 'talks.db'}"}
    settings = Settings.load(chosen, folder=tmp_path)
    with bind("127.0.0.1", 0) as bound:
        url, worker = format_url(bound), _worker(bound, settings)
    with worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        assert json.loads(worker.stdout.readline())["open"] is True
        async with reading(url) as client:
            assert await is_ready(client)
            worker.stdin.close()
            assert worker.wait(PATIENCE) == 0
            with pytest.raises(httpx.ConnectError):
                await is_ready(client)


def _worker(bound: socket.socket, settings: Settings) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "bythebook.server.worker"]
    pipe = subprocess.PIPE
    worker = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, pass_fds=[bound.fileno()])
    assert worker.stdin is not None
    worker.stdin.write(json.dumps({"socket": bound.fileno(), "settings": settings.to_arguments()}) + "\n")
    worker.stdin.flush()
    return worker


def test_a_second_interrupt_ends_an_unresponsive_ingest() -> None:
    script = """
import asyncio, time
from bythebook.server.signals import handle_signals

async def main():
    with handle_signals() as stop:
        print("listening", flush=True)
        while not stop.interrupted:
            time.sleep(0.01)
        print("heard", flush=True)
        while True:
            time.sleep(0.01)

asyncio.run(main())
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "listening\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "heard\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 130
