"""The catalogue of a generation: its pages, which chunks they were cut into, and how often each term stands.

One SQLite file beside the shard. It is written with the generation and never changed after it is published.
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

    from bythebook.index.terms import Tally

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
CREATE TABLE IF NOT EXISTS abbreviations (
    short TEXT NOT NULL, long TEXT NOT NULL, count INTEGER NOT NULL, PRIMARY KEY (short, long)
) WITHOUT ROWID;
"""
_TABLE = re.compile(r"CREATE TABLE IF NOT EXISTS (\w+)")


class PageRecord(NamedTuple):
    """A page of the generation, as it was when it was read."""

    url: str
    source: str
    path: str
    title: str
    fingerprint: str
    """Of everything its chunks depend on: the same fingerprint means the same chunks."""
    text: str


class ChunkRecord(NamedTuple):
    """What is known of a chunk without asking the engine."""

    chunk_id: str
    url: str
    content_hash: str
    fingerprint: str
    """Of the whole chunk with its place in the page: a different one means the stored chunk must be replaced."""
    length: int
    """In terms, as the word index counts them."""
    headings: str


class Listed(NamedTuple):
    """A page in the book's table of contents."""

    url: str
    path: str
    title: str
    headings: tuple[str, ...]
    """Of its sections, below the page's own title."""
    module: str = ""


class Totals(NamedTuple):
    """How many pages and chunks there are, and how long the chunks are together, in terms."""

    pages: int
    chunks: int
    length: int


