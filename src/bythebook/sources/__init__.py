"""Pages: what a book is made of before it is cut.

A page is one document a reader can open: its text as a reader sees it, and the blocks that text is made of. Inline
markup is gone from the text (a link reads as its words), so a quote taken from it can be found again in a browser;
code, lists and tables keep their Markdown shape.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from bythebook.errors import BookError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Kind(StrEnum):
    """What a block of a page is."""

    HEADING = "heading"
    PARAGRAPH = "paragraph"
    LIST = "list"
    CODE = "code"
    TABLE = "table"


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch of a page's text that reads as one thing: `page.text[start:end]`."""

    kind: Kind
    start: int
    end: int
    level: int = 0
    """1 to 6 for a heading, 0 for anything else."""
    anchor: str = ""
    """Where it is on the published page, without `#`: the id of a heading; in a PDF, the page any block begins on."""


@dataclass(frozen=True, slots=True)
class Page:
    """One document of the book. Every offset anywhere else in the system counts characters of `text`."""

    url: str
    title: str
    text: str
    blocks: tuple[Block, ...]
    module_name: str = ""
    chapter_id: str = ""
    modified_at: str = ""
    """When the source says it last changed: aware UTC, ISO 8601."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A page a source has, known without reading it."""

    url: str
    path: str
    """How a person names it: the path inside the folder, or the URL."""
    stamp: str
    """Changes whenever the content may have: a file's time and size, a response's ETag. Empty: always read again."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something a source has that is not a page of the book, and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something a source has that could be read and is no part of the book: a blog post, a generator's sample page."""

    path: str
    reason: str


@dataclass(slots=True)
class Coverage:
    """What a source has, pages or not, what of it could not be read, and what is no part of the book."""

    listed: int = 0
    skipped: list[Skipped] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)


class Unreadable(BookError):
    """A page that cannot be read. The run reports it and goes on."""


class PageSource(Protocol):
    """Somewhere pages come from. Reading is asked for only when something may have changed; listing finds that out
    as cheaply as the source allows."""

    @property
    def name(self) -> str:
        """What `status` shows, and what a later run compares with: deletions never reach beyond one source."""
        ...

    def listing(self) -> AsyncIterator[Listed | Skipped | LeftOut]:
        """Everything there is, in the book's order, each URL once."""
        ...

    async def read(self, listed: Listed) -> Page:
        """The page itself. Raises Unreadable, with a reason for the author."""
        ...
