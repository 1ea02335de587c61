"""The table of suites, and the thresholds of this project: each metric with its floor and its goal."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Literal

from bythebook.errors import InputError
from bythebook.evals import EvalRequest, EvalResult, Metrics

Run = Callable[[str, EvalRequest], EvalResult]


# The key is also the module, which is imported when the suite runs: the command line must start fast.
SUITES = {
    "retrieval": "Measure retrieval, and BM25 and vectors on their own for comparison.",
    "followups": "Measure how well follow-up questions are rewritten without a model.",
    "refusal": "Measure how well questions are refused that the documents do not answer.",
    "answers": "Measure how often the sentences of an answer contain the marked answer.",
    "proof": "Measure how well supported claims are separated from others.",
    "gaps": "Measure how well unanswered questions are clustered by topic.",
}


async def run_suite(name: str, request: EvalRequest) -> EvalResult:
    """Run a suite. The result includes the seed and the seconds."""
    for path in (request.path, request.foreign):
        if path and not path.exists():
            raise InputError(f"there is no {str(path)!r}. docs/quality.md names the sources of the datasets.")
    started = time.perf_counter()
    result: EvalResult = await import_module(f"bythebook.evals.{name}").measure(request)
    run = {"seed": request.seed, "seconds": round(time.perf_counter() - started, 1)}
    return replace(result, metrics={**result.metrics, **run})


Verdict = Literal["goal", "floor", "MISSED", "not measured"]
"""Which threshold a metric reaches."""

DATASETS_HINT = (
    "docs/quality.md names the sources of the datasets. Name their folder with: make quality COLLECTIONS=FOLDER."
)


OUT_OF_BOOK = "out of book"


@dataclass(frozen=True, slots=True)
class Threshold:
    """The floor and the goal of a metric."""

    key: str
    floor: float
    goal: float
    less_is_better: bool = False


@dataclass(frozen=True, slots=True)
class QualityCheck:
    """A suite on one dataset, with the thresholds of its metrics."""

    suite: str
    dataset: str
    thresholds: tuple[Threshold, ...]
    limit: int = 1000
    """The maximum number of questions of each kind. More would take long and change little."""
    kind: str = ""


def load_checks() -> Iterator[QualityCheck]:
    """The checks of this project, from `thresholds.json`."""
    for row in json.loads(Path(__file__).with_suffix(".json").read_bytes()):
        yield QualityCheck(**row | {"thresholds": tuple(Threshold(**each) for each in row["thresholds"])})


@dataclass(frozen=True, slots=True)
class MetricVerdict:
    """A metric with its floor and its goal."""

    name: str
    value: float | None
    """None if the metric is undefined or was not measured."""
    floor: float
    goal: float
    verdict: Verdict
    note: str = ""

    def __str__(self) -> str:
        value = "-" if self.value is None else f"{self.value:.4g}"
        note = f"  ({self.note})" if self.note else ""
        return f"{self.verdict:<13} {self.name:<48} {value:>8}   floor {self.floor:<6g} goal {self.goal:g}{note}"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of a check. `result` is None if the dataset is missing."""

    result: EvalResult | None
    verdicts: tuple[MetricVerdict, ...]


def run_checks(request: EvalRequest, *, run: Run) -> Iterator[CheckResult]:
    """Run every check. `request.path` is the folder of all datasets."""
    for check in load_checks():
        result = None
        if (path := request.path / check.dataset).exists():
            limit = min(check.limit, request.limit)
            asked = replace(request, path=path, limit=limit, out_of_book=check.kind == OUT_OF_BOOK)
            result = run(check.suite, asked)
        metrics = result.metrics if result else None
        yield CheckResult(result, tuple(judge_metric(check, threshold, metrics) for threshold in check.thresholds))


def below_floor(verdicts: Sequence[MetricVerdict]) -> list[MetricVerdict]:
    """The metrics below their floor, including those that were not measured."""
    return [one for one in verdicts if one.verdict in ("MISSED", "not measured")]


def judge_metric(check: QualityCheck, threshold: Threshold, metrics: Metrics | None) -> MetricVerdict:
    """Compare a metric with its thresholds. `metrics` is None if the dataset is missing."""
    value = _look_up_metric(metrics, threshold.key)
    sign = -1 if threshold.less_is_better else 1
    verdict: Verdict
    note = ""
    if metrics is None:
        verdict, note = "not measured", "the dataset is missing"
    elif value is None:
        verdict, note = _judge_undefined_share(metrics)
    elif sign * value < sign * threshold.floor:
        verdict = "MISSED"
    else:
        verdict = "goal" if sign * value >= sign * threshold.goal else "floor"
    kind = f", {check.kind}" if check.kind else ""
    name = f"{check.suite} {check.dataset.partition('/')[0]}{kind}: {threshold.key}"
    return MetricVerdict(name, value, threshold.floor, threshold.goal, verdict, note)


def _judge_undefined_share(metrics: Metrics) -> tuple[Verdict, str]:
    """Judge a share that is undefined because the human rewrite does not retrieve more than the last turn."""
    ours, rewrite = (_look_up_metric(metrics, f"{of}.ndcg_at_10") or 0.0 for of in ("ours", "rewrite"))
    note = f"the rewrite finds {rewrite:.3f}, no more than the last turn; ours finds {ours:.3f}"
    return "goal" if ours >= rewrite else "MISSED", note


def _look_up_metric(metrics: Metrics | None, key: str) -> float | None:
    """Look up a metric by its dotted name."""
    value: object = metrics
    for name in key.split("."):
        value = value[name] if isinstance(value, dict) else None
    return value if isinstance(value, int | float) else None
