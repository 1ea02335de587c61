"""How well the book tells what it covers: questions it must answer against questions it must refuse."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from bythebook.passages import EVERYWHERE
from bythebook.passages.evidence import Features, confidence, weigh

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from bythebook.ingest import Progress
    from bythebook.passages.retriever import Retriever
    from bythebook.passages.shelf import Edition
    from bythebook.vectors import Embedder

_STEPS = 100
_SMALL_WEIGHTS = 1e-4


@dataclass(frozen=True, slots=True)
class Trial:
    """What the evidence check saw of questions of both kinds."""

    covered: tuple[Features, ...]
    foreign: tuple[Features, ...]


async def look(
    edition: Edition, embedder: Embedder, retriever: Retriever, questions: Sequence[str], *, progress: Progress
) -> tuple[Features, ...]:
    """The evidence for each question, as a reader's question would get it."""
    seen: list[Features] = []
    for done, question in enumerate(questions, start=1):
        found = await retriever.retrieve(edition, question, top_k=5, filters=EVERYWHERE)
        seen.append((await weigh(edition, embedder, found)).features)
        progress("asking", done, len(questions))
    return tuple(seen)


def score(trial: Trial, *, cutoff: float) -> dict[str, float]:
    """How well the two kinds are told apart, at any line and at the book's own."""
    covered = np.array([confidence(features) for features in trial.covered])
    foreign = np.array([confidence(features) for features in trial.foreign])
    refused_right, refused_wrong = int((foreign < cutoff).sum()), int((covered < cutoff).sum())
    precision = refused_right / max(refused_right + refused_wrong, 1)
    recall = refused_right / max(len(foreign), 1)
    figures = {
        "auroc": auroc(covered, foreign),
        "kept": float((covered >= cutoff).mean()),
        "refused": recall,
        "precision": precision,
        "recall": recall,
        "f1": 2 * precision * recall / max(precision + recall, 1e-9),
        "cutoff": cutoff,
    }
    return {name: round(value, 4) for name, value in figures.items()}


def auroc(higher: NDArray[np.float64], lower: NDArray[np.float64]) -> float:
    """The chance that one of the first kind scores higher than one of the second, ties counting half."""
    ordered = np.sort(lower)
    below = np.searchsorted(ordered, higher, side="left") + np.searchsorted(ordered, higher, side="right")
    return float(below.mean() / 2 / len(lower))


def fit(trials: Sequence[Trial]) -> dict[str, float]:
    """The weights of the logistic rule that tell the two kinds apart best, each kind counting the same."""
    names = [known.name for known in fields(Features)]
    covered = [[getattr(f, name) for name in names] for trial in trials for f in trial.covered]
    foreign = [[getattr(f, name) for name in names] for trial in trials for f in trial.foreign]
    x = np.hstack([np.array(covered + foreign), np.ones((len(covered) + len(foreign), 1))])
    y = np.repeat([1.0, 0.0], [len(covered), len(foreign)])
    importance = np.repeat([0.5 / len(covered), 0.5 / len(foreign)], [len(covered), len(foreign)])
    weights = np.zeros(x.shape[1])
    for _ in range(_STEPS):
        p = 1 / (1 + np.exp(-x @ weights))
        gradient = x.T @ (importance * (p - y)) + _SMALL_WEIGHTS * np.append(weights[:-1], 0.0)
        curvature = (x * (importance * p * (1 - p))[:, None]).T @ x + _SMALL_WEIGHTS * np.eye(len(weights))
        weights = weights - np.linalg.solve(curvature, gradient)
    return {name: round(float(weight), 2) for name, weight in zip([*names, "bias"], weights, strict=True)}
