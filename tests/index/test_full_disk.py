"""A book on a full or read-only disk can be read, and an ingest says that it needs room. (HARDENING R13, R16)"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from bythebook.errors import Unavailable
from tests.support.word_embedder import WordBook

MOUNT, UMOUNT = (shutil.which(name) or name for name in ("mount", "umount"))


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small file system of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    made = subprocess.run([MOUNT, "-t", "tmpfs", "-o", "size=400m", "tmpfs", folder], capture_output=True, check=False)
    if made.returncode:
        pytest.skip("this user may not mount a file system")
    yield folder
    subprocess.run([UMOUNT, folder], check=True)


async def book_on(disk: Path, pages: Path) -> WordBook:
    book = WordBook(disk / "index")
    await asyncio.to_thread(pages.mkdir)
    (pages / "lamp.md").write_text("# The Lamp\n\nThe lamp burns whale oil.\n")
    await book.ingest(pages)
    return book


def protect(disk: Path) -> None:
    subprocess.run([MOUNT, "-o", "remount,ro", disk], check=True)


def fill(disk: Path, *, leave: int) -> None:
    (disk / "filling").write_bytes(bytes(max(shutil.disk_usage(disk).free - leave, 0)))


@pytest.mark.parametrize("state", ["full", "nearly full", "read-only"])
async def test_a_book_on_a_disk_that_cannot_be_written_answers(disk: Path, tmp_path: Path, state: str) -> None:
    book = await book_on(disk, tmp_path / "pages")
    if state == "read-only":
        protect(disk)
    else:
        fill(disk, leave=0 if state == "full" else 200_000)
    (answer,) = await book.ask("What does the lamp burn?")
    assert "whale oil" in answer.answer


async def test_an_ingest_that_needs_room_says_so_and_changes_nothing(disk: Path, tmp_path: Path) -> None:
    book = await book_on(disk, tmp_path / "pages")
    (tmp_path / "pages" / "new.md").write_text("# New\n\nThe cellar has more oil.\n")
    fill(disk, leave=300_000)
    with pytest.raises(Unavailable, match=r"MB free for writing.*Make room"):
        await book.ingest(tmp_path / "pages")
    (answer,) = await book.ask("What does the lamp burn?")
    assert "whale oil" in answer.answer