class Catalogue:
    """An open catalogue. Finding nothing is an empty answer, never an error."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection

    @classmethod
    def open(cls, path: Path) -> Catalogue:
        """Open a published catalogue, for reading only."""
        try:
            connection = sqlite3.connect(f"{path.absolute().as_uri()}?immutable=1", uri=True, check_same_thread=False)
            connection.execute("SELECT 1 FROM facts")
            _make_up_for_what_is_missing(connection)
        except sqlite3.Error as exc:
            raise RetrievalError(f"could not open the catalogue {path}: {exc}. Run 'bythebook ingest' again.") from exc
        return cls(connection)

    @classmethod
    def edit(cls, path: Path) -> Catalogue:
        """Open the catalogue of a draft, creating it if need be. Nothing lasts before `close`."""
        # The draft is thrown away unless it is published whole, so a journal would protect nothing.
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        connection.executescript(f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; {_SCHEMA} BEGIN;")
        return cls(connection)

    def close(self) -> None:
        if self._db.in_transaction:
            self._db.execute("COMMIT")
        self._db.close()

    def fact(self, name: str) -> Any:
        """A fact of the generation by its name, None when it was never stated."""
        row = self._db.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return json.loads(row[0]) if row else None

    def state(self, name: str, value: object) -> None:
        self._db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, json.dumps(value, sort_keys=True)))

    def page(self, url: str) -> PageRecord | None:
        row = self._db.execute("SELECT * FROM pages WHERE url = ?", (url,)).fetchone()
        return PageRecord(*row) if row else None

    def titles(self, *, after: str, limit: int) -> list[tuple[str, str]]:
        """The address and title of the `limit` next pages, by address, after this one."""
        statement = "SELECT url, title FROM pages WHERE url > ? ORDER BY url LIMIT ?"
        return self._db.execute(statement, (after, limit)).fetchall()

    def fingerprints(self, source: str) -> dict[str, str]:
        """The fingerprint of each page of a source, by its URL."""
        rows = self._db.execute("SELECT url, fingerprint FROM pages WHERE source = ? ORDER BY url", (source,))
        return dict(rows.fetchall())

    def sources(self) -> dict[str, int]:
        """Every source of the book with the number of its pages."""
        return dict(self._db.execute("SELECT source, COUNT(*) FROM pages GROUP BY source ORDER BY source").fetchall())

    def order(self, source: str) -> dict[str, str]:
        """The pages a source had, read or not, in the order of the book, each with its module."""
        rows = self._db.execute("SELECT url, module FROM contents WHERE source = ? ORDER BY position", (source,))
        return dict(rows.fetchall())

    def chunks(self, urls: Iterable[str]) -> list[ChunkRecord]:
        """The chunks of these pages."""
        statement = "SELECT * FROM chunks WHERE url = ? ORDER BY chunk_id"
        return [ChunkRecord(*row) for url in urls for row in self._db.execute(statement, (url,))]

    def all_chunk_ids(self) -> list[str]:
        return [row[0] for row in self._db.execute("SELECT chunk_id FROM chunks ORDER BY chunk_id")]

    def listed(self) -> list[Listed]:
        """Every page with its title and its sections' headings, in the order of the book."""
        rows = self._db.execute(
            "SELECT p.url, p.path, p.title, o.module, c.headings FROM pages p"
            " LEFT JOIN contents o USING (url) LEFT JOIN chunks c USING (url)"
            " GROUP BY p.path, p.url, c.headings ORDER BY p.source, o.position, p.path, p.url, MIN(c.chunk_id)"
        )
        pages: dict[str, Listed] = {}
        for url, path, title, module, headings in rows:
            below = tuple(part for part in (headings or "").split(" > ")[-1:] if part and part != title)
            known = pages.setdefault(url, Listed(url, path, title, (), module or ""))
            pages[url] = known._replace(headings=known.headings + below)
        return list(pages.values())

    def chunk_ids_by_content(self) -> dict[str, str]:
        """A chunk for each text there is, by the hash of the text."""
        return dict(self._db.execute("SELECT content_hash, MIN(chunk_id) FROM chunks GROUP BY content_hash").fetchall())

    def put_page(self, page: PageRecord) -> None:
        self._db.execute("INSERT OR REPLACE INTO pages VALUES (?, ?, ?, ?, ?, ?)", page)

    def drop_page(self, url: str) -> None:
        self._db.execute("DELETE FROM pages WHERE url = ?", (url,))
        self._db.execute("DELETE FROM contents WHERE url = ?", (url,))

    def arrange(self, source: str, modules: Mapping[str, str]) -> None:
        """Put the pages of a source in this order, each in its module."""
        self._db.execute("DELETE FROM contents WHERE source = ?", (source,))
        rows = [(url, source, position, module) for position, (url, module) in enumerate(modules.items())]
        self._db.executemany("INSERT OR REPLACE INTO contents VALUES (?, ?, ?, ?)", rows)

    def put_chunk(self, record: ChunkRecord) -> None:
        self._db.execute("INSERT OR REPLACE INTO chunks VALUES (?, ?, ?, ?, ?, ?)", record)

    def drop_chunk(self, chunk_id: str) -> None:
        self._db.execute("DELETE FROM chunks WHERE chunk_id = ?", (chunk_id,))

    def count(self, tally: Tally) -> None:
        """Add to how many chunks each term, word and abbreviation stands in; what stands in none is forgotten."""
        self._count("terms", "term", [(term, count) for term, count in tally.terms.items() if count])
        self._count("words", "word", [(word, count) for word, count in tally.words.items() if count])
        short = [(*pair, count) for pair, count in tally.abbreviations.items() if count]
        self._count("abbreviations", "short, long", short)

    def _count(self, table: str, key: str, changes: Sequence[tuple[object, ...]]) -> None:
        places = ", ".join("?" * (key.count(",") + 2))
        more = f"ON CONFLICT ({key}) DO UPDATE SET count = {table}.count + excluded.count"
        self._db.executemany(f"INSERT INTO {table} VALUES ({places}) {more}", changes)  # noqa: S608 - names of ours
        self._db.execute(f"DELETE FROM {table} WHERE count <= 0")  # noqa: S608 - likewise

    def term_counts(self, terms: Iterable[int]) -> dict[int, int]:
        """How many chunks each of these terms stands in, 0 for one the book does not have."""
        statement = "SELECT count FROM terms WHERE term = ?"
        return {term: (self._db.execute(statement, (term,)).fetchone() or (0,))[0] for term in terms}

    def most_frequent(self, words: Sequence[str]) -> str:
        """The one of these words that stands in the most chunks, empty when the book has none of them."""
        places = ", ".join("?" * len(words))
        statement = f"SELECT word FROM words WHERE word IN ({places}) ORDER BY count DESC, word LIMIT 1"  # noqa: S608 - places
        row = self._db.execute(statement, words).fetchone()
        return row[0] if row else ""

    @cached_property
    def abbreviations(self) -> dict[str, str]:
        """What the book abbreviates: each short form with the long one it mostly stands for."""
        rows = self._db.execute("SELECT short, long FROM abbreviations ORDER BY short, count, long DESC")
        return dict(rows.fetchall())

    def chunk_count(self) -> int:
        """How many chunks there are, without going through the pages."""
        count: int = self._db.execute("SELECT COUNT(*) FROM chunks").fetchone()[0]
        return count

    def totals(self) -> Totals:
        pages = self._db.execute("SELECT COUNT(*) FROM pages").fetchone()[0]
        return Totals(pages, *self._db.execute("SELECT COUNT(*), COALESCE(SUM(length), 0) FROM chunks").fetchone())


def _make_up_for_what_is_missing(connection: sqlite3.Connection) -> None:
    """A catalogue of an earlier version lacks tables. They read as empty until the next ingest fills them."""
    known = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    for statement in _SCHEMA.split(";"):
        table = _TABLE.search(statement)
        if table and table[1] not in known:
            connection.execute(_TABLE.sub(r"CREATE TEMP TABLE \1", statement))
