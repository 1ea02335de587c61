"""Status: what the book is made of, and how far it can be trusted."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bythebook.ingest.coverage import recall_coverage
from bythebook.ingest.plan import Coverage
from bythebook.passages.shelf import open_edition

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from bythebook.pages import LeftOut, Skipped
    from bythebook.passages.calibration import Calibration
    from bythebook.passages.generations import Generations
    from bythebook.vectors import Identity


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """One source of the book."""

    name: str
    pages: int
    """In the book now."""
    listed: int
    """In the source, when it was last looked at."""
    skipped: tuple[Skipped, ...]
    left_out: tuple[LeftOut, ...]

    @property
    def coverage(self) -> float:
        """The part of the source that is in the book. What was skipped counts as missing."""
        return 1 - len(self.skipped) / self.listed if self.listed else 1.0


@dataclass(frozen=True, slots=True)
class Status:
    """The book as it stands on the shelf."""

    pages: int
    chunks: int
    generation: str
    published_at: str
    model: str
    dimension: int
    size_bytes: int
    """What the whole data folder takes on disk."""
    sources: tuple[SourceStatus, ...]
    calibration: Calibration


def status(data_dir: Path, generations: Generations, identity: Identity) -> Status:
    """Look at the current generation. Raises NotFound before the first ingest."""
    with ExitStack() as stack:
        edition = open_edition(generations, identity, stack)
        catalogue = edition.catalogue
        totals = catalogue.totals()
        seen = recall_coverage(data_dir / "index")
        return Status(
            pages=totals.pages,
            chunks=totals.chunks,
            generation=edition.name,
            published_at=catalogue.fact("published_at"),
            model=identity.model,
            dimension=identity.dimension,
            size_bytes=_size(data_dir),
            sources=tuple(_source(name, pages, seen) for name, pages in catalogue.sources().items()),
            calibration=edition.calibration,
        )


def _source(name: str, pages: int, seen: Mapping[str, Coverage]) -> SourceStatus:
    coverage = seen.get(name, Coverage(listed=pages))
    return SourceStatus(name, pages, coverage.listed, tuple(coverage.skipped), tuple(coverage.left_out))


def _size(folder: Path) -> int:
    """The bytes a folder takes on disk, holes not counted."""
    size = 0
    for path in folder.rglob("*"):
        # An ingest that is running may remove what was there a moment ago.
        with suppress(FileNotFoundError):
            size += path.lstat().st_blocks * 512
    return size
