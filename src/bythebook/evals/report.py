"""Plots as SVG: a few lines, written out by hand, that any browser shows without a script.

Plots: what a report shows of a measurement. How they are drawn is in `drawing`.

Measurements as a person reads them: text for a terminal, and a page with plots that needs nothing from elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

    from bythebook.evals import Figures, Measured


_WIDE, _HIGH = 520, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 54, 16, 14, 44
_ACROSS, _UP = _WIDE - _LEFT - _RIGHT, _HIGH - _TOP - _BOTTOM
_BAR = 34
_LABELS = 150


def drawn(plot: Plot) -> str:
    """The plot as an SVG element, with its title for those who cannot see it."""
    if isinstance(plot, Bars):
        height = _TOP + _BAR * len(plot.bars) + 30
        return _svg(plot.title, height, _bars(plot.bars, height))
    return _svg(plot.title, _HIGH, _curve(plot) if isinstance(plot, Curve) else _spread(plot))


def _svg(title: str, height: int, parts: Iterator[str]) -> str:
    inside = "\n".join(parts)
    name = escape(title)
    return (
        f'<svg viewBox="0 0 {_WIDE} {height}" role="img" aria-label="{name}" xmlns="http://www.w3.org/2000/svg">'
        f"<title>{name}</title>\n{inside}\n</svg>"
    )


def _bars(bars: tuple[Bar, ...], height: int) -> Iterator[str]:
    room = _WIDE - _LABELS - 70
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        x = _LABELS + tick * room
        yield _line((x, _TOP), (x, height - 26), "grid")
        yield _text((x, height - 10), f"{tick:g}", "middle")
    for place, bar in enumerate(bars):
        y = _TOP + place * _BAR
        low, high = (_LABELS + _within(end) * room for end in (bar.low, bar.high))
        yield _text((_LABELS - 8, y + 19), bar.label, "end")
        wide = _within(bar.value) * room
        yield f'<rect class="bar" x="{_LABELS}" y="{y + 4}" width="{wide:.1f}" height="{_BAR - 14}"/>'
        yield _line((low, y + 14), (high, y + 14), "whisker")
        yield from (_line((end, y + 9), (end, y + 19), "whisker") for end in (low, high))
        yield _text((_LABELS + room + 8, y + 19), f"{bar.value:.3f}", "start")


def _curve(plot: Curve) -> Iterator[str]:
    yield from _frame(plot.across, plot.up)
    yield _line(_at(0, 1), _at(1, 0), "grid")
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (_at(*point) for point in plot.points))
    yield f'<polyline class="curve" points="{path}"/>'
    x, y = _at(*plot.chosen)
    yield f'<circle class="chosen" cx="{x:.1f}" cy="{y:.1f}" r="6"/>'
    yield _text((_LEFT + 10, _TOP + _UP - 12), plot.note, "start")


def _frame(across: str, up: str) -> Iterator[str]:
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        yield _line(_at(tick, 0), _at(tick, 1), "grid")
        yield _line(_at(0, tick), _at(1, tick), "grid")
        yield _text((_at(tick, 0)[0], _TOP + _UP + 16), f"{tick:.0%}", "middle")
        yield _text((_LEFT - 6, _at(0, tick)[1] + 4), f"{tick:.0%}", "end")
    yield _text((_LEFT + _ACROSS / 2, _HIGH - 6), across, "middle")
    middle = _TOP + _UP / 2
    yield f'<text transform="rotate(-90 12 {middle})" x="12" y="{middle}" text-anchor="middle">{escape(up)}</text>'


def _spread(plot: Spread) -> Iterator[str]:
    most = max(plot.counts) or 1
    width = _ACROSS / len(plot.counts)
    for place, count in enumerate(plot.counts):
        high = count / most * _UP
        x, y = _LEFT + place * width, _TOP + _UP - high
        yield f'<rect class="bar" x="{x + 0.5:.1f}" y="{y:.1f}" width="{width - 1:.1f}" height="{high:.1f}"/>'
    yield _line(_at(0, 0), _at(1, 0), "axis")
    for part in (0.0, 0.25, 0.5, 0.75, 1.0):
        yield _text((_at(part, 0)[0], _TOP + _UP + 16), f"{part * plot.widest:.3g}", "middle")
    yield _text((_LEFT + _ACROSS / 2, _HIGH - 6), "milliseconds", "middle")
    for name, value in (("p50", plot.p50), ("p95", plot.p95)):
        x, _ = _at(_within(value / plot.widest), 0)
        yield _line((x, _TOP), (x, _TOP + _UP), "mark")
        yield _text((x + 4, _TOP + (10 if name == "p50" else 26)), f"{name} {value:.3g} ms", "start")


def _at(across: float, up: float) -> tuple[float, float]:
    return _LEFT + across * _ACROSS, _TOP + (1 - up) * _UP


def _within(share: float) -> float:
    return min(max(share, 0.0), 1.0)


def _line(start: tuple[float, float], end: tuple[float, float], kind: str) -> str:
    return f'<line class="{kind}" x1="{start[0]:.1f}" y1="{start[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}"/>'


def _text(at: tuple[float, float], said: str, anchor: str) -> str:
    return f'<text x="{at[0]:.1f}" y="{at[1]:.1f}" text-anchor="{anchor}">{escape(said)}</text>'


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


_STYLE = """
:root { color-scheme: light dark; --ink: #1f2430; --paper: #fdfdfb; --bar: #4878a8; --line: #c43; --grid: #ccc8; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e6e2; --paper: #17191f; --bar: #7aa7d6; --line: #f86; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 70rem;
  margin: 2rem auto; padding: 0 1rem; }
