"""Damage to a published index is noticed when it is opened, and the advice of the message mends it. (HARDENING R16)"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from bythebook.errors import RetrievalError
from tests.support.word_embedder import WordBook

PAGE = "# The Lamp\n\nThe lamp burns whale oil.\n\n## Fog\n\nThe horn sounds every minute.\n"


@pytest.fixture
async def book(tmp_path: Path) -> WordBook:
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "lamp.md").write_text(PAGE)
    book = WordBook(tmp_path / "index")
    await book.ingest(tmp_path / "pages")
    return book


def flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[random.Random(1).randrange(len(data))] ^= 0x10  # noqa: S311 - the same byte every time
    file.write_bytes(data)


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def empty(file: Path) -> None:
    file.write_bytes(b"")


@pytest.mark.parametrize("damage", [flip, cut, empty, Path.unlink])
async def test_every_damaged_file_is_noticed_and_a_rebuild_mends_it(book: WordBook, damage: object) -> None:
    assert callable(damage)
    folder = book.folder / book.generations.current()
    for file in sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size):
        if file.name in ("LOCK", "MANIFEST"):
            continue
        whole = file.read_bytes()
        damage(file)
        with pytest.raises(RetrievalError, match=r"the index is damaged.*bythebook ingest --rebuild"):
            await book.ask("What does the lamp burn?")
        file.write_bytes(whole)
    (answer,) = await book.ask("What does the lamp burn?")
    assert "whale oil" in answer.answer


@pytest.mark.parametrize("name", ["CURRENT", "LOCK", "MANIFEST", "book.db", "shard"])
async def test_a_rebuild_mends_what_cannot_be_opened(book: WordBook, name: str) -> None:
    folder = book.folder / book.generations.current()
    if name == "shard":
        for file in (folder / name).rglob("*.json"):
            file.unlink()
    elif name == "LOCK":
        (folder / name).unlink()
    else:
        (book.folder / name if name == "CURRENT" else folder / name).write_bytes(b"\xff\xfe" * 1000)
    with pytest.raises(RetrievalError, match="the index is damaged"):
        await book.ask("What does the lamp burn?")
    await book.ingest(book.folder.parent / "pages", rebuild=True)
    (answer,) = await book.ask("What does the lamp burn?")
    assert "whale oil" in answer.answer


async def test_a_server_keeps_its_generation_when_the_next_one_is_damaged(book: WordBook) -> None:
    with book.index_provider() as index:
        async with index.snapshot() as before:
            pass
        (book.folder.parent / "pages" / "new.md").write_text("# Oil\n\nIt is kept in the cellar.\n")
        await book.ingest(book.folder.parent / "pages")
        cut(book.folder / book.generations.current() / "book.db")
        async with index.snapshot() as after:
            assert after.name == before.name
