"""The catalogue beside the shard."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from bythebook.errors import RetrievalError
from bythebook.index.catalog import Catalogue, ChunkRecord, PageRecord, Totals
from bythebook.index.terms import Tally

PAGES = [
    PageRecord("https://b/1", "docs", "1.md", "One", "f1", "Text of one."),
    PageRecord("https://b/2", "docs", "2.md", "Two", "f2", "中文"),
    PageRecord("https://b/3", "site", "3.html", "Three", "f3", ""),
]
CHUNKS = [
    ChunkRecord("c2", "https://b/1", "h2", "p2", 7, "One > Oil"),
    ChunkRecord("c1", "https://b/1", "h1", "p1", 5, "One"),
    ChunkRecord("c3", "https://b/2", "h3", "p3", 9, "Two"),
]


def tallied(terms: dict[int, int]) -> Tally:
    tally = Tally()
    tally.terms.update(terms)
    return tally


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "book.db"
    with closing(Catalogue.edit(path)) as catalogue:
        for page in PAGES:
            catalogue.put_page(page)
        for chunk in CHUNKS:
            catalogue.put_chunk(chunk)
        catalogue.count(tallied({10: 2, 11: 1, 12: 0}))
        catalogue.state("identity", {"model": "words", "dimension": 32})
    return path


def test_what_was_written_can_be_read(written: Path) -> None:
    with closing(Catalogue.open(written)) as catalogue:
        assert [catalogue.page(page.url) for page in PAGES] == PAGES
        assert catalogue.fingerprints("docs") == {"https://b/1": "f1", "https://b/2": "f2"}
        assert catalogue.sources() == {"docs": 2, "site": 1}
        assert catalogue.chunks(["https://b/1"]) == [CHUNKS[1], CHUNKS[0]]
        assert catalogue.chunks(["https://b/2", "https://b/1"]) == [CHUNKS[2], CHUNKS[1], CHUNKS[0]]
        assert catalogue.all_chunk_ids() == ["c1", "c2", "c3"]
        assert catalogue.totals() == Totals(pages=3, chunks=3, length=21)
        assert catalogue.fact("identity") == {"model": "words", "dimension": 32}
        assert catalogue.term_counts([10, 11, 12, 13]) == {10: 2, 11: 1, 12: 0, 13: 0}


def test_finding_nothing_is_an_empty_answer(written: Path) -> None:
    with closing(Catalogue.open(written)) as catalogue:
        assert catalogue.page("https://b/9") is None
        assert catalogue.fact("nothing") is None
        assert catalogue.fingerprints("nobody") == {}
        assert catalogue.chunks(["https://b/9"]) == []
        assert catalogue.term_counts([]) == {}


def test_an_edit_replaces_and_drops(written: Path) -> None:
    with closing(Catalogue.edit(written)) as catalogue:
        catalogue.put_page(PageRecord("https://b/1", "site", "1.html", "Uno", "f9", "Texto."))
        catalogue.drop_page("https://b/2")
        catalogue.drop_chunk("c3")
        catalogue.count(tallied({10: -2, 11: 1, 14: -1}))
        catalogue.state("identity", "another")
    with closing(Catalogue.open(written)) as catalogue:
        assert catalogue.sources() == {"site": 2}
        assert catalogue.all_chunk_ids() == ["c1", "c2"]
        assert catalogue.totals() == Totals(pages=2, chunks=2, length=12)
        assert catalogue.term_counts([10, 11, 14]) == {10: 0, 11: 2, 14: 0}
        assert catalogue.fact("identity") == "another"


def test_a_catalogue_of_an_earlier_version_reads_as_if_it_knew_no_words(written: Path) -> None:
    with closing(sqlite3.connect(written)) as connection:
        connection.executescript("DROP TABLE words; DROP TABLE abbreviations; DROP TABLE contents;")
    with closing(Catalogue.open(written)) as catalogue:
        assert catalogue.most_frequent(["lamp"]) == ""
        assert catalogue.abbreviations == {}
        assert [page.url for page in catalogue.listed()] == [page.url for page in PAGES]


def test_an_empty_catalogue_has_nothing(tmp_path: Path) -> None:
    with closing(Catalogue.edit(tmp_path / "book.db")) as catalogue:
        assert catalogue.totals() == Totals(0, 0, 0)
        assert catalogue.all_chunk_ids() == []


@pytest.mark.parametrize("content", [None, b"", b"not a database" * 100], ids=["missing", "empty", "damaged"])
def test_a_catalogue_that_cannot_be_read_says_what_to_do(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "book.db"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(RetrievalError, match="bythebook ingest"):
        Catalogue.open(path)


def test_reading_changes_no_byte(written: Path) -> None:
    before = written.read_bytes()
    with closing(Catalogue.open(written)) as catalogue:
        catalogue.totals()
    assert written.read_bytes() == before
    assert list(written.parent.iterdir()) == [written]
