"""How sure a figure is: the interval it falls into in 95 of 100 samples drawn, with replacement, from what was seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

RESAMPLES = 1000
_AT_ONCE = 100
"""How many samples are drawn together: a large collection would not fit into memory otherwise."""


def interval(values: Sequence[float], *, seed: int) -> list[float]:
    """Of the mean of these."""
    given = np.asarray(values, dtype=np.float64)
    chance = np.random.default_rng(seed)
    means = [
        given[chance.integers(0, len(given), (_AT_ONCE, len(given)))].mean(axis=1) for _ in range(RESAMPLES // _AT_ONCE)
    ]
    return _ends(np.concatenate(means))


def intervals(columns: Mapping[str, Sequence[float]], *, seed: int) -> dict[str, list[float]]:
    """Of the mean of each column."""
    return {name: interval(values, seed=seed) for name, values in columns.items()}


def interval_of(of: Callable[[Numbers, Numbers], float], first: Numbers, second: Numbers, *, seed: int) -> list[float]:
    """Of a figure of two samples, each drawn by itself."""
    chance = np.random.default_rng(seed)
    drawn = [of(chance.choice(first, len(first)), chance.choice(second, len(second))) for _ in range(RESAMPLES)]
    return _ends(np.array(drawn))


def percentiles(milliseconds: Sequence[float]) -> dict[str, float]:
    """How long the middle one took, and which one in twenty took longer."""
    p50, p95 = np.percentile(np.asarray(milliseconds), [50, 95])
    return {"p50": round(float(p50), 2), "p95": round(float(p95), 2)}


def _ends(drawn: Numbers) -> list[float]:
    return [round(float(value), 4) for value in np.percentile(drawn, [2.5, 97.5])]
