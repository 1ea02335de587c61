"""How well the last question of a conversation is refused when the book does not answer it."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from bythebook.answers import Outcome
from bythebook.conversations.followups import Exchange
from bythebook.errors import InputError
from bythebook.evals import Measured
from bythebook.evals.datasets import Corpus, Question, rows
from bythebook.evals.metrics import percentiles
from bythebook.evals.refusal import curve, score, sureness, sureness_of
from bythebook.evals.report import spread
from bythebook.evals.runner import opened

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bythebook.evals import Figures, Wanted
    from bythebook.evals.runner import Row, Subject

KINDS = ("ANSWERABLE", "UNANSWERABLE", "PARTIAL", "UNDERSPECIFIED")


@dataclass(frozen=True, slots=True)
class Task:
    """The last question of a conversation, what was said before it, and whether the pool answers it."""

    question: str
    history: tuple[Exchange, ...]
    kind: str
    """ANSWERABLE, PARTIAL, UNDERSPECIFIED or UNANSWERABLE, as people found."""


async def measure(wanted: Wanted) -> Measured:
    """Each last question, asked as a reader of the conversation would; the history is given as it was."""
    corpus, tasks = read(wanted.path)
    asked = [task for kind in KINDS for task in wanted.some([task for task in tasks if task.kind == kind])]
    questions = [Question(f"{number}", task.question, {}, {"task": task}) for number, task in enumerate(asked)]
    async with opened(corpus, wanted.collection, wanted) as subject:
        name = f"refusal in conversations, {wanted.limit}, {wanted.seed}"
        seen = await subject.each(name, questions, lambda question: _look(subject, question.given["task"]))
        cutoff = subject.edition.calibration.cutoff
    covered, foreign = (
        np.array([row["confidence"] for task, row in zip(asked, seen, strict=True) if task.kind == kind])
        for kind in ("ANSWERABLE", "UNANSWERABLE")
    )
    times = [row["milliseconds"] for row in seen]
    told = {
        **figures(asked, seen, cutoff=cutoff),
        "intervals": sureness(covered, foreign, cutoff=cutoff, seed=wanted.seed),
        "milliseconds": percentiles(times),
    }
    plots = (curve(covered, foreign, cutoff=cutoff), spread("Time to decide", times))
    return Measured("refusal", wanted.collection, told, plots, "in conversations")


def read(folder: Path) -> tuple[Corpus, list[Task]]:
    """The tasks of a folder with tasks.jsonl (or .gz), and the pool of all passages that belong to any of them."""
    pool: dict[str, dict[str, Any]] = {}
    tasks = []
    for row in rows(folder, "tasks", needs=("history", "contexts", "answerability")):
        pool.update({context["document_id"]: {"text": context["text"]} for context in row["contexts"]})
        tasks.append(Task(row["history"][-1]["text"], _exchanges(row["history"][:-1]), row["answerability"]))
    kinds = {task.kind for task in tasks}
    if not {"ANSWERABLE", "UNANSWERABLE"} <= kinds:
        raise InputError(
            f"{folder} needs ANSWERABLE and UNANSWERABLE tasks; it has {', '.join(sorted(kinds)) or 'none'}."
        )
    return Corpus(folder.name, pool), tasks


def _exchanges(said: Sequence[dict[str, str]]) -> tuple[Exchange, ...]:
    """Each question of the reader with what was answered to it."""
    texts = [entry["text"] for entry in said]
    return tuple(Exchange(question, answer) for question, answer in zip(texts[::2], texts[1::2], strict=False))


async def _look(subject: Subject, task: Task) -> Row:
    response = await subject.ask(task.question, task.history)
    confidence = sureness_of(response, subject.edition.calibration.cutoff)
    return {"confidence": confidence, "asked_back": response.outcome is Outcome.CLARIFY}


def figures(tasks: Sequence[Task], seen: Sequence[Row], *, cutoff: float) -> Figures:
    """What is answerable against what is not; then how the kinds between them fare."""
    kinds = {kind: [row for task, row in zip(tasks, seen, strict=True) if task.kind == kind] for kind in KINDS}
    sides = [np.array([row["confidence"] for row in kinds[kind]]) for kind in ("ANSWERABLE", "UNANSWERABLE")]
    between = {
        kind.lower(): {
            "questions": len(found),
            "asked_back": round(fmean(row["asked_back"] for row in found), 4) if found else None,
            "refused": round(fmean(row["confidence"] < cutoff for row in found), 4) if found else None,
        }
        for kind, found in kinds.items()
        if kind not in ("ANSWERABLE", "UNANSWERABLE")
    }
    counts = {"covered": len(sides[0]), "foreign": len(sides[1])}
    return {"questions": counts, **score(*sides, cutoff=cutoff), **between}
