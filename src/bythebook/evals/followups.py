"""The followups suite: how well follow-up questions are rewritten, by what they retrieve."""

from collections.abc import Mapping
from statistics import fmean
from typing import Any

from bythebook.conversations.followups import Exchange
from bythebook.conversations.followups.rules import make_standalone
from bythebook.errors import InputError
from bythebook.evals import EvalRequest, EvalResult, Metrics
from bythebook.evals.datasets import EvalQuestion, load_dataset
from bythebook.evals.metrics import mean_interval, mean_intervals, percentiles
from bythebook.evals.report import bar_chart, histogram
from bythebook.evals.retrieval import Columns, averages, score_rankings
from bythebook.evals.runner import BookUnderTest, Row, open_dataset

SPEAKER = "|user|:"
METHODS = ("last_turn", "ours", "ours_in_one_search", "rewrite")


async def measure(request: EvalRequest) -> EvalResult:
    """Search with the last turn, with our rewrite and with the human rewrite."""
    dataset = load_dataset(request.path)
    questions = request.sample(
        [question for question in dataset.answered if {"history_questions", "rewrite"} <= question.given.keys()]
    )
    if not questions:
        raise InputError(f"no question in {request.path} has its history_questions and its rewrite.")
    async with open_dataset(dataset.corpus, request.dataset, request) as subject:
        seen = await subject.run_questions("followups", questions, lambda question: _search(subject, question))
        sizes: Metrics = {"documents": subject.report.pages, "chunks": subject.report.chunks}
    columns = {name: score_rankings(questions, [row[name] for row in seen]) for name in METHODS}
    means = {name: averages(own) for name, own in columns.items()}
    intervals = {name: mean_intervals(own, seed=request.seed) for name, own in columns.items()}
    times = [row["milliseconds"] / len(METHODS) for row in seen]
    metrics = {
        **sizes,
        "questions": len(questions),
        **means,
        **compute_gains(columns, seed=request.seed),
        "intervals": intervals,
        "milliseconds": percentiles(times),
    }
    shown = {name.replace("_", " "): (means[name]["ndcg_at_10"], intervals[name]["ndcg_at_10"]) for name in METHODS}
    plots = (bar_chart("nDCG@10 by what is looked for", shown), histogram("Time to find", times))
    return EvalResult("followups", request.dataset, metrics, plots)


async def _search(subject: BookUnderTest, question: EvalQuestion) -> Row:
    """What is found by the last turn, by our rewrite (as several searches and as one), and by the human rewrite."""
    last, rewrite, history = _parse_turn(question)
    ours = make_standalone(last, history)
    if ours.alternative and not await subject.covers(ours.text):
        ours = ours.alternative
    texts = {"last_turn": (last,), "ours": ours.every, "ours_in_one_search": (ours.text,), "rewrite": (rewrite,)}
    return {name: await subject.search_documents(searches) for name, searches in texts.items()}


def _parse_turn(question: EvalQuestion) -> tuple[str, str, list[Exchange]]:
    """The question, its human rewrite, and the history."""
    given: dict[str, Any] = question.given
    said = [text.strip() for text in given["history_questions"].split(SPEAKER) if text.strip()]
    last, rewrite = (text.replace(SPEAKER, "").strip() for text in (question.text, given["rewrite"]))
    return last, rewrite, [Exchange(text) for text in said[:-1]]


def compute_gains(columns: Mapping[str, Columns], *, seed: int) -> Metrics:
    """The nDCG@10 that each method gains over the last turn, with its interval, and our share of the human gain."""
    before = columns["last_turn"]["ndcg_at_10"]
    gained = {
        name: [mine - last for mine, last in zip(own["ndcg_at_10"], before, strict=True)]
        for name, own in columns.items()
        if name != "last_turn"
    }
    human = fmean(gained["rewrite"])
    gain = {name: {"mean": round(fmean(v), 4), "interval": mean_interval(v, seed=seed)} for name, v in gained.items()}
    # The share is undefined if the human rewrite does not retrieve more than the last turn.
    return {"gain": gain, "share_of_the_way": round(fmean(gained["ours"]) / human, 3) if human > 0 else None}
