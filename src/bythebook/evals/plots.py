"""Plots: what a report shows of a measurement. How they are drawn is in `drawing`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

_POINTS = 200
_COLUMNS = 30
_SLOWEST_SHOWN = 99
"""The percentile at which times are cut off: one that waited for something else would flatten all others."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A figure from 0 to 1 with the interval it lies in."""

    label: str
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Bars:
    """Figures beside each other."""

    title: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class Curve:
    """Two shares that are traded for each other, and the point that was chosen."""

    title: str
    across: str
    up: str
    points: tuple[tuple[float, float], ...]
    chosen: tuple[float, float]
    note: str
    """What was chosen, in words."""


@dataclass(frozen=True, slots=True)
class Spread:
    """How many times took how long."""

    title: str
    counts: tuple[int, ...]
    widest: float
    """The right end of the last column, in milliseconds."""
    p50: float
    p95: float


Plot = Bars | Curve | Spread


def bars(title: str, figures: Mapping[str, tuple[float, Sequence[float]]]) -> Bars:
    """Each figure by its name, with its value and interval."""
    return Bars(title, tuple(Bar(name, value, low, high) for name, (value, (low, high)) in figures.items()))


def trade(title: str, *, across: tuple[str, Numbers], up: tuple[str, Numbers], line: float) -> Curve:
    """How much of each kind is told right, wherever the line is drawn: `across` lies below it, `up` above.

    Drawn at `line`, the point is marked.
    """
    (below_name, below), (above_name, above) = across, up
    every = np.unique(np.concatenate([below, above]))
    lines = np.concatenate([[-np.inf], np.quantile(every, np.linspace(0, 1, _POINTS)), [np.inf]])
    points = tuple((_share(below < at), _share(above >= at)) for at in lines)
    chosen = (_share(below < line), _share(above >= line))
    note = f"drawn at {line:.3g}: {above_name} {chosen[1]:.1%}, {below_name} {chosen[0]:.1%}"
    return Curve(title, below_name, above_name, points, chosen, note)


def spread(title: str, milliseconds: Sequence[float]) -> Spread:
    """The times of many questions."""
    given = np.asarray(milliseconds)
    widest = max(float(np.percentile(given, _SLOWEST_SHOWN)), 1e-3)
    counts, _ = np.histogram(np.clip(given, 0, widest), bins=_COLUMNS, range=(0, widest))
    p50, p95 = (float(value) for value in np.percentile(given, [50, 95]))
    return Spread(title, tuple(int(count) for count in counts), widest, p50, p95)


def _share(told: NDArray[np.bool_]) -> float:
    return float(told.mean())
