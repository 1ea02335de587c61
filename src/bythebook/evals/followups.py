"""How well follow-up questions are understood: by what they find, and by the words a person would have added."""

from __future__ import annotations

from collections import defaultdict
from statistics import fmean
from typing import TYPE_CHECKING, Any

from bythebook.conversations.followups import Exchange
from bythebook.conversations.followups.rules import standalone
from bythebook.errors import InputError
from bythebook.evals import Measured
from bythebook.evals.datasets import collection, has, rows
from bythebook.evals.metrics import interval, intervals, percentiles
from bythebook.evals.report import bars, spread
from bythebook.evals.retrieval import averages, scores
from bythebook.evals.runner import opened
from bythebook.index.terms import Words

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from bythebook.evals import Figures, Wanted
    from bythebook.evals.datasets import Question
    from bythebook.evals.retrieval import Columns
    from bythebook.evals.runner import Row, Subject

    Turn = tuple[str, str, list[Exchange]]
    """A question, how a person made it stand alone, and what was said before."""

_SPEAKER = "|user|:"
METHODS = ("last_turn", "ours", "ours_in_one_search", "rewrite")


async def measure(wanted: Wanted) -> Measured:
    """By what the questions find where there are documents, else by their words."""
    if not has(wanted.path, "corpus"):
        return _by_words(wanted)
    found = collection(wanted.path)
    questions = wanted.some(
        [question for question in found.answered if {"history_questions", "rewrite"} <= question.given.keys()]
    )
    if not questions:
        raise InputError(f"no question in {wanted.path} has its history_questions and its rewrite.")
    async with opened(found.corpus, wanted.collection, wanted) as subject:
        seen = await subject.each("followups", questions, lambda question: _look(subject, question))
        sizes: Figures = {"documents": subject.report.pages, "chunks": subject.report.chunks}
    columns = {name: scores(questions, [row[name] for row in seen]) for name in METHODS}
    means = {name: averages(own) for name, own in columns.items()}
    sure = {name: intervals(own, seed=wanted.seed) for name, own in columns.items()}
    times = [row["milliseconds"] / len(METHODS) for row in seen]
    figures = {
        **sizes,
        "questions": len(questions),
        **means,
        **gains(columns, seed=wanted.seed),
        "intervals": sure,
        "milliseconds": percentiles(times),
    }
    shown = {name.replace("_", " "): (means[name]["ndcg_at_10"], sure[name]["ndcg_at_10"]) for name in METHODS}
    plots = (bars("nDCG@10 by what is looked for", shown), spread("Time to find", times))
    return Measured("followups", wanted.collection, figures, plots)


async def _look(subject: Subject, question: Question) -> Row:
    """What the last turn finds alone, made whole by us in several searches or one, and rewritten by a person."""
    last, rewrite, history = _turn_of(question)
    ours = standalone(last, history)
    texts = {"last_turn": (last,), "ours": ours.every, "ours_in_one_search": (ours.text,), "rewrite": (rewrite,)}
    return {name: await subject.documents(searches) for name, searches in texts.items()}


def _turn_of(question: Question) -> Turn:
    given: dict[str, Any] = question.given
    said = [text.strip() for text in given["history_questions"].split(_SPEAKER) if text.strip()]
    last, rewrite = (text.replace(_SPEAKER, "").strip() for text in (question.text, given["rewrite"]))
    return last, rewrite, [Exchange(text) for text in said[:-1]]


def gains(columns: Mapping[str, Columns], *, seed: int) -> Figures:
    """How much nDCG@10 each gains over the last turn, with its interval, as a part of what the rewrite gains."""
    before = columns["last_turn"]["ndcg_at_10"]
    gained = {
        name: [mine - last for mine, last in zip(own["ndcg_at_10"], before, strict=True)]
        for name, own in columns.items()
        if name != "last_turn"
    }
    whole = fmean(gained["rewrite"])
    told = {name: {"mean": round(fmean(v), 4), "interval": interval(v, seed=seed)} for name, v in gained.items()}
    # Where a person's rewrite finds no more than the last turn there is no way to have gone a share of.
    return {"gain": told, "share_of_the_way": round(fmean(gained["ours"]) / whole, 3) if whole > 0 else None}


