"""An ingest on a Ray cluster builds the same index as one process, also if a worker is killed. Only at full size.

Ray takes 400 MB, so it is not a development dependency: `pip install 'bythebook[ray]'`.
"""

from __future__ import annotations

import importlib.util
import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import bythebook
from bythebook.embeddings.local import EMBEDDER_ID
from tests.support.index_contents import contents

WORDS = "lamp horn keeper oil page fog wick lens ship storm stair night log rope bell glass".split()
PAGES = 100
SOME_SKIPPED = 3
WORKING = b"Embedding)).submit"


@pytest.fixture(autouse=True)
def at_full_size(request: pytest.FixtureRequest) -> None:
    if not request.config.getoption("--full-size"):
        pytest.skip("starting a Ray cluster takes longer than all other tests of its kind: --full-size runs it")
    if importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is not installed: pip install 'bythebook[ray]'")


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    chance = random.Random(7)  # noqa: S311 - the same every time
    folder = tmp_path / "pages"
    folder.mkdir()
    for number in range(PAGES):
        sections = [f"## Section {number}.{place}\n\n{' '.join(chance.choices(WORDS, k=80))}." for place in range(4)]
        (folder / f"page{number}.md").write_text(f"# Page {number}\n\n" + "\n\n".join(sections))
    (folder / "empty.md").write_text("")  # An unreadable page is reported and skipped on a cluster too.
    return folder


def environment(folder: Path, models: Path) -> dict[str, str]:
    source = str(Path(bythebook.__file__).parents[1])
    known = {"PATH": os.environ["PATH"], "PYTHONPATH": source, "HOME": str(folder)}
    return known | {"BYTHEBOOK_MODEL_FOLDER": str(models), "BYTHEBOOK_RAY_WORKERS": "2"}


def start(pages: Path, data: Path, models: Path, *options: str, **more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "bythebook", "ingest", str(pages), "--data-dir", str(data), "--json", *options],
        env=environment(data.parent, models) | more,
        cwd=data.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(process: subprocess.Popen[str]) -> dict[str, object]:
    with process:
        output, errors = process.communicate(timeout=600)
    assert process.returncode == SOME_SKIPPED, errors
    report: dict[str, object] = json.loads(output)
    return report


def workers_at_work(home: Path) -> list[int]:
    """The worker processes of our cluster that are currently embedding."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            title = (process / "cmdline").read_bytes() if process.name.isdigit() else b""
            if title.startswith(b"ray::") and WORKING in title and os.fsencode(home) in _environment(process):
                found.append(int(process.name))
        except OSError:
            continue
    return found


def _environment(process: Path) -> bytes:
    return (process / "environ").read_bytes()


async def test_a_cluster_builds_the_same_index_after_a_worker_is_killed(
    pages: Path, tmp_path: Path, model_folder: Path
) -> None:
    alone = finished(start(pages, tmp_path / "alone", model_folder))
    process = start(pages, tmp_path / "fanned", model_folder, "--engine", "ray")
    killed = 0
    while not killed and process.poll() is None:
        if len(busy := workers_at_work(tmp_path)) == 2:
            os.kill(busy[0], signal.SIGKILL)
            killed = busy[0]
    fanned = finished(process)
    assert killed
    same = ("pages", "chunks", "embedded", "skipped", "added")
    assert [fanned[name] for name in same] == [alone[name] for name in same]
    assert fanned["embedded"] == 4 * PAGES
    mine, its = [await contents(tmp_path / name / "index", EMBEDDER_ID) for name in ("fanned", "alone")]
    assert mine == its
    # Without changes nothing is read, and no cluster is needed.
    assert finished(start(pages, tmp_path / "fanned", model_folder, "--engine", "ray"))["generation"] == ""


def test_a_missing_cluster_is_an_immediate_error(pages: Path, tmp_path: Path, model_folder: Path) -> None:
    nowhere = {"BYTHEBOOK_RAY_ADDRESS": "127.0.0.1:1"}
    with start(pages, tmp_path / "data", model_folder, "--engine", "ray", **nowhere) as process:
        _, errors = process.communicate(timeout=600)
    assert process.returncode == 1
    assert "the Ray cluster '127.0.0.1:1' could not be joined: [Errno 111] Connection refused" in errors
    assert "within 5 seconds" not in errors  # a message that Ray prints while it waits
