"""Measuring: how well the book finds, answers and refuses, on an author's own questions and on those of others.

Everything is measured through the code that serves readers; nothing is implemented a second time here.
"""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bythebook.evals.report import Plot
    from bythebook.settings import Settings
    from bythebook.telemetry import Progress

    Figures = dict[str, object]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to measure on, how much of it, and who watches."""

    path: Path
    """A folder with a collection, or a file of pairs."""
    settings: Settings
    progress: Progress
    limit: int = sys.maxsize
    """At most so many questions of each kind."""
    seed: int = 1
    """Which of them, when there are more; and the samples that intervals are drawn from."""
    out_of_book: bool = False
    """Whether half of the documents are left out, so that what is asked about them must be refused."""
    strangers: Path | None = None
    """Another collection whose questions must be refused."""

    @property
    def collection(self) -> str:
        """What the collection is called: its folder."""
        return self.path.name if self.path.is_dir() else self.path.parent.name

    def some(self, of: Sequence[T]) -> list[T]:
        """The questions to ask: all of them, or as many as are wanted, drawn from all in their order."""
        if self.limit >= len(of):
            return list(of)
        drawn = random.Random(self.seed).sample(range(len(of)), self.limit)  # noqa: S311 - the same every time
        return [of[place] for place in sorted(drawn)]


@dataclass(frozen=True, slots=True)
class Measured:
    """What came out: the figures as they go into JSON, and the plots that show them."""

    measure: str
    collection: str
    figures: Figures
    plots: tuple[Plot, ...] = ()
    kind: str = ""
    """Which of several ways to measure it was, where there are several."""

    def as_json(self) -> Figures:
        kind = {"kind": self.kind} if self.kind else {}
        return {"measure": self.measure, "collection": self.collection, **kind, **self.figures}

    @property
    def title(self) -> str:
        return f"{self.measure} {self.collection}" + (f", {self.kind}" if self.kind else "")
