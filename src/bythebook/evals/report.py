"""Reports of suites: text for a terminal, and a self-contained HTML page with SVG plots and without scripts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from string import Template

import numpy as np

from bythebook.evals import EvalResult, Metrics
from bythebook.evals.metrics import Numbers

_WIDTH, _HEIGHT = 520, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 54, 16, 14, 44
_PLOT_WIDTH, _PLOT_HEIGHT = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
_BAR = 34
_LABELS = 150
_TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)
_POINTS = 200
_BINS = 30
_SLOWEST_SHOWN = 99
"""The percentile at which times are clipped, because a single outlier would flatten the histogram."""


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot as an SVG element with its title as accessible name."""

    title: str
    svg: str


def bar_chart(title: str, metrics: Mapping[str, tuple[float, Sequence[float]]]) -> Plot:
    """Draw values from 0 to 1 with their confidence intervals, by name."""
    height = _TOP + _BAR * len(metrics) + 30
    room = _WIDTH - _LABELS - 70
    parts: list[str] = []
    for tick in _TICKS:
        x = _LABELS + tick * room
        parts += [_svg_line((x, _TOP), (x, height - 26), "grid"), _svg_text((x, height - 10), f"{tick:g}", "middle")]
    for place, (name, (value, interval)) in enumerate(metrics.items()):
        y = _TOP + place * _BAR
        low, high = (_LABELS + _clamp(end) * room for end in interval)
        parts += [
            _svg_text((_LABELS - 8, y + 19), name, "end"),
            _svg_bar((_LABELS, y + 4), _clamp(value) * room, _BAR - 14),
            _svg_line((low, y + 14), (high, y + 14), "whisker"),
            *(_svg_line((end, y + 9), (end, y + 19), "whisker") for end in (low, high)),
            _svg_text((_LABELS + room + 8, y + 19), f"{value:.3f}", "start"),
        ]
    return _make_plot(title, height, parts)


def tradeoff_curve(title: str, *, across: tuple[str, Numbers], up: tuple[str, Numbers], cutoff: float) -> Plot:
    """Draw both rates over all cutoffs: the part of `across` below and of `up` at or above the cutoff.

    The point of `cutoff` is marked and described.
    """
    (below_name, below), (above_name, above) = across, up

    def rates(cut: float) -> tuple[float, float]:
        return float((below < cut).mean()), float((above >= cut).mean())

    values = np.unique(np.concatenate([below, above]))
    cutoffs = [-np.inf, *np.quantile(values, np.linspace(0, 1, _POINTS)), np.inf]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (_to_pixels(*rates(cut)) for cut in cutoffs))
    refused, kept = rates(cutoff)
    x, y = _to_pixels(refused, kept)
    note = f"cutoff {cutoff:.3g}: {above_name} {kept:.1%}, {below_name} {refused:.1%}"
    parts = [
        *_draw_axes(below_name, above_name),
        _svg_line(_to_pixels(0, 1), _to_pixels(1, 0), "grid"),
        f'<polyline class="curve" points="{path}"/>',
        f'<circle class="chosen" cx="{x:.1f}" cy="{y:.1f}" r="6"/>',
        _svg_text((_LEFT + 10, _TOP + _PLOT_HEIGHT - 12), note, "start"),
    ]
    return _make_plot(title, _HEIGHT, parts)


def _draw_axes(across: str, up: str) -> Iterator[str]:
    for tick in _TICKS:
        yield _svg_line(_to_pixels(tick, 0), _to_pixels(tick, 1), "grid")
        yield _svg_line(_to_pixels(0, tick), _to_pixels(1, tick), "grid")
        yield _svg_text((_to_pixels(tick, 0)[0], _TOP + _PLOT_HEIGHT + 16), f"{tick:.0%}", "middle")
        yield _svg_text((_LEFT - 6, _to_pixels(0, tick)[1] + 4), f"{tick:.0%}", "end")
    yield _svg_text((_LEFT + _PLOT_WIDTH / 2, _HEIGHT - 6), across, "middle")
    middle = _TOP + _PLOT_HEIGHT / 2
    yield f'<text transform="rotate(-90 12 {middle})" x="12" y="{middle}" text-anchor="middle">{escape(up)}</text>'


