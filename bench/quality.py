"""All suites on a folder of datasets, each metric beside its floor and its goal: python -m bench.quality FOLDER

`quality.json` has the floors and goals of this project. The exit code is 1 if a metric misses its floor, unless
`--limit` limits the questions.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from bythebook.evals import EvalRequest, EvalResult, Metrics
from bythebook.evals.report import html_table, to_html
from bythebook.evals.suites import run_suite
from bythebook.serialization import to_json
from bythebook.settings import Settings

Run = Callable[[str, EvalRequest], EvalResult]

Verdict = Literal["goal", "floor", "MISSED", "not measured"]
"""Which threshold a metric reaches."""

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
    """The checks of this project, from `quality.json`."""
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


class _Log:
    """Prints the progress of a suite, a line every ten seconds."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def __call__(self, stage: str, done: int, total: int) -> None:
        if time.monotonic() - self._last >= 10:
            self._last = time.monotonic()
            print(f"{stage} {done} of {total}", file=sys.stderr, flush=True)


def _verdict_table(verdicts: Sequence[MetricVerdict]) -> str:
    rows = [
        (one.name, "-" if one.value is None else f"{one.value:.4g}", f"{one.floor:g}", f"{one.goal:g}", one.verdict)
        for one in verdicts
    ]
    return html_table(("metric", "value", "floor", "goal", ""), rows)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="a folder of datasets; docs/quality.md names their sources")
    parser.add_argument("--data-dir", type=Path, help="where the indexes of the datasets are kept")
    parser.add_argument("--html", type=Path, help="also write an HTML page with plots to this file")
    parser.add_argument("--limit", type=int, default=sys.maxsize, help="the maximum number of questions of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    if not given.folder.is_dir():
        parser.error(f"there is no folder {str(given.folder)!r}. docs/quality.md names the sources of the datasets.")
    settings, results, verdicts = Settings.load({"data_dir": given.data_dir}), list[EvalResult](), list[MetricVerdict]()
    request = EvalRequest(given.folder, settings, _Log(), limit=given.limit, seed=given.seed)
    for check in run_checks(request, run=lambda name, asked: asyncio.run(run_suite(name, asked))):
        results += [check.result] if check.result else []
        verdicts += check.verdicts
        print(*check.verdicts, sep="\n", file=sys.stderr if given.json else sys.stdout, flush=True)
    if given.json:
        print(json.dumps({"metrics": to_json(verdicts), "results": [result.to_dict() for result in results]}, indent=2))
    if given.html:
        given.html.parent.mkdir(parents=True, exist_ok=True)
        given.html.write_text(to_html(results, title="Quality", above=_verdict_table(verdicts)), encoding="utf-8")
    failed = below_floor(verdicts)
    print(f"{len(verdicts) - len(failed)} of {len(verdicts)} metrics hold their floors.", file=sys.stderr)
    return int(bool(failed) and given.limit == sys.maxsize)


if __name__ == "__main__":
    sys.exit(main())
