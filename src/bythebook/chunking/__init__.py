"""Chunks: parts of a page that are small enough to retrieve and complete enough to read."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Chunk:
    """A contiguous part of one section of a page: `page.text[start:end] == text`."""

    chunk_id: str
    """A UUID whose first half is that of the document, so that the ids of a page's chunks share a prefix."""
    document_id: str
    url: str
    title: str
    text: str
    start: int
    end: int
    chunk_index: int
    """Its position among the chunks of its page, from 0."""
    token_count: int
    heading_hierarchy: tuple[str, ...]
    """The page's title, then every heading above the text."""
    anchor: str
    module_name: str
    chapter_id: str
    content_hash: str
    """A hash of `embedded`: two chunks with the same hash have the same vector."""
    created_at: str
    """When its page was last modified, according to the source."""
    fence: str = ""
    """The opening line of the code block in which the text begins, if a code block had to be split."""
    table_header: str = ""
    """The header of the table in which the text begins, as two lines of Markdown, if a table had to be split."""
    inline_code: tuple[tuple[int, int], ...] = ()
    """The start and end of each piece of inline code in the text, which has no marks for it."""

    @property
    def embedded(self) -> str:
        """The text that is embedded and indexed by terms: the heading path and the text."""
        return with_headings(self.heading_hierarchy, self.text)


def with_headings(headings: tuple[str, ...], text: str) -> str:
    """`text` with its heading path prepended."""
    return f"{' > '.join(headings)}\n{text}" if headings else text