def histogram(title: str, milliseconds: Sequence[float]) -> Plot:
    """Draw how often times occur, with their median and their 95th percentile."""
    given = np.asarray(milliseconds)
    widest = max(float(np.percentile(given, _SLOWEST_SHOWN)), 1e-3)
    counts, _ = np.histogram(np.clip(given, 0, widest), bins=_BINS, range=(0, widest))
    width = _PLOT_WIDTH / _BINS
    parts: list[str] = []
    for place, count in enumerate(counts):
        high = count / counts.max() * _PLOT_HEIGHT
        parts.append(_svg_bar((_LEFT + place * width + 0.5, _TOP + _PLOT_HEIGHT - high), width - 1, high))
    parts.append(_svg_line(_to_pixels(0, 0), _to_pixels(1, 0), "axis"))
    below = _TOP + _PLOT_HEIGHT + 16
    parts += [_svg_text((_to_pixels(tick, 0)[0], below), f"{tick * widest:.3g}", "middle") for tick in _TICKS]
    parts.append(_svg_text((_LEFT + _PLOT_WIDTH / 2, _HEIGHT - 6), "milliseconds", "middle"))
    for percentile, offset in ((50, 10), (95, 26)):
        value = float(np.percentile(given, percentile))
        x, _ = _to_pixels(_clamp(value / widest), 0)
        parts.append(_svg_line((x, _TOP), (x, _TOP + _PLOT_HEIGHT), "mark"))
        parts.append(_svg_text((x + 4, _TOP + offset), f"p{percentile} {value:.3g} ms", "start"))
    return _make_plot(title, _HEIGHT, parts)


def _make_plot(title: str, height: int, parts: Sequence[str]) -> Plot:
    inside, name = "\n".join(parts), escape(title)
    head = f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{name}" xmlns="http://www.w3.org/2000/svg">'
    return Plot(title, f"{head}<title>{name}</title>\n{inside}\n</svg>")


def _to_pixels(across: float, up: float) -> tuple[float, float]:
    return _LEFT + across * _PLOT_WIDTH, _TOP + (1 - up) * _PLOT_HEIGHT


def _clamp(share: float) -> float:
    return min(max(share, 0.0), 1.0)


def _svg_bar(at: tuple[float, float], width: float, height: float) -> str:
    return f'<rect class="bar" x="{at[0]:.1f}" y="{at[1]:.1f}" width="{width:.1f}" height="{height:.1f}"/>'


def _svg_line(start: tuple[float, float], end: tuple[float, float], kind: str) -> str:
    return f'<line class="{kind}" x1="{start[0]:.1f}" y1="{start[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}"/>'


def _svg_text(at: tuple[float, float], text: str, anchor: str) -> str:
    return f'<text x="{at[0]:.1f}" y="{at[1]:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


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
    page = Template(Path(__file__).with_suffix(".html").read_text(encoding="utf-8"))
    return page.substitute(title=escape(title), made=made, above=above, sections=sections)


def html_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Build a table of escaped cells."""
    first = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    rest = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>\n" for row in rows)
    return f"<table>\n<tr>{first}</tr>\n{rest}</table>"


def _html_section(result: EvalResult) -> str:
    figures = [f"<figure><figcaption>{escape(p.title)}</figcaption>{p.svg}</figure>" for p in result.plots]
    rows = [(name, _format_value(value), interval) for name, value, interval in _metric_rows(result.metrics)]
    rendered = html_table(("metric", "value", "95 % interval"), rows)
    return "\n".join([f"<h2>{escape(result.title)}</h2>", *figures, rendered])


def _metric_rows(metrics: Metrics) -> Iterator[tuple[str, object, str]]:
    """The dotted name, the value and the interval of each metric."""
    intervals = metrics.get("intervals")
    interval = dict(_flatten(intervals, "")) if isinstance(intervals, dict) else {}
    for name, value in _flatten({name: value for name, value in metrics.items() if name != "intervals"}, ""):
        yield name, value, _format_interval(interval.get(name))


def _flatten(metrics: Mapping[str, object], prefix: str) -> Iterator[tuple[str, object]]:
    for name, value in metrics.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _format_interval(ends: object) -> str:
    return f"[{ends[0]:.3f}, {ends[1]:.3f}]" if isinstance(ends, list) else ""


def _format_value(value: object) -> str:
    if isinstance(value, list):
        return _format_interval(value)
    return "-" if value is None else str(value)
