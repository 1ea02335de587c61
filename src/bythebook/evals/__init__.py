"""Evaluation: how well a book retrieves, answers and refuses, on golden questions and on public datasets.

Every suite calls the code that serves readers. Nothing is implemented a second time here.
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

Metrics = dict[str, object]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class EvalRequest:
    """The dataset of a suite, and how much of it to evaluate."""

    path: Path
    """The folder of a dataset, or a file of claims."""
    settings: Settings
    progress: Progress
    limit: int = sys.maxsize
    """The maximum number of questions of each kind."""
    seed: int = 1
    """The seed of the question sample and of the bootstrap samples."""
    out_of_book: bool = False
    """Leave out half of the documents. Questions about them must be refused."""
    foreign: Path | None = None
    """Another dataset whose questions must be refused."""
    swaps: bool = False
    """Make the claims from a book: a folder of pages, or the data folder of an ingested book."""

    @property
    def dataset(self) -> str:
        """The name of the dataset: that of its folder."""
        return self.path.name if self.path.is_dir() else self.path.parent.name

    def sample(self, items: Sequence[T]) -> list[T]:
        """All items, or a random sample of `limit` items in their order."""
        if self.limit >= len(items):
            return list(items)
        chosen = random.Random(self.seed).sample(range(len(items)), self.limit)  # noqa: S311 - reproducible
        return [items[index] for index in sorted(chosen)]


@dataclass(frozen=True, slots=True)
class EvalResult:
    """The metrics of a suite as they are written to JSON, and their plots."""

    suite: str
    dataset: str
    metrics: Metrics
    plots: tuple[Plot, ...] = ()
    kind: str = ""
    """The variant of the suite, if it has several."""

    def to_dict(self) -> Metrics:
        kind = {"kind": self.kind} if self.kind else {}
        return {"suite": self.suite, "dataset": self.dataset, **kind, **self.metrics}

    @property
    def title(self) -> str:
        return f"{self.suite} {self.dataset}" + (f", {self.kind}" if self.kind else "")
