"""Reports of suites: text for a terminal, and a self-contained HTML page with SVG plots and without scripts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape

import numpy as np
from numpy.typing import NDArray

from bythebook.evals import EvalResult, Metrics

Numbers = NDArray[np.float64]


_WIDTH, _HEIGHT = 520, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 54, 16, 14, 44
_PLOT_WIDTH, _PLOT_HEIGHT = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
_BAR = 34
_LABELS = 150


def render_svg(plot: "Plot") -> str:
    """Render the plot as an SVG element with its title as accessible name."""
    if isinstance(plot, Bars):
        height = _TOP + _BAR * len(plot.bars) + 30
        return _svg_document(plot.title, height, _draw_bars(plot.bars, height))
    return _svg_document(plot.title, _HEIGHT, _draw_curve(plot) if isinstance(plot, Curve) else _draw_histogram(plot))


def _svg_document(title: str, height: int, parts: Iterator[str]) -> str:
    inside = "\n".join(parts)
    name = escape(title)
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{name}" xmlns="http://www.w3.org/2000/svg">'
        f"<title>{name}</title>\n{inside}\n</svg>"
    )


def _draw_bars(bars: tuple["Bar", ...], height: int) -> Iterator[str]:
    room = _WIDTH - _LABELS - 70
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        x = _LABELS + tick * room
        yield _svg_line((x, _TOP), (x, height - 26), "grid")
        yield _svg_text((x, height - 10), f"{tick:g}", "middle")
    for place, bar in enumerate(bars):
        y = _TOP + place * _BAR
        low, high = (_LABELS + _clamp(end) * room for end in (bar.low, bar.high))
        yield _svg_text((_LABELS - 8, y + 19), bar.label, "end")
        wide = _clamp(bar.value) * room
        yield f'<rect class="bar" x="{_LABELS}" y="{y + 4}" width="{wide:.1f}" height="{_BAR - 14}"/>'
        yield _svg_line((low, y + 14), (high, y + 14), "whisker")
        yield from (_svg_line((end, y + 9), (end, y + 19), "whisker") for end in (low, high))
        yield _svg_text((_LABELS + room + 8, y + 19), f"{bar.value:.3f}", "start")


def _draw_curve(plot: "Curve") -> Iterator[str]:
    yield from _draw_axes(plot.across, plot.up)
    yield _svg_line(_to_pixels(0, 1), _to_pixels(1, 0), "grid")
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (_to_pixels(*point) for point in plot.points))
    yield f'<polyline class="curve" points="{path}"/>'
    x, y = _to_pixels(*plot.chosen)
    yield f'<circle class="chosen" cx="{x:.1f}" cy="{y:.1f}" r="6"/>'
    yield _svg_text((_LEFT + 10, _TOP + _PLOT_HEIGHT - 12), plot.note, "start")


def _draw_axes(across: str, up: str) -> Iterator[str]:
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        yield _svg_line(_to_pixels(tick, 0), _to_pixels(tick, 1), "grid")
        yield _svg_line(_to_pixels(0, tick), _to_pixels(1, tick), "grid")
        yield _svg_text((_to_pixels(tick, 0)[0], _TOP + _PLOT_HEIGHT + 16), f"{tick:.0%}", "middle")
        yield _svg_text((_LEFT - 6, _to_pixels(0, tick)[1] + 4), f"{tick:.0%}", "end")
    yield _svg_text((_LEFT + _PLOT_WIDTH / 2, _HEIGHT - 6), across, "middle")
    middle = _TOP + _PLOT_HEIGHT / 2
    yield f'<text transform="rotate(-90 12 {middle})" x="12" y="{middle}" text-anchor="middle">{escape(up)}</text>'


def _draw_histogram(plot: "Histogram") -> Iterator[str]:
    most = max(plot.counts) or 1
    width = _PLOT_WIDTH / len(plot.counts)
    for place, count in enumerate(plot.counts):
        high = count / most * _PLOT_HEIGHT
        x, y = _LEFT + place * width, _TOP + _PLOT_HEIGHT - high
        yield f'<rect class="bar" x="{x + 0.5:.1f}" y="{y:.1f}" width="{width - 1:.1f}" height="{high:.1f}"/>'
    yield _svg_line(_to_pixels(0, 0), _to_pixels(1, 0), "axis")
    for part in (0.0, 0.25, 0.5, 0.75, 1.0):
        yield _svg_text((_to_pixels(part, 0)[0], _TOP + _PLOT_HEIGHT + 16), f"{part * plot.widest:.3g}", "middle")
    yield _svg_text((_LEFT + _PLOT_WIDTH / 2, _HEIGHT - 6), "milliseconds", "middle")
    for name, value in (("p50", plot.p50), ("p95", plot.p95)):
        x, _ = _to_pixels(_clamp(value / plot.widest), 0)
        yield _svg_line((x, _TOP), (x, _TOP + _PLOT_HEIGHT), "mark")
        yield _svg_text((x + 4, _TOP + (10 if name == "p50" else 26)), f"{name} {value:.3g} ms", "start")


def _to_pixels(across: float, up: float) -> tuple[float, float]:
    return _LEFT + across * _PLOT_WIDTH, _TOP + (1 - up) * _PLOT_HEIGHT


def _clamp(share: float) -> float:
    return min(max(share, 0.0), 1.0)


def _svg_line(start: tuple[float, float], end: tuple[float, float], kind: str) -> str:
    return f'<line class="{kind}" x1="{start[0]:.1f}" y1="{start[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}"/>'


def _svg_text(at: tuple[float, float], text: str, anchor: str) -> str:
    return f'<text x="{at[0]:.1f}" y="{at[1]:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


_POINTS = 200
_BINS = 30
_SLOWEST_SHOWN = 99
"""The percentile at which times are clipped, because a single outlier would flatten the histogram."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A metric from 0 to 1 with its confidence interval."""

    label: str
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Bars:
    """A bar chart."""

    title: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class Curve:
    """A tradeoff curve of two rates, with the chosen point."""

    title: str
    across: str
    up: str
    points: tuple[tuple[float, float], ...]
    chosen: tuple[float, float]
    note: str
    """A description of the chosen point."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """A histogram of times."""

    title: str
    counts: tuple[int, ...]
    widest: float
    """The right edge of the last bin, in milliseconds."""
    p50: float
    p95: float


Plot = Bars | Curve | Histogram


def bar_chart(title: str, metrics: Mapping[str, tuple[float, Sequence[float]]]) -> Bars:
    """Build a bar chart from values and intervals by name."""
    return Bars(title, tuple(Bar(name, value, low, high) for name, (value, (low, high)) in metrics.items()))


def tradeoff_curve(title: str, *, across: tuple[str, Numbers], up: tuple[str, Numbers], cutoff: float) -> Curve:
    """Build the curve of both rates over all cutoffs: the part of `across` below and of `up` at or above the cutoff.

    The point of `cutoff` is marked.
    """
    (below_name, below), (above_name, above) = across, up
    values = np.unique(np.concatenate([below, above]))
    cutoffs = np.concatenate([[-np.inf], np.quantile(values, np.linspace(0, 1, _POINTS)), [np.inf]])
    points = tuple((_share(below < cut), _share(above >= cut)) for cut in cutoffs)
    chosen = (_share(below < cutoff), _share(above >= cutoff))
    note = f"cutoff {cutoff:.3g}: {above_name} {chosen[1]:.1%}, {below_name} {chosen[0]:.1%}"
    return Curve(title, below_name, above_name, points, chosen, note)


def histogram(title: str, milliseconds: Sequence[float]) -> Histogram:
    """Build a histogram of milliseconds."""
    given = np.asarray(milliseconds)
    widest = max(float(np.percentile(given, _SLOWEST_SHOWN)), 1e-3)
    counts, _ = np.histogram(np.clip(given, 0, widest), bins=_BINS, range=(0, widest))
    p50, p95 = (float(value) for value in np.percentile(given, [50, 95]))
    return Histogram(title, tuple(int(count) for count in counts), widest, p50, p95)


def _share(mask: NDArray[np.bool_]) -> float:
    return float(mask.mean())


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


def to_text(result: EvalResult) -> str:
    """Format each metric on one line with its interval."""
    lines = [
        f"  {name:<30} {_format_value(value):<10} {interval}".rstrip()
        for name, value, interval in _metric_rows(result.metrics)
    ]
    return "\n".join([result.title, *lines, ""])


def to_html(results: Sequence[EvalResult], *, title: str, above: str = "") -> str:
    """Build a self-contained page without scripts and external resources."""
    made = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    sections = "\n".join(map(_html_section, results))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<h1>{escape(title)}</h1>\n"
        f"<p>Measured with By the Book on {made}. Whiskers and brackets are 95 % intervals.</p>\n"
        f"{above}\n{sections}\n</body>\n</html>\n"
    )


def html_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Build a table of escaped cells."""
    first = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    rest = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>\n" for row in rows)
    return f"<table>\n<tr>{first}</tr>\n{rest}</table>"


def _html_section(result: EvalResult) -> str:
    figures = [f"<figure><figcaption>{escape(p.title)}</figcaption>{render_svg(p)}</figure>" for p in result.plots]
    rows = [(name, _format_value(value), interval) for name, value, interval in _metric_rows(result.metrics)]
    rendered = html_table(("metric", "value", "95 % interval"), rows)
    return "\n".join([f"<h2>{escape(result.title)}</h2>", *figures, rendered])


def _metric_rows(metrics: Metrics) -> Iterator[tuple[str, object, str]]:
    """The dotted name, the value and the interval of each metric."""
    interval = dict(_flatten(_as_mapping(metrics.get("intervals")), ""))
    for name, value in _flatten({name: value for name, value in metrics.items() if name != "intervals"}, ""):
        yield name, value, _format_interval(interval.get(name))


def _flatten(metrics: Mapping[str, object], prefix: str) -> Iterator[tuple[str, object]]:
    for name, value in metrics.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _as_mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _format_interval(ends: object) -> str:
    return f"[{ends[0]:.3f}, {ends[1]:.3f}]" if isinstance(ends, list) else ""


def _format_value(value: object) -> str:
    if isinstance(value, list):
        return _format_interval(value)
    return "-" if value is None else str(value)
