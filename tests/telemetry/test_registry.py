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
from bythebook.telemetry.registry import LOG_EVENTS, METRICS, SPANS

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


def test_code_logs_exactly_the_registered_events_and_fields() -> None:
    used = [(place, _name(call), _keywords(call)) for place, call in _calls("log")]
    assert {name for _, name, _ in used} == set(LOG_EVENTS)
    wrong = [(place, name) for place, name, fields in used if not fields <= set(LOG_EVENTS[name].fields)]
    assert not wrong


def test_code_opens_exactly_the_registered_spans() -> None:
    named = {_name(call) for _, call in _calls("span")} - {""}
    assert named | {str(stage) for stage in Stage} == set(SPANS)


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


def test_the_manual_lists_every_span() -> None:
    assert _table("Spans") == [[f"`{name}`", meaning] for name, meaning in SPANS.items()]


def test_the_manual_lists_every_event_and_its_fields() -> None:
    expected = [
        [f"`{name}`", logging.getLevelName(told.level).lower(), told.help, *[", ".join(f"`{f}`" for f in told.fields)]]
        for name, told in LOG_EVENTS.items()
    ]
    assert _table("Log events") == expected


def test_the_manual_names_the_content_fields() -> None:
    section = MANUAL.read_text(encoding="utf-8").partition("\n## No content in the logs\n")[2].partition("\n## ")[0]
    named = set(_code(section))
    assert named >= CONTENT_FIELDS


@pytest.mark.parametrize("table", [METRICS, SPANS, LOG_EVENTS], ids=["metrics", "spans", "log events"])
def test_no_table_is_empty(table: dict[str, object]) -> None:
    assert len(table) > 5
