"""Confidence intervals by bootstrap: 95 % of the metrics of samples drawn with replacement."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


RESAMPLES = 1000
_RESAMPLES_PER_BATCH = 100
"""The number of samples drawn at a time, to limit the memory for a large dataset."""


def mean_interval(values: Sequence[float], *, seed: int) -> list[float]:
    """The interval of the mean of these values."""
    given = np.asarray(values, dtype=np.float64)
    chance = np.random.default_rng(seed)
    means = [
        given[chance.integers(0, len(given), (_RESAMPLES_PER_BATCH, len(given)))].mean(axis=1)
        for _ in range(RESAMPLES // _RESAMPLES_PER_BATCH)
    ]
    return _percentile_bounds(np.concatenate(means))


def mean_intervals(columns: Mapping[str, Sequence[float]], *, seed: int) -> dict[str, list[float]]:
    """The interval of the mean of each column."""
    return {name: mean_interval(values, seed=seed) for name, values in columns.items()}


def two_sample_interval(
    of: Callable[[Numbers, Numbers], float], first: Numbers, second: Numbers, *, seed: int
) -> list[float]:
    """The interval of a metric of two samples, which are resampled separately."""
    chance = np.random.default_rng(seed)
    drawn = [of(chance.choice(first, len(first)), chance.choice(second, len(second))) for _ in range(RESAMPLES)]
    return _percentile_bounds(np.array(drawn))


def percentiles(milliseconds: Sequence[float]) -> dict[str, float]:
    """The median and the 95th percentile."""
    p50, p95 = np.percentile(np.asarray(milliseconds), [50, 95])
    return {"p50": round(float(p50), 2), "p95": round(float(p95), 2)}


def _percentile_bounds(drawn: Numbers) -> list[float]:
    return [round(float(value), 4) for value in np.percentile(drawn, [2.5, 97.5])]
