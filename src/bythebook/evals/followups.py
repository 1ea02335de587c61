"""The followups suite: how well follow-up questions are rewritten, by what they retrieve or by their terms."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from bythebook.conversations.followups import Exchange
from bythebook.conversations.followups.rules import make_standalone
from bythebook.errors import InputError
from bythebook.evals import EvalRequest, EvalResult, Metrics
from bythebook.evals.datasets import EvalQuestion, has_file, load_dataset, read_rows
from bythebook.evals.metrics import mean_interval, mean_intervals, percentiles
from bythebook.evals.report import bar_chart, histogram
from bythebook.evals.retrieval import Columns, averages, score_rankings
from bythebook.evals.runner import BookUnderTest, Row, open_dataset
from bythebook.index.terms import Bm25Terms

Turn = tuple[str, str, list[Exchange]]
"""A question, its human rewrite, and the history."""


SPEAKER = "|user|:"
METHODS = ("last_turn", "ours", "ours_in_one_search", "rewrite")


async def measure(request: EvalRequest) -> EvalResult:
    """Measure by retrieval if the dataset has documents, else by terms."""
    if not has_file(request.path, "corpus"):
        return _measure_terms(request)
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


def _parse_turn(question: EvalQuestion) -> Turn:
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


def _measure_terms(request: EvalRequest) -> EvalResult:
    turns_asked = request.sample([turn for turn in read_turns(request.path) if turn[2]])
    if not turns_asked:
        raise InputError(f"no question in {request.path} has a history.")
    metrics, columns = compare_terms(turns_asked)
    intervals = mean_intervals(columns, seed=request.seed)
    metrics["intervals"] = {name: {"f1": ends} for name, ends in intervals.items()}
    shown = {name.replace("_", " "): (fmean(values), intervals[name]) for name, values in columns.items()}
    return EvalResult(
        "followups", request.dataset, metrics, (bar_chart("Terms shared with a person's rewrite, F1", shown),)
    )


def compare_terms(asked: Iterable[Turn]) -> tuple[Metrics, dict[str, list[float]]]:
    """Compare our text with the human rewrite by their index terms. Also return each F1."""
    words = Bm25Terms(100.0)
    overlaps: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    self_contained: list[bool] = []
    dependent: list[bool] = []
    for question, rewrite, history in asked:
        text, expected = make_standalone(question, history).text, words.terms(rewrite)
        overlaps["last_turn"].append(term_overlap(words.terms(question), expected))
        overlaps["ours"].append(term_overlap(words.terms(text), expected))
        complete = expected <= words.terms(question)
        (self_contained if complete else dependent).append((text == question) is complete)
    metrics = {
        name: dict(zip(("precision", "recall", "f1"), _column_means(o), strict=True)) for name, o in overlaps.items()
    }
    result: Metrics = {
        "questions": len(self_contained) + len(dependent),
        **metrics,
        "self_contained": {"questions": len(self_contained), "left_alone": _fraction(self_contained)},
        "dependent": {"questions": len(dependent), "added_to": _fraction(dependent)},
    }
    return result, {name: [f1 for *_, f1 in values] for name, values in overlaps.items()}


def read_turns(folder: Path) -> Iterable[Turn]:
    """Read conversations without a corpus: examples.jsonl in the layout of CANARD, or turns.jsonl in that of CAsT."""
    if has_file(folder, "examples"):
        for row in read_rows(folder, "examples", needs=("history", "question", "rewrite")):
            title, section, *said = row["history"]
            # The asker was shown the article and its section, so they are treated as a first question.
            yield row["question"], row["rewrite"], [Exchange(f"{title}, {section}"), *_to_exchanges(said, step=2)]
        return
    for row in read_rows(folder, "turns", needs=("_id", "history", "question", "rewrite")):
        number = int(row["_id"].rsplit("_", 1)[1])
        # Only some years of CAsT contain the answers between the questions.
        step = 2 if len(row["history"]) > number - 1 else 1
        yield row["question"], row["rewrite"], _to_exchanges(row["history"], step=step)


def _to_exchanges(said: Sequence[str], *, step: int) -> list[Exchange]:
    answers = [*said[1::step], ""] if step == 2 else [""] * len(said)
    return [Exchange(question, answer) for question, answer in zip(said[::step], answers, strict=False)]


def _fraction(right: Sequence[bool]) -> float | None:
    return round(fmean(right), 4) if right else None


def term_overlap(found: frozenset[int], expected: frozenset[int]) -> tuple[float, float, float]:
    """Precision, recall and their harmonic mean."""
    both = len(found & expected)
    precision = both / len(found) if found else float(not expected)
    recall = both / len(expected) if expected else 1.0
    f1 = 2 * precision * recall / (precision + recall) if both else float(not found and not expected)
    return precision, recall, f1


def _column_means(values: Sequence[tuple[float, float, float]]) -> list[float]:
    return [round(fmean(column), 4) for column in zip(*values, strict=True)]
