"""Ingest: from pages to a new generation of the index, doing only what has changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from bythebook.pages import LeftOut, Skipped


Progress: TypeAlias = Callable[[str, int, int], None]
"""Told which stage the work is in, how much of it is done, and how much there is."""


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
