"""Killing `bythebook ingest`: the book stays readable, and the next run continues.

With `--full-size` two hundred runs are killed, at every boundary between stages and at random times.
"""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from bythebook.embeddings.local import EMBEDDER_ID, TASKS_PER_CORE
from bythebook.models.runtime import available_cores
from tests.support.index_contents import contents
from tests.support.ingest_kills import MOMENTS, Killing, show

if TYPE_CHECKING:
    import pytest


async def test_a_killed_ingest_keeps_the_book_intact_and_is_resumed(
    model_folder: Path, tmp_path: Path, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    rounds = [50] * 4 if request.config.getoption("--full-size") else [6]
    killing = Killing(tmp_path, model_folder, random.Random(len(rounds)))  # noqa: S311 - the same every time
    killing.pages.mkdir()
    for _ in range(10):
        killing.page()
    killing.finish()
    with killing.being_read() as seen:
        for kills in rounds:
            killing.kill_so_often(kills)
            report = killing.finish()
            assert report["pages"] == len(list(killing.pages.iterdir()))
            assert await contents(killing.index, EMBEDDER_ID) == await contents(_made_anew(killing), EMBEDDER_ID)

    with capsys.disabled():
        show(killing, seen)
    assert len(rounds) == 1 or all(killing.moments[name] for name in MOMENTS)
    assert killing.embedded_twice <= TASKS_PER_CORE * available_cores() * sum(rounds)
    assert len(seen) > len(rounds)
    assert not (killing.index / "draft").exists()


def _made_anew(killing: Killing) -> Path:
    """The index of the same pages from an uninterrupted run."""
    clean = Killing(killing.folder / "clean", killing.model_folder, killing.chance)
    shutil.rmtree(clean.folder, ignore_errors=True)
    clean.folder.mkdir()
    clean.pages.symlink_to(killing.pages)
    clean.finish()
    return clean.index
