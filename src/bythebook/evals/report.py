"""Measurements as a person reads them: text for a terminal, and a page with plots that needs nothing from elsewhere."""

from __future__ import annotations

from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING

from bythebook.evals.drawing import drawn

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from bythebook.evals import Figures, Measured

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
