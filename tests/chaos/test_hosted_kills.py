"""Killing an ingest with Cohere embeddings, while every fifth request fails. Only at full size: 200 times."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from bythebook.embeddings import EmbedderId
from tests.support.embedding_server import EmbeddingFault
from tests.support.index_contents import contents
from tests.support.ingest_kills import MOMENTS, Killing

DIMENSION, BATCH = 1024, 4
EMBEDDER = "cohere:scripted"
AT_ONCE, KILLS = (1, 4, 1, 4), 50
"""The concurrent requests of each round, and the kills per round."""
QUICK = [fault for fault in EmbeddingFault if fault not in (EmbeddingFault.HANG, EmbeddingFault.DRIP)]


@dataclass
class HostedKilling(Killing):
    """`IngestKiller` with a hosted embedder."""

    url: str = ""
    at_once: int = 1
    failed: int = 0
    """The number of runs that ended after three consecutive failures of the service."""

    @property
    def identity(self) -> EmbedderId:
        return EmbedderId(EMBEDDER, DIMENSION)

    def environment(self) -> dict[str, str]:
        return super().environment() | {
            "COHERE_API_KEY": "any",
            "BYTHEBOOK_EMBEDDER_URL": self.url,
            "BYTHEBOOK_EMBEDDER_BATCH": str(BATCH),
            "BYTHEBOOK_EMBEDDER_CONCURRENCY": str(self.at_once),
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
    """The URL of an embedding server in a separate process."""
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


async def test_a_killed_ingest_does_not_embed_received_texts_again(
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
        with killing.being_read() as seen:
            for killing.at_once in AT_ONCE:
                before = counters(failing)
                killing.kill_so_often(KILLS)
                killing.finish()
                # Only texts in flight are embedded twice: with one concurrent request, one batch per kill.
                assert _twice(counters(failing)) - _twice(before) <= killing.at_once * BATCH * KILLS
                clean = _made_anew(killing, sound)
                assert await contents(killing.index, killing.identity) == await contents(clean, killing.identity)
        counted = counters(failing)
    with capsys.disabled():
        _show(killing, counted, seen)
    assert all(killing.moments[name] for name in MOMENTS)
    assert len(seen) > len(AT_ONCE)


def _made_anew(killing: HostedKilling, url: str) -> Path:
    """The index of the same pages from an uninterrupted run without faults."""
    clean = HostedKilling(killing.folder / "clean", killing.model_folder, killing.chance, url=url)
    shutil.rmtree(clean.folder, ignore_errors=True)
    clean.folder.mkdir()
    clean.pages.symlink_to(killing.pages)
    clean.finish()
    return clean.index


def _twice(counted: dict[str, int]) -> int:
    """The number of texts that were embedded again."""
    return counted["texts"] - counted["distinct"]


def _show(killing: HostedKilling, counted: dict[str, int], seen: Counter[str]) -> None:
    lines = [
        f"{killing.moments.total()} kills of {killing.runs} runs; {killing.failed} left in peace ended by the service",
        f"{seen.total()} readings of {len(seen)} generations meanwhile",
        f"{counted['requests']} requests, {counted['ok']} answered whole",
        f"{counted['distinct']} texts, {_twice(counted)} of them twice",
        *(f"{times:4} when {name}" for name, times in killing.moments.items()),
    ]
    print("", *lines, sep="\n")  # noqa: T201
