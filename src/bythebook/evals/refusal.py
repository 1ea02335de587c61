"""How well the book tells what it covers: questions it must answer against questions it must refuse."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from bythebook.answers import Outcome
from bythebook.errors import InputError
from bythebook.evals import Measured
from bythebook.evals.datasets import collection, has
from bythebook.evals.metrics import interval_of, percentiles
from bythebook.evals.report import spread, trade
from bythebook.evals.runner import opened

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from bythebook.answers import AgentResponse
    from bythebook.evals import Figures, Wanted
    from bythebook.evals.datasets import Collection, Corpus, Question
    from bythebook.evals.report import Plot
    from bythebook.evals.runner import Row, Subject

    Numbers = NDArray[np.float64]

_SPEAKER = "|user|:"


async def measure(wanted: Wanted) -> Measured:
    """The questions of a collection, each asked as a reader would; conversations where it has them."""
    if has(wanted.path, "tasks"):
        from bythebook.evals import conversations

        return await conversations.measure(wanted)
    found = collection(wanted.path)
    name, covered, foreign = kinds(found, wanted)
    async with opened(found.corpus, name, wanted) as subject:
        rows = [
            await subject.each(f"refusal of {kind}", questions, lambda question: _look(subject, question))
            for kind, questions in (("covered", covered), ("foreign", foreign))
        ]
        cutoff = subject.edition.calibration.cutoff
    sides = [np.array([row["confidence"] for row in side]) for side in rows]
    times = [row["milliseconds"] for side in rows for row in side]
    figures: Figures = {
        "questions": {"covered": len(covered), "foreign": len(foreign)},
        **score(*sides, cutoff=cutoff),
        "intervals": sureness(*sides, cutoff=cutoff, seed=wanted.seed),
        "milliseconds": percentiles(times),
    }
    plots = (curve(*sides, cutoff=cutoff), spread("Time to decide", times))
    kind = f"questions of {wanted.strangers.name}" if wanted.strangers else "out of book" if wanted.out_of_book else ""
    return Measured("refusal", wanted.collection, figures, plots, kind or "near misses")


def kinds(found: Collection, wanted: Wanted) -> tuple[str, list[Question], list[Question]]:
    """What the book is called, the questions it covers, and those it must refuse. Some documents may be left out."""
    name, covered, foreign = wanted.collection, found.answered, found.impossible
    if wanted.strangers:
        foreign = collection(wanted.strangers).answered
    elif wanted.out_of_book:
        name = f"{name}-half"
        covered, foreign = _halved(found.corpus, found.answered)
    if not covered or not foreign:
        missing = "is answered" if not covered else "is_impossible"
        raise InputError(
            f"no question in {wanted.path} {missing}. With --out-of-book half of the documents are left out, and what "
            "is asked about them must be refused; with --strangers another collection's questions must be."
        )
    if wanted.out_of_book or wanted.strangers:
        most = min(len(covered), len(foreign))
        return name, _drawn(covered, most, wanted), _drawn(foreign, most, wanted)
    return name, wanted.some(covered), wanted.some(foreign)


def _drawn(questions: list[Question], most: int, wanted: Wanted) -> list[Question]:
    """As many of one kind as of the other, so that precision means the same everywhere."""
    return replace(wanted, limit=min(most, wanted.limit)).some(questions)


def _halved(corpus: Corpus, asked: list[Question]) -> tuple[list[Question], list[Question]]:
    """Leave out every second title; what is asked about those must be refused."""
    titles = corpus.titles()
    kept_titles = set(sorted(set(titles.values()))[::2])
    keep = {key for key, title in titles.items() if title in kept_titles}
    corpus.only(keep)
    covered = [question for question in asked if set(question.relevant) & keep]
    return covered, [question for question in asked if not set(question.relevant) & keep]


async def _look(subject: Subject, question: Question) -> Row:
    response = await subject.ask(text_of(question))
    return {"confidence": sureness_of(response, subject.edition.calibration.cutoff)}


def text_of(question: Question) -> str:
    """The question by itself: the last one of a conversation as a person rewrote it."""
    return str(question.given.get("rewrite", question.text)).replace(_SPEAKER, "").strip()


def sureness_of(response: AgentResponse, cutoff: float) -> float:
    """How sure the book was that it covers the question. One it did not answer, however sure, was refused."""
    sure = response.metadata.confidence or 0.0
    return sure if response.outcome is Outcome.ANSWERED or sure < cutoff else 0.0


def score(covered: Numbers, foreign: Numbers, *, cutoff: float) -> dict[str, float]:
    """How well the two kinds are told apart, at any line and at the book's own."""
    figures = {name: of(covered, foreign) for name, of in _figures(cutoff).items()}
    return {**{name: round(value, 4) for name, value in figures.items()}, "cutoff": cutoff}


def sureness(covered: Numbers, foreign: Numbers, *, cutoff: float, seed: int) -> dict[str, list[float]]:
    """The interval each figure lies in."""
    return {name: interval_of(of, covered, foreign, seed=seed) for name, of in _figures(cutoff).items()}


def curve(covered: Numbers, foreign: Numbers, *, cutoff: float) -> Plot:
    return trade(
        "Kept and refused, wherever the line is drawn", across=("refused", foreign), up=("kept", covered), line=cutoff
    )


def _figures(cutoff: float) -> dict[str, Callable[[Numbers, Numbers], float]]:
    def precision(covered: Numbers, foreign: Numbers) -> float:
        rightly, wrongly = int((foreign < cutoff).sum()), int((covered < cutoff).sum())
        return rightly / max(rightly + wrongly, 1)

    def recall(_: Numbers, foreign: Numbers) -> float:
        return float((foreign < cutoff).mean())

    def f1(covered: Numbers, foreign: Numbers) -> float:
        exact, whole = precision(covered, foreign), recall(covered, foreign)
        return 2 * exact * whole / max(exact + whole, 1e-9)

    return {
        "auroc": auroc,
        "kept": lambda covered, _: float((covered >= cutoff).mean()),
        "refused": recall,
        "precision": precision,
        "recall": recall,
        "f1": f1,
    }


def auroc(higher: Numbers, lower: Numbers) -> float:
    """The chance that one of the first kind scores higher than one of the second, ties counting half."""
    ordered = np.sort(lower)
    below = np.searchsorted(ordered, higher, side="left") + np.searchsorted(ordered, higher, side="right")
    return float(below.mean() / 2 / len(lower))
