"""A cache of the responses of one site, so that a later run transfers only what has changed.

It stores bodies as they were sent. Unchanged pages are parsed again from here, by the current readers. The cache may
be newer than the book, for example after a killed run; the next run still ingests those pages.
"""

import hashlib
import json
import sqlite3
import zlib
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from bythebook.errors import ConfigurationError
from bythebook.sources.website import FetchResponse, PageMetadata, Validators
from bythebook.sources.website.page_parser import PARSER_VERSION
from bythebook.sources.website.urls import parse_url

_TABLES = """
CREATE TABLE IF NOT EXISTS responses (
    url TEXT PRIMARY KEY, body BLOB, media_type TEXT, charset TEXT, robots TEXT, etag TEXT, last_modified TEXT,
    parser_version INTEGER, metadata BLOB
) STRICT;
CREATE TABLE IF NOT EXISTS fetches (url TEXT PRIMARY KEY, final_url TEXT, fetched_at REAL, lastmod TEXT) STRICT;
CREATE TABLE IF NOT EXISTS flags (name TEXT PRIMARY KEY) STRICT;
"""


@dataclass(frozen=True, slots=True)
class FetchRecord:
    """The last fetch of a URL: where it led, when it was, and the `lastmod` of the sitemap at that time."""

    final_url: str
    fetched_at: float
    lastmod: str


class CrawlCache:
    """The cache of one site, an SQLite database."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._database.executescript(_TABLES)

    @classmethod
    def open(cls, path: Path) -> Self:
        """The cache in this file. A damaged file is replaced by an empty cache: no data is lost but transfers."""
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            return cls(_connect(str(path)))
        except sqlite3.DatabaseError:
            path.unlink()
            return cls(_connect(str(path)))
        except OSError as exc:
            raise ConfigurationError(f"{path} cannot be written: {exc}") from exc

    @classmethod
    def temporary(cls) -> Self:
        """An empty cache that is deleted when it is closed."""
        return cls(_connect(""))

    @classmethod
    def copy_of(cls, path: Path) -> Self:
        """A temporary copy of the cache in this file. The file does not change."""
        copy = _connect("")
        if path.is_file():
            try:
                with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as original:
                    original.backup(copy)
            except sqlite3.Error:
                copy.close()
                copy = _connect("")
        return cls(copy)

    def close(self) -> None:
        self._database.close()

    def _run(self, statement: str, values: Sequence[object] = ()) -> sqlite3.Cursor:
        try:
            return self._database.execute(statement, values)
        except sqlite3.Error as exc:
            raise ConfigurationError(
                f"the responses of the site cannot be cached: {exc}. Is the disk full? If not, delete the folder "
                "'sites' in the data folder; the next run fetches the pages again."
            ) from exc

    def get_response(self, url: str) -> FetchResponse | None:
        row = self._run(
            "SELECT url, body, media_type, charset, robots, etag, last_modified FROM responses WHERE url = ?", [url]
        ).fetchone()
        if row is None:
            return None
        url, body, media_type, charset, robots, etag, last_modified = row
        return FetchResponse(
            url, 200, zlib.decompress(body), media_type, charset, Validators(etag, last_modified), robots
        )

    def get_metadata(self, url: str) -> PageMetadata | None:
        """The metadata of a cached page; None if it must be parsed again."""
        row = self._run(
            "SELECT metadata FROM responses WHERE url = ? AND parser_version = ?", [url, PARSER_VERSION]
        ).fetchone()
        if row is None:
            return None
        fields = json.loads(zlib.decompress(row[0]))
        return PageMetadata(**fields | {"links": tuple(fields["links"])})

    def get_validators(self, url: str) -> Validators:
        row = self._run("SELECT etag, last_modified FROM responses WHERE url = ?", [url]).fetchone()
        return Validators(*row) if row else Validators()

    def put_response(self, page: FetchResponse, metadata: PageMetadata) -> None:
        packed = zlib.compress(json.dumps(asdict(metadata)).encode(), 1)
        values = (
            *(page.url, zlib.compress(page.body, 1), page.media_type, page.charset, page.robots),
            *(page.validators.etag, page.validators.last_modified, PARSER_VERSION, packed),
        )
        self._run("INSERT OR REPLACE INTO responses VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)

    def get_fetch(self, url: str) -> FetchRecord | None:
        row = self._run("SELECT final_url, fetched_at, lastmod FROM fetches WHERE url = ?", [url]).fetchone()
        return FetchRecord(*row) if row else None

    def put_fetch(self, url: str, fetch: FetchRecord) -> None:
        row = (url, fetch.final_url, fetch.fetched_at, fetch.lastmod)
        self._run("INSERT OR REPLACE INTO fetches VALUES (?, ?, ?, ?)", row)

    def list_urls(self) -> list[str]:
        """The URLs of all cached pages."""
        return [row[0] for row in self._run("SELECT url FROM responses ORDER BY rowid")]

    def has_flag(self, name: str) -> bool:
        return self._run("SELECT 1 FROM flags WHERE name = ?", [name]).fetchone() is not None

    def set_flag(self, name: str) -> None:
        self._run("INSERT OR IGNORE INTO flags VALUES (?)", [name])

    def retain(self, urls: Iterable[str]) -> None:
        """Delete all pages and fetches but these."""
        self._run("CREATE TEMP TABLE retained (url TEXT PRIMARY KEY)")
        for url in urls:
            self._run("INSERT OR IGNORE INTO retained VALUES (?)", [url])
        self._run("DELETE FROM responses WHERE url NOT IN (SELECT url FROM retained)")
        self._run("DELETE FROM fetches WHERE url NOT IN (SELECT url FROM retained)")
        self._run("DROP TABLE retained")


def cache_file_name(url: str) -> str:
    """The name of the cache file of a site: one for each URL that the user can give."""
    site = parse_url(url)
    return f"{site.host.replace(':', '-')}-{hashlib.sha256(str(site).encode()).hexdigest()[:12]}.db"


def _connect(path: str) -> sqlite3.Connection:
    # Autocommit: every statement that was executed before a kill is in the file.
    try:
        database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    except sqlite3.OperationalError as exc:
        raise ConfigurationError(f"{path} cannot be written: {exc}") from exc
    database.execute("PRAGMA synchronous = OFF")
    return database
