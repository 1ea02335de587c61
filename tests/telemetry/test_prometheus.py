"""Metrics of one process and of several."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bythebook.telemetry import install_listeners, log, metric, span
from bythebook.telemetry.prometheus import PrometheusListener, clear_folder, find_listener
from bythebook.telemetry.registry import METRICS, MetricKind


def _samples(text: bytes) -> dict[str, float]:
    lines = [line for line in text.decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def test_each_kind_of_metric_is_aggregated_in_its_own_way() -> None:
    with install_listeners(metrics := PrometheusListener()):
        assert find_listener() is metrics
        metric("questions", outcome="answered")
        metric("questions", outcome="answered")
        metric("active_requests", 1)
        metric("active_requests", 1)
        metric("active_requests", -1)
        metric("pages", 7)
        metric("pages", 5)
        metric("circuit_breaker", 2, upstream="models.example")
        metric("tokens", 300, kind="prompt")
        metric("first_token_seconds", 0.2)
        log("state_changed", state="received")
        with span("searching"):
            pass
    assert find_listener() is None
    text, kind = metrics.render()
    assert kind.startswith("text/plain")
    samples = _samples(text)
    expected = {
        'bythebook_questions_total{outcome="answered"}': 2.0,
        "bythebook_active_requests": 1.0,
        "bythebook_pages": 5.0,
        'bythebook_circuit_breaker{upstream="models.example"}': 2.0,
        'bythebook_tokens_total{kind="prompt"}': 300.0,
        'bythebook_first_token_seconds_bucket{le="0.1"}': 0.0,
        'bythebook_first_token_seconds_bucket{le="0.25"}': 1.0,
        'bythebook_stage_seconds_count{stage="searching"}': 1.0,
    }
    assert {name: samples.get(name) for name in expected} == expected


def test_every_metric_can_be_recorded_and_has_a_help_text() -> None:
    metrics = PrometheusListener()
    for known in METRICS.values():
        metrics.on_metric(known.name, 1.0, dict.fromkeys(known.labels, "x"))
    text = metrics.render()[0].decode()
    for known in METRICS.values():
        name = (
            known.prometheus_name
            if known.kind is not MetricKind.COUNTER
            else known.prometheus_name.removesuffix("_total")
        )
        assert f"# HELP {known.prometheus_name} {known.help}" in text or f"# HELP {name} {known.help}" in text


WORKER = """
import sys
from pathlib import Path
from bythebook.telemetry import install_listeners, metric
from bythebook.telemetry.prometheus import PrometheusListener

with install_listeners(metrics := PrometheusListener(Path(sys.argv[1]))):
    for line in sys.stdin:
        match line.split():
            case ["render"]:
                text = metrics.render()[0].decode()
                kept = [line for line in text.splitlines() if not line.startswith("#") and " 0.0" not in line]
                print("|".join(kept), flush=True)
            case [name, value, *labels]:
                metric(name, float(value), **dict(label.split("=") for label in labels))
                print("kept", flush=True)
"""


class Worker:
    """A process that writes metrics to the shared folder."""

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORKER, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def tell(self, line: str) -> str:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def render(self) -> dict[str, float]:
        return _samples(self.tell("render").replace("|", "\n").encode())

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


def test_metrics_of_several_workers_are_merged_even_if_one_dies(tmp_path: Path) -> None:
    folder = tmp_path / "metrics"
    clear_folder(folder)
    (folder / "counter_1.db").touch()
    clear_folder(folder)
    assert not list(folder.iterdir())
    first, second = Worker(folder), Worker(folder)
    try:
        for worker, tokens, generation in ((first, 10, 1), (second, 5, 2)):
            assert worker.tell(f"tokens {tokens} kind=prompt") == "kept"
            worker.tell("active_requests 1")
            worker.tell("first_token_seconds 0.2")
            worker.tell(f"index_generation {generation}")
        first.tell("circuit_breaker 2 upstream=x")
        second.tell("circuit_breaker 0 upstream=x")
        both = second.render()
        assert first.render() == both
        first.kill()
        alone = second.render()
    finally:
        first.kill()
        second.kill()
    told = (
        'bythebook_tokens_total{kind="prompt"}',
        "bythebook_first_token_seconds_count",
        "bythebook_active_requests",
        "bythebook_index_generation",
        'bythebook_circuit_breaker{upstream="x"}',
    )
    assert [both.get(name) for name in told] == [15.0, 2.0, 2.0, 2.0, 2.0]
    # Counters of a dead worker stay; its gauges are dropped.
    assert [alone.get(name) for name in told] == [15.0, 2.0, 1.0, 2.0, None]


@pytest.mark.parametrize("name", ["no_such_metric", "questions"])
def test_an_unknown_metric_or_label_is_an_error(name: str) -> None:
    with pytest.raises((KeyError, ValueError)):
        PrometheusListener().on_metric(name, 1.0, {"no_such": "label"})
