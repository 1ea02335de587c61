"""The code, the registry and the manual agree on spans, log events and metrics."""

from __future__ import annotations

import ast
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import bythebook
from bythebook.qa.request import Stage
from bythebook.telemetry import CONTENT_FIELDS
from bythebook.telemetry.registry import LOG_LEVELS, METRICS

ROOT = Path(bythebook.__file__).parent
MANUAL = ROOT.parents[1] / "docs" / "observing.md"

SPREAD = {"fields": {"upstream", "stage", "state", "attempt"}}
"""The fields of variables that are passed with `**`."""


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


def test_code_records_exactly_the_registered_metrics_and_labels() -> None:
    used = {_name(call): (place, _keywords(call)) for place, call in _calls("metric")}
    # Spans record the metric stage_seconds.
    assert set(used) | {"stage_seconds"} == set(METRICS)
    wrong = [(place, name) for name, (place, labels) in used.items() if labels != set(METRICS[name].labels)]
    assert not wrong


def test_code_logs_exactly_the_events_and_fields_of_the_manual() -> None:
    used = [(place, _name(call), _keywords(call)) for place, call in _calls("log")]
    fields_of = {_code(name)[0]: set(_code(fields)) for name, _, _, fields in _table("Log events")}
    assert {name for _, name, _ in used} == set(fields_of)
    wrong = [(place, name) for place, name, fields in used if not fields <= fields_of[name]]
    assert not wrong


def test_code_opens_exactly_the_spans_of_the_manual() -> None:
    named = {_name(call) for _, call in _calls("span")} - {""}
    assert named | {str(stage) for stage in Stage} == {_code(name)[0] for name, _ in _table("Spans")}


def _table(heading: str) -> list[list[str]]:
    """The rows of the first table below a heading of the manual."""
    section = MANUAL.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def _code(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_the_manual_lists_every_metric() -> None:
    expected = [
        [f"`{metric.prometheus_name}`", metric.kind, ", ".join(f"`{label}`" for label in metric.labels), metric.help]
        for metric in METRICS.values()
    ]
    assert _table("Metrics") == expected


def test_the_manual_explains_every_span() -> None:
    assert all(meaning for _, meaning in _table("Spans"))


def test_the_manual_lists_every_event_with_its_level_and_meaning() -> None:
    levels = [(_code(name)[0], level) for name, level, _, _ in _table("Log events")]
    assert levels == [(name, logging.getLevelName(level).lower()) for name, level in LOG_LEVELS.items()]
    assert all(meaning for _, _, meaning, _ in _table("Log events"))


def test_the_manual_names_the_content_fields() -> None:
    section = MANUAL.read_text(encoding="utf-8").partition("\n## No content in the logs\n")[2].partition("\n## ")[0]
    named = set(_code(section))
    assert named >= CONTENT_FIELDS


@pytest.mark.parametrize("heading", ["Metrics", "Spans", "Log events"])
def test_no_table_is_empty(heading: str) -> None:
    assert len(_table(heading)) > 5
