"""Reports as text and as HTML, and quality thresholds."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest

from bench.quality import QualityCheck, Threshold, below_floor, judge_metric, load_checks
from bythebook.evals import EvalResult
from bythebook.evals.report import Plot, bar_chart, histogram, to_html, to_text, tradeoff_curve

CURVE = tradeoff_curve(
    "Kept & refused", across=("refused", np.array([0.1, 0.6])), up=("kept", np.array([0.4, 0.9])), cutoff=0.5
)
PLOTS: tuple[Plot, ...] = (
    bar_chart("By <method>", {"ours": (0.75, (0.7, 0.8)), "bm25": (1.2, (-1.0, 2.0))}),
    CURVE,
    histogram("Time", [1.0, 2.0, 3.0, 400.0]),
    histogram("No time", [0.0]),
)
MEASURED = EvalResult(
    "retrieval",
    "<b>signals",
    {
        "questions": 2,
        "ndcg_at_10": 0.5,
        "bm25": {"ndcg_at_10": 0.25},
        "share": None,
        "intervals": {"ndcg_at_10": [0.4, 0.6], "bm25": {"ndcg_at_10": [0.1, 0.3]}},
    },
    PLOTS,
)


class Page(HTMLParser):
    """The tags and attributes of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes.extend(attrs)


def test_text_has_one_line_per_metric_with_its_interval() -> None:
    assert [re.sub(r"\s+", " ", line) for line in to_text(MEASURED).splitlines()] == [
        "retrieval <b>signals",
        " questions 2",
        " ndcg_at_10 0.5 [0.400, 0.600]",
        " bm25.ndcg_at_10 0.25 [0.100, 0.300]",
        " share -",
    ]


def test_the_page_has_every_plot_and_no_external_resource() -> None:
    page = Page(to_html([MEASURED], title="Quality"))
    assert page.tags.count("svg") == len(PLOTS)
    assert not {"script", "link", "img", "iframe", "b"} & set(page.tags)
    assert not [name for name, _ in page.attributes if name in ("src", "href") or name.startswith("on")]


def test_the_curve_contains_the_point_of_the_cutoff() -> None:
    left, top, right, bottom = 54.0, 14.0, 504.0, 256.0
    assert f'cx="{(left + right) / 2}" cy="{(top + bottom) / 2}"' in CURVE.svg
    assert ">cutoff 0.5: kept 50.0%, refused 50.0%<" in CURVE.svg
    points = re.findall(r'points="(.*?)"', CURVE.svg)[0].split()
    assert (points[0], points[-1]) == (f"{left},{top}", f"{right},{bottom}")


@pytest.mark.parametrize("plot", PLOTS, ids=lambda plot: plot.title)
def test_nothing_is_drawn_outside_of_the_plot(plot: Plot) -> None:
    places = re.findall(r'(?:x|x1|x2|cx|width)="(-?[\d.]+)"', plot.svg)
    assert all(0 <= float(place) <= 520 for place in places)


@pytest.mark.parametrize(
    ("value", "threshold", "verdict"),
    [
        pytest.param(0.75, Threshold("auroc", 0.7, 0.8), "floor", id="above its floor"),
        pytest.param(0.8, Threshold("auroc", 0.7, 0.8), "goal", id="at its goal"),
        pytest.param(0.69, Threshold("auroc", 0.7, 0.8), "MISSED", id="below its floor"),
        pytest.param(19.0, Threshold("auroc", 60, 20, less_is_better=True), "goal", id="less is better"),
        pytest.param(61.0, Threshold("auroc", 60, 20, less_is_better=True), "MISSED", id="too slow"),
    ],
)
def test_a_metric_is_compared_with_floor_and_goal(value: float, threshold: Threshold, verdict: str) -> None:
    found = judge_metric(QualityCheck("refusal", "signals", (threshold,)), threshold, {"auroc": value})
    assert (found.verdict, below_floor([found])) == (verdict, [found] if verdict == "MISSED" else [])


@pytest.mark.parametrize(("ours", "verdict"), [(0.4, "goal"), (0.3, "MISSED")])
def test_an_undefined_share_is_judged_by_comparison_with_the_rewrite(ours: float, verdict: str) -> None:
    threshold = Threshold("share_of_the_way", 0.5, 1.0)
    metrics: dict[str, object] = {
        "share_of_the_way": None,
        "ours": {"ndcg_at_10": ours},
        "rewrite": {"ndcg_at_10": 0.35},
    }
    found = judge_metric(QualityCheck("followups", "talks", (threshold,)), threshold, metrics)
    assert (found.value, found.verdict) == (None, verdict)
    assert "the rewrite finds 0.350" in str(found)


def test_thresholds_are_unique() -> None:
    checks = list(load_checks())
    keys = [(p.suite, p.dataset, p.kind, threshold.key) for p in checks for threshold in p.thresholds]
    assert len(keys) == len(set(keys)) == 16
    assert all(
        (p.goal >= p.floor) is not p.less_is_better or p.goal == p.floor for check in checks for p in check.thresholds
    )
