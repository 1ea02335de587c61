"""Chunks: pages cut into pieces small enough to find and whole enough to read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Chunk:
    """A contiguous piece of one section of a page: `page.text[start:end]` is `text`, to the character."""

    chunk_id: str
    """A UUID whose first half is the document's, so that the chunks of a page are known by their ids alone."""
    document_id: str
    url: str
    title: str
    text: str
    start: int
    end: int
    chunk_index: int
    """Its place among the chunks of its page, from 0."""
    token_count: int
    heading_hierarchy: tuple[str, ...]
    """The page's title, then every heading above the text."""
    anchor: str
    module_name: str
    chapter_id: str
    content_hash: str
    """Of `embedded`: two chunks with the same hash have the same vector."""
    created_at: str
    """When its page last changed, as the source says."""
    fence: str = ""
    """The line that opened the code block the text begins inside of, where one had to be cut."""

    @property
    def embedded(self) -> str:
        """What is turned into a vector and indexed by its words: the text below its heading path."""
        return under(self.heading_hierarchy, self.text)


def under(headings: tuple[str, ...], text: str) -> str:
    """`text` with its heading path in front."""
    return f"{' > '.join(headings)}\n{text}" if headings else text
