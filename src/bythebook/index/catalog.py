"""The catalog of a generation: its pages, their chunks, and term statistics.

One SQLite file next to the shard. It is written with the generation and never changed after it is published.
"""

from __future__ import annotations

import json
import re
import sqlite3
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from bythebook.errors import RetrievalError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from bythebook.index.terms import VocabularyDelta

_SCHEMA = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS pages (
    url TEXT PRIMARY KEY, source TEXT NOT NULL, path TEXT NOT NULL, title TEXT NOT NULL, fingerprint TEXT NOT NULL,
    text TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS chunks (
    chunk_id TEXT PRIMARY KEY, url TEXT NOT NULL, content_hash TEXT NOT NULL, fingerprint TEXT NOT NULL,
    length INTEGER NOT NULL, headings TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS contents (
    url TEXT PRIMARY KEY, source TEXT NOT NULL, position INTEGER NOT NULL, module TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS chunks_by_url ON chunks (url);
CREATE TABLE IF NOT EXISTS terms (term INTEGER PRIMARY KEY, count INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS words (word TEXT PRIMARY KEY, count INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS entries (
    entry TEXT NOT NULL, chunk_id TEXT NOT NULL, PRIMARY KEY (entry, chunk_id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS entries_by_chunk ON entries (chunk_id);
CREATE TABLE IF NOT EXISTS abbreviations (
    short TEXT NOT NULL, long TEXT NOT NULL, count INTEGER NOT NULL, PRIMARY KEY (short, long)
) WITHOUT ROWID;
"""
_TABLE = re.compile(r"CREATE TABLE IF NOT EXISTS (\w+)")


class PageRecord(NamedTuple):
    """A page of the generation, as it was ingested."""

    url: str
    source: str
    path: str
    title: str
    fingerprint: str
    """A hash of everything its chunks depend on: equal fingerprints mean equal chunks."""
    text: str


class ChunkRecord(NamedTuple):
    """The data of a chunk that is available without the search engine."""

    chunk_id: str
    url: str
    content_hash: str
    fingerprint: str
    """A hash of the whole chunk and its position in the page: if it changes, the stored chunk must be replaced."""
    length: int
    """In BM25 terms."""
    headings: str


class TocEntry(NamedTuple):
    """A page in the table of contents."""

    url: str
    path: str
    title: str
    headings: tuple[str, ...]
    """The headings of its sections, without the page title."""
    module: str = ""


class CatalogTotals(NamedTuple):
    """The number of pages and chunks, and the total length of the chunks in terms."""

    pages: int
    chunks: int
    length: int


class Catalog:
    """An open catalog. Queries without a match return an empty result, never an error."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection

    @classmethod
    def open(cls, path: Path) -> Catalog:
        """Open a published catalog, read-only."""
        try:
            connection = sqlite3.connect(f"{path.absolute().as_uri()}?immutable=1", uri=True, check_same_thread=False)
            connection.execute("SELECT 1 FROM facts")
            _create_missing_tables(connection)
        except sqlite3.Error as exc:
            raise RetrievalError(f"could not open the catalog {path}: {exc}. Run 'bythebook ingest' again.") from exc
        return cls(connection)

    @classmethod
    def edit(cls, path: Path) -> Catalog:
        """Open or create the catalog of a draft. Changes are committed by `close`."""
        # An incomplete draft is discarded, so a rollback journal has no use.
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        connection.executescript(f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; {_SCHEMA} BEGIN;")
        return cls(connection)

    def close(self) -> None:
        if self._db.in_transaction:
            self._db.execute("COMMIT")
        self._db.close()

    def get_fact(self, name: str) -> Any:
        """A stored value by its name, None if it was never set."""
        row = self._db.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return json.loads(row[0]) if row else None

    def set_fact(self, name: str, value: object) -> None:
        self._db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, json.dumps(value, sort_keys=True)))

    def get_page(self, url: str) -> PageRecord | None:
        row = self._db.execute("SELECT * FROM pages WHERE url = ?", (url,)).fetchone()
        return PageRecord(*row) if row else None

    def list_titles(self, *, after: str, limit: int) -> list[tuple[str, str]]:
        """The URL and title of the next `limit` pages after the URL `after`, in URL order."""
        statement = "SELECT url, title FROM pages WHERE url > ? ORDER BY url LIMIT ?"
        return self._db.execute(statement, (after, limit)).fetchall()

    def page_fingerprints(self, source: str) -> dict[str, str]:
        """The fingerprint of each page of a source, by URL."""
        rows = self._db.execute("SELECT url, fingerprint FROM pages WHERE source = ? ORDER BY url", (source,))
        return dict(rows.fetchall())

    def page_counts(self) -> dict[str, int]:
        """The number of pages of each source."""
        return dict(self._db.execute("SELECT source, COUNT(*) FROM pages GROUP BY source ORDER BY source").fetchall())

    def page_order(self, source: str) -> dict[str, str]:
        """The module of each page that the source listed, in the order of the book, also if it was not read."""
        rows = self._db.execute("SELECT url, module FROM contents WHERE source = ? ORDER BY position", (source,))
        return dict(rows.fetchall())

    def chunks_of_pages(self, urls: Iterable[str]) -> list[ChunkRecord]:
        """The chunks of these pages."""
        statement = "SELECT * FROM chunks WHERE url = ? ORDER BY chunk_id"
        return [ChunkRecord(*row) for url in urls for row in self._db.execute(statement, (url,))]

    def all_chunk_ids(self) -> list[str]:
        return [row[0] for row in self._db.execute("SELECT chunk_id FROM chunks ORDER BY chunk_id")]

    def table_of_contents(self) -> list[TocEntry]:
        """Every page with the headings of its sections, in the order of the book."""
        rows = self._db.execute(
            "SELECT p.url, p.path, p.title, o.module, c.headings FROM pages p"
            " LEFT JOIN contents o USING (url) LEFT JOIN chunks c USING (url)"
            " GROUP BY p.path, p.url, c.headings ORDER BY p.source, o.position, p.path, p.url, MIN(c.chunk_id)"
        )
        pages: dict[str, TocEntry] = {}
        for url, path, title, module, headings in rows:
            section = tuple(part for part in (headings or "").split(" > ")[-1:] if part and part != title)
            entry = pages.setdefault(url, TocEntry(url, path, title, (), module or ""))
            pages[url] = entry._replace(headings=entry.headings + section)
        return list(pages.values())

    def chunk_ids_by_content(self) -> dict[str, str]:
        """The id of one chunk for each distinct text, by the hash of the text."""
        return dict(self._db.execute("SELECT content_hash, MIN(chunk_id) FROM chunks GROUP BY content_hash").fetchall())

    def put_page(self, page: PageRecord) -> None:
        self._db.execute("INSERT OR REPLACE INTO pages VALUES (?, ?, ?, ?, ?, ?)", page)

    def drop_page(self, url: str) -> None:
        self._db.execute("DELETE FROM pages WHERE url = ?", (url,))
        self._db.execute("DELETE FROM contents WHERE url = ?", (url,))

    def set_page_order(self, source: str, modules: Mapping[str, str]) -> None:
        """Store the order of the pages of a source, and the module of each."""
        self._db.execute("DELETE FROM contents WHERE source = ?", (source,))
        rows = [(url, source, position, module) for position, (url, module) in enumerate(modules.items())]
        self._db.executemany("INSERT OR REPLACE INTO contents VALUES (?, ?, ?, ?)", rows)

    def put_chunk(self, record: ChunkRecord) -> None:
        self._db.execute("INSERT OR REPLACE INTO chunks VALUES (?, ?, ?, ?, ?, ?)", record)

    def drop_chunk(self, chunk_id: str) -> None:
        self._db.execute("DELETE FROM chunks WHERE chunk_id = ?", (chunk_id,))
        self._db.execute("DELETE FROM entries WHERE chunk_id = ?", (chunk_id,))

    def put_entries(self, chunk_id: str, entries: Iterable[str]) -> None:
        """Store the names under which the chunk is looked up."""
        self._db.executemany("INSERT OR IGNORE INTO entries VALUES (?, ?)", [(entry, chunk_id) for entry in entries])

    def chunks_with_entry(self, entry: str, *, limit: int) -> list[str]:
        """The ids of the chunks with this name, at most `limit` of them."""
        rows = self._db.execute("SELECT chunk_id FROM entries WHERE entry = ? LIMIT ?", (entry, limit))
        return [row[0] for row in rows]

    def apply_delta(self, delta: VocabularyDelta) -> None:
        """Add to the document frequencies of terms, words and abbreviations. Those that reach zero are deleted."""
        self._add_counts("terms", "term", [(term, count) for term, count in delta.terms.items() if count])
        self._add_counts("words", "word", [(word, count) for word, count in delta.words.items() if count])
        abbreviations = [(*pair, count) for pair, count in delta.abbreviations.items() if count]
        self._add_counts("abbreviations", "short, long", abbreviations)

    def _add_counts(self, table: str, key: str, changes: Sequence[tuple[object, ...]]) -> None:
        parameters = ", ".join("?" * (key.count(",") + 2))
        upsert = f"ON CONFLICT ({key}) DO UPDATE SET count = {table}.count + excluded.count"
        self._db.executemany(f"INSERT INTO {table} VALUES ({parameters}) {upsert}", changes)  # noqa: S608 - table names are constants
        self._db.execute(f"DELETE FROM {table} WHERE count <= 0")  # noqa: S608 - same

    def term_counts(self, terms: Iterable[int]) -> dict[int, int]:
        """The number of chunks that contain each of these terms."""
        statement = "SELECT count FROM terms WHERE term = ?"
        return {term: (self._db.execute(statement, (term,)).fetchone() or (0,))[0] for term in terms}

    def most_frequent(self, words: Sequence[str]) -> str:
        """The word that occurs in the most chunks, empty if the book has none of them."""
        parameters = ", ".join("?" * len(words))
        select = f"SELECT word FROM words WHERE word IN ({parameters})"  # noqa: S608 - only question marks
        statement = f"{select} ORDER BY count DESC, word LIMIT 1"
        row = self._db.execute(statement, words).fetchone()
        return row[0] if row else ""

    @cached_property
    def abbreviations(self) -> dict[str, str]:
        """The abbreviations of the book: each short form with its most frequent long form."""
        rows = self._db.execute("SELECT short, long FROM abbreviations ORDER BY short, count, long DESC")
        return dict(rows.fetchall())

    def chunk_count(self) -> int:
        """The number of chunks. Faster than `totals`, which also reads the pages."""
        count: int = self._db.execute("SELECT COUNT(*) FROM chunks").fetchone()[0]
        return count

    def totals(self) -> CatalogTotals:
        pages = self._db.execute("SELECT COUNT(*) FROM pages").fetchone()[0]
        return CatalogTotals(
            pages, *self._db.execute("SELECT COUNT(*), COALESCE(SUM(length), 0) FROM chunks").fetchone()
        )


def _create_missing_tables(connection: sqlite3.Connection) -> None:
    """Add empty temporary tables that a catalog of an earlier version lacks. The next ingest fills them."""
    existing = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    for statement in _SCHEMA.split(";"):
        table = _TABLE.search(statement)
        if table and table[1] not in existing:
            connection.execute(_TABLE.sub(r"CREATE TEMP TABLE \1", statement))