def _by_words(wanted: Wanted) -> Measured:
    turns_asked = wanted.some([turn for turn in turns(wanted.path) if turn[2]])
    if not turns_asked:
        raise InputError(f"no question in {wanted.path} has anything before it.")
    figures, columns = compare(turns_asked)
    sure = intervals(columns, seed=wanted.seed)
    figures["intervals"] = {name: {"f1": ends} for name, ends in sure.items()}
    shown = {name.replace("_", " "): (fmean(values), sure[name]) for name, values in columns.items()}
    return Measured("followups", wanted.collection, figures, (bars("Terms shared with a person's rewrite, F1", shown),))


def compare(asked: Iterable[Turn]) -> tuple[Figures, dict[str, list[float]]]:
    """Our text beside a person's rewrite, by the terms the index would look up; also each F1 by itself."""
    words = Words(100.0)
    overlaps: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    self_contained: list[bool] = []
    dependent: list[bool] = []
    for question, rewrite, history in asked:
        text, wanted = standalone(question, history).text, words.terms(rewrite)
        overlaps["last_turn"].append(overlap(words.terms(question), wanted))
        overlaps["ours"].append(overlap(words.terms(text), wanted))
        complete = wanted <= words.terms(question)
        (self_contained if complete else dependent).append((text == question) is complete)
    figures = {name: dict(zip(("precision", "recall", "f1"), _means(o), strict=True)) for name, o in overlaps.items()}
    told: Figures = {
        "questions": len(self_contained) + len(dependent),
        **figures,
        "self_contained": {"questions": len(self_contained), "left_alone": _share(self_contained)},
        "dependent": {"questions": len(dependent), "added_to": _share(dependent)},
    }
    return told, {name: [f1 for *_, f1 in values] for name, values in overlaps.items()}


def turns(folder: Path) -> Iterable[Turn]:
    """The conversations of a folder without a corpus: examples.jsonl as CANARD has them, or turns.jsonl as CAsT has."""
    if has(folder, "examples"):
        for row in rows(folder, "examples", needs=("history", "question", "rewrite")):
            title, section, *said = row["history"]
            # The article and its section are given to whoever asks, as a first question would be.
            yield row["question"], row["rewrite"], [Exchange(f"{title}, {section}"), *_exchanges(said, step=2)]
        return
    for row in rows(folder, "turns", needs=("_id", "history", "question", "rewrite")):
        number = int(row["_id"].rsplit("_", 1)[1])
        # Only some years have the answers between the questions.
        step = 2 if len(row["history"]) > number - 1 else 1
        yield row["question"], row["rewrite"], _exchanges(row["history"], step=step)


def _exchanges(said: Sequence[str], *, step: int) -> list[Exchange]:
    answers = [*said[1::step], ""] if step == 2 else [""] * len(said)
    return [Exchange(question, answer) for question, answer in zip(said[::step], answers, strict=False)]


def _share(right: Sequence[bool]) -> float | None:
    return round(fmean(right), 4) if right else None


def overlap(found: frozenset[int], wanted: frozenset[int]) -> tuple[float, float, float]:
    """Precision, recall and their harmonic mean."""
    both = len(found & wanted)
    precision = both / len(found) if found else float(not wanted)
    recall = both / len(wanted) if wanted else 1.0
    return precision, recall, 2 * precision * recall / (precision + recall) if both else float(not found and not wanted)


def _means(values: Sequence[tuple[float, float, float]]) -> list[float]:
    return [round(fmean(column), 4) for column in zip(*values, strict=True)]
