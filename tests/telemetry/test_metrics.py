"""The figures, of one process and of several."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bythebook.telemetry import figure, listening, log, span
from bythebook.telemetry.prometheus import Metrics, clean, installed
from bythebook.telemetry.registry import FIGURES, Kind


def _samples(text: bytes) -> dict[str, float]:
    lines = [line for line in text.decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def test_each_kind_of_figure_is_kept_in_its_own_way() -> None:
    with listening(metrics := Metrics()):
        assert installed() is metrics
        figure("questions", outcome="answered")
        figure("questions", outcome="answered")
        figure("readers", 1)
        figure("readers", 1)
        figure("readers", -1)
        figure("pages", 7)
        figure("pages", 5)
        figure("breaker", 2, upstream="models.example")
        figure("tokens", 300, kind="prompt")
        figure("first_token_seconds", 0.2)
        log("state", state="received")
        with span("searching"):
            pass
    assert installed() is None
    text, kind = metrics.render()
    assert kind.startswith("text/plain")
    samples = _samples(text)
    expected = {
        'bythebook_questions_total{outcome="answered"}': 2.0,
        "bythebook_readers": 1.0,
        "bythebook_pages": 5.0,
        'bythebook_breaker{upstream="models.example"}': 2.0,
        'bythebook_tokens_total{kind="prompt"}': 300.0,
        'bythebook_first_token_seconds_bucket{le="0.1"}': 0.0,
        'bythebook_first_token_seconds_bucket{le="0.25"}': 1.0,
        'bythebook_stage_seconds_count{stage="searching"}': 1.0,
    }
    assert {name: samples.get(name) for name in expected} == expected


def test_every_figure_can_be_kept_and_is_explained() -> None:
    metrics = Metrics()
    for known in FIGURES.values():
        metrics.counted(known.name, 1.0, dict.fromkeys(known.labels, "x"))
    text = metrics.render()[0].decode()
    for known in FIGURES.values():
        name = known.exported if known.kind is not Kind.COUNT else known.exported.removesuffix("_total")
        assert f"# HELP {known.exported} {known.help}" in text or f"# HELP {name} {known.help}" in text


WORKER = """
import sys
from pathlib import Path
from bythebook.telemetry import figure, listening
from bythebook.telemetry.prometheus import Metrics

with listening(metrics := Metrics(Path(sys.argv[1]))):
    for line in sys.stdin:
        match line.split():
            case ["render"]:
                text = metrics.render()[0].decode()
                kept = [line for line in text.splitlines() if not line.startswith("#") and " 0.0" not in line]
                print("|".join(kept), flush=True)
            case [name, value, *labels]:
                figure(name, float(value), **dict(label.split("=") for label in labels))
                print("kept", flush=True)
"""


class Worker:
    """A process of its own that keeps figures in the shared folder."""

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


def test_the_figures_of_several_workers_are_one_also_when_one_of_them_dies(tmp_path: Path) -> None:
    folder = tmp_path / "metrics"
    clean(folder)
    (folder / "counter_1.db").touch()
    clean(folder)
    assert not list(folder.iterdir())
    first, second = Worker(folder), Worker(folder)
    try:
        for worker, tokens, generation in ((first, 10, 1), (second, 5, 2)):
            assert worker.tell(f"tokens {tokens} kind=prompt") == "kept"
            worker.tell("readers 1")
            worker.tell("first_token_seconds 0.2")
            worker.tell(f"index_generation {generation}")
        first.tell("breaker 2 upstream=x")
        second.tell("breaker 0 upstream=x")
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
        "bythebook_readers",
        "bythebook_index_generation",
        'bythebook_breaker{upstream="x"}',
    )
    assert [both.get(name) for name in told] == [15.0, 2.0, 2.0, 2.0, 2.0]
    # What it has counted stays; what it was doing is over.
    assert [alone.get(name) for name in told] == [15.0, 2.0, 1.0, 2.0, None]


@pytest.mark.parametrize("name", ["no_such_figure", "questions"])
def test_a_figure_that_is_not_in_the_table_is_a_mistake(name: str) -> None:
    with pytest.raises((KeyError, ValueError)):
        Metrics().counted(name, 1.0, {"no_such": "label"})
