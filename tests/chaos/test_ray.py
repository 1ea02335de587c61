"""An ingest on a Ray cluster: the same index as one process makes, also when a worker is killed. Only at full size.

Ray is 400 MB installed, so it is no part of the development set-up: `pip install 'bythebook[ray]'`.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import random
import signal
import time
from pathlib import Path

import pytest

from bythebook.assemble import Book
from bythebook.ingest import Report
from bythebook.settings import Settings
from bythebook.vectors.local import IDENTITY
from index_contents import contents

WORDS = "lamp horn keeper oil page fog wick lens ship storm stair night log rope bell glass".split()
PAGES = 100
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
    (folder / "empty.md").write_text("")
    return folder


async def ingest(pages: Path, data: Path, models: Path, **settings: object) -> Report:
    chosen = Settings.load({"data_dir": data, "model_folder": models, **settings}, folder=data.parent)
    async with Book.open(chosen) as book:
        return await book.ingest(pages)


def workers_at_work() -> list[int]:
    found = []
    for process in Path("/proc").iterdir():
        try:
            title = (process / "cmdline").read_bytes() if process.name.isdigit() else b""
        except OSError:
            continue
        if title.startswith(b"ray::") and WORKING in title:
            found.append(int(process.name))
    return found


def kill_one(stop: list[bool]) -> list[int]:
    """Kill one of two workers while both are at work. Returns it."""
    while not stop:
        if len(busy := workers_at_work()) == 2:
            os.kill(busy[0], signal.SIGKILL)
            return busy[:1]
        time.sleep(0.001)
    return []


async def test_a_cluster_makes_the_same_index_also_when_a_worker_is_killed(
    pages: Path, tmp_path: Path, model_folder: Path
) -> None:
    alone = await ingest(pages, tmp_path / "alone", model_folder)
    stop: list[bool] = []
    killing = asyncio.create_task(asyncio.to_thread(kill_one, stop))
    fanned = await ingest(pages, tmp_path / "fanned", model_folder, engine="ray", ray_workers=2)
    stop.append(True)
    assert len(await killing) == 1
    assert (fanned.pages, fanned.chunks, fanned.embedded, fanned.skipped) == (
        alone.pages,
        alone.chunks,
        alone.embedded,
        alone.skipped,
    )
    mine, its = [await contents(tmp_path / name / "index", IDENTITY) for name in ("fanned", "alone")]
    assert mine == its
    # With nothing changed, nothing is read, and no cluster is needed.
    assert (await ingest(pages, tmp_path / "fanned", model_folder, engine="ray")).generation == ""
