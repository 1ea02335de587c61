"""Killing an ingest whose vectors Cohere sends, who fails for every fifth request. Only at full size: 200 times."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from killing import Killing

from bythebook.testing import EmbeddingFault
from bythebook.vectors import Identity
from index_contents import contents

DIMENSION, BATCH, AT_ONCE = 1024, 4, 4
EMBEDDER = "cohere:scripted"
ROUNDS = [50] * 4
QUICK = [fault for fault in EmbeddingFault if fault not in (EmbeddingFault.HANG, EmbeddingFault.DRIP)]


@dataclass
class HostedKilling(Killing):
    """The same with a service's vectors."""

    url: str = ""
    failed: int = 0
    """How many runs ended because the service failed three times in a row."""

    @property
    def record(self) -> int:
        return 32 + 4 * DIMENSION + 4

    def environment(self) -> dict[str, str]:
        return super().environment() | {
            "COHERE_API_KEY": "any",
            "BYTHEBOOK_EMBEDDER_URL": self.url,
            "BYTHEBOOK_EMBEDDER_BATCH": str(BATCH),
            "BYTHEBOOK_EMBEDDER_AT_ONCE": str(AT_ONCE),
        }

    def command(self) -> list[object]:
        return [sys.executable, "-m", "bythebook", "ingest", self.pages, "--embedder", EMBEDDER]

    def finish(self) -> dict[str, int]:
        for _ in range(20):
            with self.start() as process:
                output, errors = process.communicate(timeout=300)
            if process.returncode == 0:
                report: dict[str, int] = json.loads(output)
                return report
            assert "goes on from there" in errors, errors
            self.failed += 1
        pytest.fail("it never came to an end")


def counters(url: str) -> dict[str, int]:
    with urllib.request.urlopen(f"{url}/counters", timeout=60) as answer:  # noqa: S310 - our own server
        found: dict[str, int] = json.load(answer)
    return found


@contextmanager
def service(*, failing: float) -> Iterator[str]:
    """The address of a service in a process of its own."""
    options = ["--embeddings", "--port", "0", "--fail", str(failing), "--dimension", str(DIMENSION)]
    faults = [option for fault in QUICK for option in ("--fault", fault)]
    command = [sys.executable, "-m", "bythebook.testing", *options, *faults]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        address = re.search(r"http://[\d.:]+", process.stderr.readline())
        assert address
        try:
            yield address.group()
        finally:
            process.kill()


async def test_a_killed_ingest_does_not_pay_twice_for_what_it_was_sent(
    model_folder: Path, tmp_path: Path, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    if not request.config.getoption("--full-size"):
        pytest.skip("every run loads Cohere's client, which takes seconds: --full-size kills two hundred of them")
    with service(failing=0.2) as failing, service(failing=0.0) as sound:
        chance = random.Random(1)  # noqa: S311 - the same every time
        killing = HostedKilling(tmp_path, model_folder, chance, url=failing)
        killing.pages.mkdir()
        for _ in range(10):
            killing.page()
        killing.finish()
        for kills in ROUNDS:
            killing.kill_so_often(kills)
            killing.finish()
        clean = HostedKilling(tmp_path / "clean", model_folder, chance, url=sound)
        clean.folder.mkdir()
        clean.pages.symlink_to(killing.pages)
        clean.finish()
        identity = Identity(EMBEDDER, DIMENSION)
        assert await contents(killing.index, identity) == await contents(clean.index, identity)
        counted = counters(failing)
    with capsys.disabled():
        _show(killing, counted)
    assert counted["texts"] - counted["distinct"] <= AT_ONCE * BATCH * sum(ROUNDS)


def _show(killing: HostedKilling, counted: dict[str, int]) -> None:
    kills, twice = killing.moments.total(), counted["texts"] - counted["distinct"]
    lines = [
        f"{kills} kills of {killing.runs} runs; {killing.failed} runs ended because the service failed",
        f"{counted['requests']} requests, {counted['ok']} answered whole, {counted['distinct']} texts, {twice} twice",
        *(f"{times:4} when {name}" for name, times in killing.moments.items()),
    ]
    print("", *lines, sep="\n")  # noqa: T201
