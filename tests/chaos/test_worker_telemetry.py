"""Several workers from outside: their metrics are combined, and their log contains no secret (S9)."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
from pathlib import Path

import httpx
import pytest

from tests.support.live_server import ask, eventually, live, reading

KEY = "canary-key-5d1f"
PASSWORD = "canary-w0rd"  # noqa: S105 - a made up one
QUESTION = "How often does the fog horn sound?"
FAILED = 'bythebook_questions_total{outcome="api_error"}'


async def _figures(client: httpx.AsyncClient) -> dict[str, float]:
    lines = [line for line in (await client.get("/metrics")).text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


async def test_workers_share_metrics_and_log_no_secret(
    shelved: Path, model_folder: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if not request.config.getoption("--full-size"):
        pytest.skip("a crew of its own takes long to start; the parts are tested by themselves")
    data = Path(shutil.copytree(shelved, tmp_path / "data", ignore=shutil.ignore_patterns("*.db-*")))
    stale = data / "metrics" / "counter_1.db"
    stale.parent.mkdir(exist_ok=True)
    stale.touch()
    settings = {"model_folder": model_folder, "data_dir": data, "workers": 2, "log_level": "debug"}
    # Nothing listens on port 1, so every question ends with the same error, even on a slow machine.
    settings |= {"base_url": f"http://me:{PASSWORD}@127.0.0.1:1/v1", "api_key": KEY}
    settings |= {"first_token_seconds": 60, "answer_seconds": 120}
    with live(tmp_path, **settings) as server:
        assert not stale.exists()
        async with reading(server.url) as client:
            answers = await asyncio.gather(*(ask(client, QUESTION) for _ in range(4)))
            assert [answer.status_code for answer in answers] == [502] * 4
            # Every worker reports the questions of all workers.
            counted = [(await _figures(client))[FAILED] for _ in range(4)]
            assert counted == [4] * 4
            before = server.children()
            os.kill(before[0], signal.SIGKILL)
            await eventually(lambda: len(set(server.children()) - set(before)) == 1, "another worker")
            await eventually(lambda: _still(client), "the figures of the one that died")
        # The settings of a worker are not visible in the process list.
        listed = [_command_line(pid) for pid in (server.pid, *server.children())]
        said = "".join([server.said(), *listed, *(answer.text for answer in answers)])
    assert [canary for canary in (KEY, PASSWORD) if canary in said] == []
    _assert_told(server_log=said, ids={answer.headers["x-request-id"] for answer in answers})


def _command_line(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text()


async def _still(client: httpx.AsyncClient) -> bool:
    return (await _figures(client)).get(FAILED) == 4


def _assert_told(*, server_log: str, ids: set[str]) -> None:
    lines = [json.loads(line) for line in re.findall(r'^\{"time".*\}$', server_log, re.MULTILINE)]
    asked = [line for line in lines if line["event"] == "request" and line["route"] == "/v1/ask"]
    assert {line["request_id"] for line in asked} == ids
    assert {"question_failed", "call_retrying", "call_failed"} <= {line["event"] for line in lines}