h1, h2 { line-height: 1.2; } h2 { margin-top: 3rem; }
figure { display: inline-block; width: min(100%, 33rem); margin: 0 1rem 1rem 0; vertical-align: top; }
figcaption { font-weight: 600; } svg { width: 100%; height: auto; } svg text { font-size: 12px; fill: var(--ink); }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; } td, th { padding: .15rem 1rem .15rem 0;
  text-align: left; border-bottom: 1px solid var(--grid); }
.bar { fill: var(--bar); } .whisker, .axis { stroke: var(--ink); } .grid { stroke: var(--grid); }
.curve { fill: none; stroke: var(--bar); stroke-width: 2.5; } .chosen { fill: var(--line); }
.mark { stroke: var(--line); stroke-dasharray: 4 3; } .failed { color: var(--line); }
"""


def as_text(measured: Measured) -> str:
    """Each figure on a line of its own, with the interval it lies in."""
    lines = [f"  {name:<30} {_shown(value):<10} {sure}".rstrip() for name, value, sure in _lines(measured.figures)]
    return "\n".join([measured.title, *lines, ""])


def as_html(every: Sequence[Measured], *, title: str, above: str = "") -> str:
    """A page of its own: no script, nothing fetched."""
    made = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    sections = "\n".join(map(_section, every))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<h1>{escape(title)}</h1>\n"
        f"<p>Measured with By the Book on {made}. Whiskers and brackets are 95 % intervals.</p>\n"
        f"{above}\n{sections}\n</body>\n</html>\n"
    )


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of texts."""
    first = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    rest = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>\n" for row in rows)
    return f"<table>\n<tr>{first}</tr>\n{rest}</table>"


def _section(measured: Measured) -> str:
    figures = [f"<figure><figcaption>{escape(p.title)}</figcaption>{drawn(p)}</figure>" for p in measured.plots]
    rows = [(name, _shown(value), sure) for name, value, sure in _lines(measured.figures)]
    shown = table(("figure", "value", "95 % interval"), rows)
    return "\n".join([f"<h2>{escape(measured.title)}</h2>", *figures, shown])


def _lines(figures: Figures) -> Iterator[tuple[str, object, str]]:
    """Each figure with its name, one inside of others with theirs in front, its value and its interval."""
    sure = dict(_flat(_inner(figures.get("intervals")), ""))
    for name, value in _flat({name: value for name, value in figures.items() if name != "intervals"}, ""):
        yield name, value, _ends(sure.get(name))


def _flat(figures: Mapping[str, object], above: str) -> Iterator[tuple[str, object]]:
    for name, value in figures.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{above}{name}.")
        else:
            yield above + name, value


def _inner(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _ends(ends: object) -> str:
    return f"[{ends[0]:.3f}, {ends[1]:.3f}]" if isinstance(ends, list) else ""


def _shown(value: object) -> str:
    if isinstance(value, list):
        return _ends(value)
    return "-" if value is None else str(value)
