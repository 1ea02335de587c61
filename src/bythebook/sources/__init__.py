"""Pages and their sources.

A page is one document that a reader can open: its visible text, and the blocks of that text. The text has no inline
markup (a link is its words), so that a browser can find a quote from it; code, lists and tables are in Markdown.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from bythebook.errors import BookError


class BlockKind(StrEnum):
    """The kind of a block."""

    HEADING = "heading"
    PARAGRAPH = "paragraph"
    LIST = "list"
    CODE = "code"
    TABLE = "table"


@dataclass(frozen=True, slots=True)
class Block:
    """A structural unit of a page: `page.text[start:end]`."""

    kind: BlockKind
    start: int
    end: int
    level: int = 0
    """1 to 6 for a heading, 0 for other blocks."""
    anchor: str = ""
    """The URL fragment, without `#`: the id of a heading; in a PDF, the page on which the block begins."""
    code: tuple[tuple[int, int], ...] = ()
    """The start and end of each piece of inline code, counted in the text of the page."""


@dataclass(frozen=True, slots=True)
class Page:
    """One document of the book. All offsets in other packages count characters of `text`."""

    url: str
    title: str
    text: str
    blocks: tuple[Block, ...]
    module_name: str = ""
    chapter_id: str = ""
    modified_at: str = ""
    """Modification time according to the source: ISO 8601 in UTC."""


@dataclass(frozen=True, slots=True)
class ListedPage:
    """A page in the listing of a source. Listing does not read the page."""

    url: str
    path: str
    """The name shown to users: the path inside the folder, or the URL."""
    stamp: str
    """A fingerprint such as a file's time and size, or an ETag. An unchanged page is not read again; empty: always."""


@dataclass(frozen=True, slots=True)
class SkippedPage:
    """A document that cannot be read, and the reason."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class ExcludedPage:
    """A readable document that is not part of the book, such as a blog post, and the reason."""

    path: str
    reason: str


@dataclass(slots=True)
class Coverage:
    """How many pages a source lists, which documents were skipped and which are excluded from the book."""

    listed: int = 0
    skipped: list[SkippedPage] = field(default_factory=list)
    left_out: list[ExcludedPage] = field(default_factory=list)


class Unreadable(BookError):
    """A page cannot be read. The ingest reports it and continues."""


class GeneratedPage(Unreadable):
    """A page whose text is generated from code when the site is built. It is left out, which is no failure."""


class PageSource(Protocol):
    """A source of pages. Listing is cheap; a page is read only if its stamp has changed."""

    @property
    def name(self) -> str:
        """Identifies the source in `status` and between runs: an ingest deletes only pages of the same source."""
        ...

    def listing(self) -> AsyncIterator[ListedPage | SkippedPage | ExcludedPage]:
        """All pages in the order of the book, each URL once."""
        ...

    async def read(self, listed: ListedPage) -> Page:
        """Read a page. Raises Unreadable with a reason for the author."""
        ...
