"""The SQLite catalog of a generation."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from bythebook.errors import RetrievalError
from bythebook.index.catalog import Catalog, CatalogTotals, ChunkRecord, PageRecord
from bythebook.index.terms import VocabularyDelta

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


def tallied(terms: dict[int, int]) -> VocabularyDelta:
    delta = VocabularyDelta()
    delta.terms.update(terms)
    return delta


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "book.db"
    with closing(Catalog.edit(path)) as catalog:
        for page in PAGES:
            catalog.put_page(page)
        for chunk in CHUNKS:
            catalog.put_chunk(chunk)
        catalog.apply_delta(tallied({10: 2, 11: 1, 12: 0}))
        catalog.set_fact("identity", {"model": "words", "dimension": 32})
    return path


def test_reads_what_was_written(written: Path) -> None:
    with closing(Catalog.open(written)) as catalog:
        assert [catalog.get_page(page.url) for page in PAGES] == PAGES
        assert catalog.page_fingerprints("docs") == {"https://b/1": "f1", "https://b/2": "f2"}
        assert catalog.page_counts() == {"docs": 2, "site": 1}
        assert catalog.chunks_of_pages(["https://b/1"]) == [CHUNKS[1], CHUNKS[0]]
        assert catalog.chunks_of_pages(["https://b/2", "https://b/1"]) == [CHUNKS[2], CHUNKS[1], CHUNKS[0]]
        assert catalog.all_chunk_ids() == ["c1", "c2", "c3"]
        assert catalog.totals() == CatalogTotals(pages=3, chunks=3, length=21)
        assert catalog.get_fact("identity") == {"model": "words", "dimension": 32}
        assert catalog.term_counts([10, 11, 12, 13]) == {10: 2, 11: 1, 12: 0, 13: 0}


def test_missing_entries_give_empty_results(written: Path) -> None:
    with closing(Catalog.open(written)) as catalog:
        assert catalog.get_page("https://b/9") is None
        assert catalog.get_fact("nothing") is None
        assert catalog.page_fingerprints("nobody") == {}
        assert catalog.chunks_of_pages(["https://b/9"]) == []
        assert catalog.term_counts([]) == {}


def test_an_edit_replaces_and_deletes(written: Path) -> None:
    with closing(Catalog.edit(written)) as catalog:
        catalog.put_page(PageRecord("https://b/1", "site", "1.html", "Uno", "f9", "Texto."))
        catalog.drop_page("https://b/2")
        catalog.drop_chunk("c3")
        catalog.apply_delta(tallied({10: -2, 11: 1, 14: -1}))
        catalog.set_fact("identity", "another")
    with closing(Catalog.open(written)) as catalog:
        assert catalog.page_counts() == {"site": 2}
        assert catalog.all_chunk_ids() == ["c1", "c2"]
        assert catalog.totals() == CatalogTotals(pages=2, chunks=2, length=12)
        assert catalog.term_counts([10, 11, 14]) == {10: 0, 11: 2, 14: 0}
        assert catalog.get_fact("identity") == "another"


def test_missing_tables_of_an_earlier_version_read_as_empty(written: Path) -> None:
    with closing(sqlite3.connect(written)) as connection:
        connection.executescript("DROP TABLE words; DROP TABLE abbreviations; DROP TABLE contents;")
    with closing(Catalog.open(written)) as catalog:
        assert catalog.most_frequent(["lamp"]) == ""
        assert catalog.abbreviations == {}
        assert [page.url for page in catalog.table_of_contents()] == [page.url for page in PAGES]


def test_an_empty_catalog_has_no_entries(tmp_path: Path) -> None:
    with closing(Catalog.edit(tmp_path / "book.db")) as catalog:
        assert catalog.totals() == CatalogTotals(0, 0, 0)
        assert catalog.all_chunk_ids() == []


@pytest.mark.parametrize("content", [None, b"", b"not a database" * 100], ids=["missing", "empty", "damaged"])
def test_an_unreadable_catalog_says_what_to_do(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "book.db"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(RetrievalError, match="bythebook ingest"):
        Catalog.open(path)


def test_reading_does_not_change_the_file(written: Path) -> None:
    before = written.read_bytes()
    with closing(Catalog.open(written)) as catalog:
        catalog.totals()
    assert written.read_bytes() == before
    assert list(written.parent.iterdir()) == [written]
