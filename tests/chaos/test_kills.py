"""Killing `bythebook ingest` at any moment: the book stays readable, and the next run goes on where it was.

With `--full-size` two hundred runs are killed, at every boundary between two stages and at any time.
"""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from bythebook.embeddings.minilm.embedder import AHEAD, IDENTITY, cores
from tests.support.index_contents import contents
from tests.support.ingest_kills import MOMENTS, Killing, show

if TYPE_CHECKING:
    import pytest


async def test_a_killed_ingest_leaves_a_whole_book_and_is_taken_up_again(
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
            assert await contents(killing.index, IDENTITY) == await contents(_made_anew(killing), IDENTITY)

    with capsys.disabled():
        show(killing, seen)
    assert len(rounds) == 1 or all(killing.moments[name] for name in MOMENTS)
    assert killing.embedded_twice <= AHEAD * cores() * sum(rounds)
    assert len(seen) > len(rounds)
    assert not (killing.index / "draft").exists()


def _made_anew(killing: Killing) -> Path:
    """The index of the same pages, made by a run that nobody disturbed."""
    clean = Killing(killing.folder / "clean", killing.model_folder, killing.chance)
    shutil.rmtree(clean.folder, ignore_errors=True)
    clean.folder.mkdir()
    clean.pages.symlink_to(killing.pages)
    clean.finish()
    return clean.index
