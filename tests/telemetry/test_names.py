"""The tables of spans, events and figures: the code, the tables and the manual say the same."""

from __future__ import annotations

import ast
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import bythebook
from bythebook.qa.request import Stage
from bythebook.telemetry import CONTENT
from bythebook.telemetry.registry import EVENTS, FIGURES, SPANS

ROOT = Path(bythebook.__file__).parent
MANUAL = ROOT.parents[1] / "docs" / "observing.md"

SPREAD = {"told": {"upstream", "stage", "state", "attempt"}}
"""Fields that are given by the name of a variable, and what is in it."""


def _calls(function: str) -> Iterator[tuple[str, ast.Call]]:
    for path in sorted(ROOT.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        if "bythebook.telemetry" not in source:
            continue
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == function:
                yield f"{path.relative_to(ROOT)}:{node.lineno}", node


def _name(call: ast.Call) -> str:
    first = call.args[0] if call.args else None
    return str(first.value) if isinstance(first, ast.Constant) else ""


def _keywords(call: ast.Call) -> set[str]:
    given = {word.arg for word in call.keywords if word.arg}
    spread = [ast.unparse(word.value) for word in call.keywords if not word.arg]
    return given.union(*(SPREAD[name] for name in spread))


def test_every_figure_is_counted_with_its_labels_and_no_other_is() -> None:
    used = {_name(call): (place, _keywords(call)) for place, call in _calls("figure")}
    # The seconds of a stage are what is left of a span.
    assert set(used) | {"stage_seconds"} == set(FIGURES)
    wrong = [(place, name) for name, (place, labels) in used.items() if labels != set(FIGURES[name].labels)]
    assert not wrong


def test_every_event_is_told_with_its_fields_and_no_other_is() -> None:
    used = [(place, _name(call), _keywords(call)) for place, call in _calls("log")]
    assert {name for _, name, _ in used} == set(EVENTS)
    wrong = [(place, name) for place, name, fields in used if not fields <= set(EVENTS[name].fields)]
    assert not wrong


def test_every_span_is_one_of_the_table() -> None:
    named = {_name(call) for _, call in _calls("span")} - {""}
    assert named | {str(stage) for stage in Stage} == set(SPANS)


def _table(heading: str) -> list[list[str]]:
    """The rows of the first table below a heading of the manual."""
    section = MANUAL.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def _code(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_the_manual_lists_every_figure() -> None:
    expected = [
        [f"`{figure.exported}`", figure.kind, ", ".join(f"`{label}`" for label in figure.labels), figure.help]
        for figure in FIGURES.values()
    ]
    assert _table("Metrics") == expected


def test_the_manual_lists_every_span() -> None:
    assert _table("Spans") == [[f"`{name}`", meaning] for name, meaning in SPANS.items()]


def test_the_manual_lists_every_event_and_its_fields() -> None:
    expected = [
        [f"`{name}`", logging.getLevelName(told.level).lower(), told.help, *[", ".join(f"`{f}`" for f in told.fields)]]
        for name, told in EVENTS.items()
    ]
    assert _table("Log events") == expected


def test_the_manual_names_what_is_content() -> None:
    section = MANUAL.read_text(encoding="utf-8").partition("\n## No content in the logs\n")[2].partition("\n## ")[0]
    named = set(_code(section))
    assert named >= CONTENT


@pytest.mark.parametrize("table", [FIGURES, SPANS, EVENTS], ids=["figures", "spans", "events"])
def test_no_table_is_empty(table: dict[str, object]) -> None:
    assert len(table) > 5
