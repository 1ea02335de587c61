"""The archive: what a site sent, so that a later run transfers only what has changed.

It holds pages as they came. A page that has not changed is read from here, by whatever readers there are by then; so
the archive may be ahead of the book, as after a run that was killed, and nothing is lost by it.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zlib
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Self

from bythebook.errors import ConfigurationError
from bythebook.sources.website import Said, Validators
from bythebook.sources.website.page_parser import READER
from bythebook.sources.website.urls import locate

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

_TABLES = """
CREATE TABLE IF NOT EXISTS kept (
    url TEXT PRIMARY KEY, body BLOB, media_type TEXT, charset TEXT, robots TEXT, etag TEXT, last_modified TEXT,
    reader INTEGER, said BLOB
) STRICT;
CREATE TABLE IF NOT EXISTS asked (url TEXT PRIMARY KEY, led_to TEXT, at REAL, lastmod TEXT) STRICT;
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT) STRICT;
"""


@dataclass(frozen=True, slots=True)
class Kept:
    """A page as it came."""

    url: str
    body: bytes
    media_type: str
    charset: str
    robots: str
    validators: Validators


@dataclass(frozen=True, slots=True)
class Asked:
    """When an address was last asked for, where it led, and what the sitemap said of it then."""

    led_to: str
    at: float
    lastmod: str


class Archive:
    """What is known of one site. Use it as a context."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._database.executescript(_TABLES)

    @classmethod
    def open(cls, path: Path) -> Self:
        """The archive in this file. A file that is damaged is begun anew: it only spares work."""
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            return cls(_connected(str(path)))
        except sqlite3.DatabaseError:
            path.unlink()
            return cls(_connected(str(path)))
        except OSError as exc:
            raise ConfigurationError(f"{path} cannot be written: {exc}") from exc

    @classmethod
    def for_once(cls) -> Self:
        """An archive in a place of its own that is gone afterwards."""
        return cls(_connected(""))

    @classmethod
    def copy_of(cls, path: Path) -> Self:
        """What the file has, in a place of its own that is gone afterwards."""
        copy = _connected("")
        if path.is_file():
            try:
                with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as original:
                    original.backup(copy)
            except sqlite3.Error:
                copy.close()
                copy = _connected("")
        return cls(copy)

    def close(self) -> None:
        self._database.close()

    def _run(self, statement: str, values: Sequence[object] = ()) -> sqlite3.Cursor:
        try:
            return self._database.execute(statement, values)
        except sqlite3.Error as exc:
            raise ConfigurationError(
                f"what the site sent cannot be kept: {exc}. Is the disk full? If not, delete the folder 'sites' in the "
                "data folder: it only spares transfers."
            ) from exc

    def kept(self, url: str) -> Kept | None:
        row = self._run(
            "SELECT url, body, media_type, charset, robots, etag, last_modified FROM kept WHERE url = ?", [url]
        ).fetchone()
        if row is None:
            return None
        url, body, media_type, charset, robots, etag, last_modified = row
        return Kept(url, zlib.decompress(body), media_type, charset, robots, Validators(etag, last_modified))

    def said(self, url: str) -> Said | None:
        """What a page that is kept says; None where it must be looked at again."""
        row = self._run("SELECT said FROM kept WHERE url = ? AND reader = ?", [url, READER]).fetchone()
        if row is None:
            return None
        said = json.loads(zlib.decompress(row[0]))
        return Said(**said | {"links": tuple(said["links"])})

    def validators(self, url: str) -> Validators:
        row = self._run("SELECT etag, last_modified FROM kept WHERE url = ?", [url]).fetchone()
        return Validators(*row) if row else Validators()

    def keep(self, page: Kept, said: Said) -> None:
        written = zlib.compress(json.dumps(asdict(said)).encode(), 1)
        values = (
            *(page.url, zlib.compress(page.body, 1), page.media_type, page.charset, page.robots),
            *(page.validators.etag, page.validators.last_modified, READER, written),
        )
        self._run("INSERT OR REPLACE INTO kept VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)

    def asked(self, url: str) -> Asked | None:
        row = self._run("SELECT led_to, at, lastmod FROM asked WHERE url = ?", [url]).fetchone()
        return Asked(*row) if row else None

    def note(self, url: str, asked: Asked) -> None:
        row = (url, asked.led_to, asked.at, asked.lastmod)
        self._run("INSERT OR REPLACE INTO asked VALUES (?, ?, ?, ?)", row)

    def pages(self) -> list[str]:
        """The addresses of all pages that are kept."""
        return [row[0] for row in self._run("SELECT url FROM kept ORDER BY rowid")]

    def fact(self, name: str) -> str:
        row = self._run("SELECT value FROM facts WHERE name = ?", [name]).fetchone()
        return str(row[0]) if row else ""

    def state(self, name: str, value: str) -> None:
        self._run("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))

    def forget_all_but(self, urls: Iterable[str]) -> None:
        """Drop what the site no longer has."""
        self._run("CREATE TEMP TABLE staying (url TEXT PRIMARY KEY)")
        for url in urls:
            self._run("INSERT OR IGNORE INTO staying VALUES (?)", [url])
        self._run("DELETE FROM kept WHERE url NOT IN (SELECT url FROM staying)")
        self._run("DELETE FROM asked WHERE url NOT IN (SELECT url FROM staying)")
        self._run("DROP TABLE staying")


def file_name(url: str) -> str:
    """The name of the file that a site is kept in: one for each address it can be named by."""
    named = locate(url)
    return f"{named.host.replace(':', '-')}-{hashlib.sha256(str(named).encode()).hexdigest()[:12]}.db"


def _connected(path: str) -> sqlite3.Connection:
    # Every statement stands by itself: whatever was written before a kill is there afterwards.
    try:
        database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    except sqlite3.OperationalError as exc:
        raise ConfigurationError(f"{path} cannot be written: {exc}") from exc
    database.execute("PRAGMA synchronous = OFF")
    return database
