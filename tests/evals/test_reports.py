"""Reports: what a person sees of a measurement, and what a page with plots may not do."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest

from bythebook.evals import Measured
from bythebook.evals.report import Plot, as_html, as_text, bars, drawn, spread, trade
from bythebook.evals.thresholds import PARTS, Part, Promise, held, missed

CURVE = trade("Kept & refused", across=("refused", np.array([0.1, 0.6])), up=("kept", np.array([0.4, 0.9])), line=0.5)
PLOTS: tuple[Plot, ...] = (
    bars("By <method>", {"ours": (0.75, (0.7, 0.8)), "bm25": (1.2, (-1.0, 2.0))}),
    CURVE,
    spread("Time", [1.0, 2.0, 3.0, 400.0]),
    spread("No time", [0.0]),
)
MEASURED = Measured(
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
    """What a page is made of."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes.extend(attrs)


def test_a_figure_stands_on_a_line_with_its_interval() -> None:
    assert [re.sub(r"\s+", " ", line) for line in as_text(MEASURED).splitlines()] == [
        "retrieval <b>signals",
        " questions 2",
        " ndcg_at_10 0.5 [0.400, 0.600]",
        " bm25.ndcg_at_10 0.25 [0.100, 0.300]",
        " share -",
    ]


def test_the_page_shows_every_plot_and_fetches_nothing() -> None:
    page = Page(as_html([MEASURED], title="Quality"))
    assert page.tags.count("svg") == len(PLOTS)
    assert not {"script", "link", "img", "iframe", "b"} & set(page.tags)
    assert not [name for name, _ in page.attributes if name in ("src", "href") or name.startswith("on")]


def test_the_curve_goes_through_the_point_that_was_chosen() -> None:
    assert CURVE.chosen == (0.5, 0.5)
    assert CURVE.note == "drawn at 0.5: kept 50.0%, refused 50.0%"
    assert (CURVE.points[0], CURVE.points[-1]) == ((0.0, 1.0), (1.0, 0.0))


@pytest.mark.parametrize("plot", PLOTS, ids=lambda plot: plot.title)
def test_nothing_is_drawn_outside_of_the_plot(plot: Plot) -> None:
    places = re.findall(r'(?:x|x1|x2|cx|width)="(-?[\d.]+)"', drawn(plot))
    assert all(0 <= float(place) <= 520 for place in places)


@pytest.mark.parametrize(
    ("value", "promise", "verdict"),
    [
        pytest.param(0.75, Promise("auroc", 0.7, 0.8), "floor", id="above its floor"),
        pytest.param(0.8, Promise("auroc", 0.7, 0.8), "goal", id="at its goal"),
        pytest.param(0.69, Promise("auroc", 0.7, 0.8), "MISSED", id="below its floor"),
        pytest.param(19.0, Promise("auroc", 60, 20, less_is_better=True), "goal", id="less is better"),
        pytest.param(61.0, Promise("auroc", 60, 20, less_is_better=True), "MISSED", id="too slow"),
    ],
)
def test_a_figure_is_held_against_its_floor_and_its_goal(value: float, promise: Promise, verdict: str) -> None:
    found = held(Part("refusal", "signals", (promise,)), promise, {"auroc": value})
    assert (found.verdict, missed([found])) == (verdict, [found] if verdict == "MISSED" else [])


@pytest.mark.parametrize(("ours", "verdict"), [(0.4, "goal"), (0.3, "MISSED")])
def test_a_way_that_leads_nowhere_is_gone_when_ours_finds_more_than_the_rewrite(ours: float, verdict: str) -> None:
    promise = Promise("share_of_the_way", 0.5, 1.0)
    figures: dict[str, object] = {
        "share_of_the_way": None,
        "ours": {"ndcg_at_10": ours},
        "rewrite": {"ndcg_at_10": 0.35},
    }
    found = held(Part("followups", "talks", (promise,)), promise, figures)
    assert (found.value, found.verdict) == (None, verdict)
    assert "the rewrite finds 0.350" in str(found)


def test_no_promise_is_made_twice() -> None:
    promised = [(p.measure, p.collection, p.kind, promise.key) for p in PARTS for promise in p.promises]
    assert len(promised) == len(set(promised)) == 16
    assert all(
        (p.goal >= p.floor) is not p.less_is_better or p.goal == p.floor for part in PARTS for p in part.promises
    )
