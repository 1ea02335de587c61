"""A killed run is resumed from the checkpoint of its vectors."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import closing
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bythebook.embeddings import EmbedderId, iterate_texts
from bythebook.embeddings.checkpoint import VectorCheckpoint, read_checkpoint
from tests.support.index_contents import contents
from tests.support.word_embedder import DIMENSION, WordBook, WordEmbedder, vector_of

if TYPE_CHECKING:
    from bythebook.embeddings import Texts, Vector

IDENTITY = EmbedderId("words", DIMENSION)
RECORD = 32 + 4 * DIMENSION + 4


def key(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def write(folder: Path, *texts: str) -> Path:
    with closing(VectorCheckpoint(folder, IDENTITY)) as journal:
        for text in texts:
            journal.add(key(text), vector_of(text))
    (path,) = folder.glob("*.journal")
    return path


def known(folder: Path) -> dict[str, bytes]:
    return {name: vector.tobytes() for name, vector in read_checkpoint(folder, IDENTITY).items()}


def expected(*texts: str) -> dict[str, bytes]:
    return {key(text): vector_of(text).tobytes() for text in texts}


def test_restores_vectors_exactly(tmp_path: Path) -> None:
    assert write(tmp_path, "a", "b", "c").stat().st_size == 3 * RECORD
    assert known(tmp_path) == expected("a", "b", "c")


def test_an_empty_checkpoint_creates_no_file(tmp_path: Path) -> None:
    assert read_checkpoint(tmp_path / "nowhere", IDENTITY) == {}
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("torn", [1, 31, RECORD // 2, RECORD - 1])
def test_overwrites_a_truncated_record(tmp_path: Path, torn: int) -> None:
    path = write(tmp_path, "a", "b", "c")
    with path.open("r+b") as file:
        file.truncate(2 * RECORD + torn)

    assert known(tmp_path) == expected("a", "b")
    write(tmp_path, "d")
    assert known(tmp_path) == expected("a", "b", "d")
    assert path.stat().st_size == 3 * RECORD


@pytest.mark.parametrize("place", [0, 40, RECORD - 1], ids=["in its name", "in its vector", "in its check"])
def test_ignores_records_after_a_damaged_one(tmp_path: Path, place: int) -> None:
    path = write(tmp_path, "a", "b", "c")
    data = bytearray(path.read_bytes())
    data[RECORD + place] ^= 1
    path.write_bytes(data)

    assert known(tmp_path) == expected("a")
    write(tmp_path, "d")
    assert known(tmp_path) == expected("a", "d")


def test_each_embedder_has_its_own_checkpoint(tmp_path: Path) -> None:
    write(tmp_path, "a")
    assert read_checkpoint(tmp_path, EmbedderId("other", DIMENSION)) == {}
    assert read_checkpoint(tmp_path, EmbedderId("words", DIMENSION * 2)) == {}


def test_a_cleared_checkpoint_is_empty_and_usable(tmp_path: Path) -> None:
    with closing(VectorCheckpoint(tmp_path, IDENTITY)) as journal:
        journal.add(key("a"), vector_of("a"))
        journal.clear()
        assert journal.vectors == {}
        journal.add(key("b"), vector_of("b"))
    assert known(tmp_path) == expected("b")


@dataclass(slots=True)
class FailingEmbedder(WordEmbedder):
    """Fails after `works_for` texts."""

    works_for: int = 0

    async def embed_documents(self, texts: Texts) -> AsyncGenerator[Vector]:
        number = 0
        async for text in iterate_texts(texts):
            if number == self.works_for:
                raise RuntimeError("broken")
            number += 1
            yield vector_of(text)


async def test_a_resumed_run_embeds_only_the_missing_chunks(tmp_path: Path, lighthouse: Path) -> None:
    clean = WordBook(tmp_path / "clean")
    whole = await clean.ingest(lighthouse)
    book = WordBook(tmp_path / "index", embedder=FailingEmbedder(works_for=6))
    with pytest.raises(RuntimeError, match="broken"):
        await book.ingest(lighthouse)
    book = WordBook(tmp_path / "index")

    assert book.generations.current() == ""
    assert (await book.plan_ingest(lighthouse)).embedded == whole.embedded - 6
    report = await book.ingest(lighthouse)

    assert (report.embedded, report.chunks) == (whole.embedded - 6, whole.chunks)
    assert await contents(book.folder, IDENTITY) == await contents(clean.folder, IDENTITY)
    (journal,) = book.folder.glob("*.journal")
    assert journal.stat().st_size == 0


async def test_ignores_checkpointed_vectors_of_changed_pages(tmp_path: Path, lighthouse: Path) -> None:
    book = WordBook(tmp_path / "index", embedder=FailingEmbedder(works_for=9))
    with pytest.raises(RuntimeError, match="broken"):
        await book.ingest(lighthouse)
    for page in lighthouse.rglob("*.md"):  # noqa: ASYNC240
        page.write_text(page.read_text().replace("lamp", "torch").replace("the", "a"))
    book, clean = WordBook(tmp_path / "index"), WordBook(tmp_path / "clean")
    await book.ingest(lighthouse)
    await clean.ingest(lighthouse)
    assert await contents(book.folder, IDENTITY) == await contents(clean.folder, IDENTITY)
