"""Ingest: from pages to a new generation of the index, doing only what has changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bythebook.sources import LeftOut, Skipped


@dataclass(frozen=True, slots=True)
class Report:
    """What an ingest did, or would do."""

    pages: int
    chunks: int
    added: int
    changed: int
    removed: int
    unchanged: int
    skipped: tuple[Skipped, ...]
    left_out: tuple[LeftOut, ...]
    """What the sources have besides the book."""
    embedded: int
    """Chunks that had to be embedded; the vectors of the others were known."""
    seconds: float
    generation: str
    """The generation that was published; empty for a dry run, and when nothing had changed."""
