"""The engine of an ingest: who reads, cuts and embeds, where that is not this process alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from bythebook.chunks import Chunk
    from bythebook.pages import Listed, Page, PageSource
    from bythebook.vectors import Embedder

Unchanged: TypeAlias = "Callable[[PageSource, Listed], bool]"
"""Whether a page is known to be as it was, and will not be read."""


class Engine(Protocol):
    """Does an ingest's work elsewhere. What comes out is what this process would have made itself."""

    def source(self, source: PageSource, unchanged: Unchanged) -> PageSource:
        """The same source, read by the engine where it can be."""
        ...

    def cut(self, page: Page) -> list[Chunk] | None:
        """The chunks of a page the engine has read, None for any other."""
        ...

    def embedder(self, embedder: Embedder) -> Embedder:
        """The same embedder, embedding by the engine where it can."""
        ...
