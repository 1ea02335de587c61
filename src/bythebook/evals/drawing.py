"""Plots as SVG: a few lines, written out by hand, that any browser shows without a script."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from bythebook.evals.plots import Bars, Curve, Spread

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bythebook.evals.plots import Bar, Plot

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
