"""A site: pages read over HTTP from where they are published.

`locations` says what an address is and which of them belong to the site; `reach` which machines may be connected to;
`client` fetches one address, safely; `robots` and `sitemap` say what the site's owner wants read; a `visit` goes from
page to page, and a `look` says what is on each; `archive` remembers what came, and `trust` what need not be asked for
again; `sorting` gives every page one address; a `tour` does all of it once, and `source` is that as a source of pages.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of a site is read, and how gently."""

    pages: int = 5_000
    depth: int = 20
    """How many links may lie between the first page and another, where there is no sitemap."""
    megabytes: int = 1_000
    """All bodies together, unpacked."""
    minutes: float = 60.0
    delay: float = 0.1
    """The least seconds between two requests; `Crawl-delay` in robots.txt may ask for more."""
    at_once: int = 4
    """Requests under way at the same time."""
    private: bool = False
    """Whether the host that was named may be on a private network."""


@dataclass(frozen=True, slots=True)
class Validators:
    """What a server gave to recognise a version of a page by."""

    etag: str = ""
    last_modified: str = ""

    def __bool__(self) -> bool:
        return bool(self.etag or self.last_modified)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back for an address, at the end of its redirects."""

    url: str
    """Where it came from in the end."""
    status: int
    body: bytes = b""
    media_type: str = ""
    charset: str = ""
    validators: Validators = Validators()
    robots: str = ""
    """The `X-Robots-Tag` it came with."""
    permanent: bool = False
    """Whether it was reached by redirects that are all said to be for good."""

    @property
    def is_unchanged(self) -> bool:
        return self.status == 304

    @property
    def is_gone(self) -> bool:
        return self.status in (404, 410)


@dataclass(frozen=True, slots=True)
class Said:
    """What a page says: about itself, and where it leads."""

    content: str
    """A hash of what a reader sees of it."""
    title: str = ""
    canonical: str = ""
    refresh: str = ""
    """Where it sends its readers by itself."""
    unlisted: bool = False
    """Whether it asks not to be indexed."""
    links: tuple[str, ...] = ()
