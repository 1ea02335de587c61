"""Ingest: from page sources to a new generation of the index, processing only what has changed."""

from dataclasses import dataclass

from bythebook.sources import ExcludedPage, SkippedPage


@dataclass(frozen=True, slots=True)
class IngestReport:
    """The result of an ingest or of a dry run."""

    pages: int
    chunks: int
    added: int
    changed: int
    removed: int
    unchanged: int
    skipped: tuple[SkippedPage, ...]
    left_out: tuple[ExcludedPage, ...]
    """The documents of the sources that are not part of the book."""
    embedded: int
    """The number of embedded chunks. The vectors of the others were known."""
    seconds: float
    generation: str
    """The published generation; empty for a dry run and if nothing has changed."""
