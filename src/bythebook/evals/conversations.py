"""The refusal suite for conversations: is the last question refused if the documents do not answer it?"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from bythebook.answers import Outcome
from bythebook.conversations.followups import Exchange
from bythebook.errors import InputError
from bythebook.evals import EvalResult
from bythebook.evals.datasets import Corpus, EvalQuestion, read_rows
from bythebook.evals.metrics import percentiles
from bythebook.evals.refusal import effective_confidence, refusal_curve, score_separation, separation_intervals
from bythebook.evals.report import histogram
from bythebook.evals.runner import open_dataset

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bythebook.evals import EvalRequest, Metrics
    from bythebook.evals.runner import BookUnderTest, Row

KINDS = ("ANSWERABLE", "UNANSWERABLE", "PARTIAL", "UNDERSPECIFIED")


@dataclass(frozen=True, slots=True)
class ConversationTask:
    """The last question of a conversation, the history, and whether the passage pool answers it."""

    question: str
    history: tuple[Exchange, ...]
    kind: str
    """The label: ANSWERABLE, PARTIAL, UNDERSPECIFIED or UNANSWERABLE."""


async def measure(request: EvalRequest) -> EvalResult:
    """Ask each last question with the original history."""
    corpus, tasks = load_tasks(request.path)
    asked = [task for kind in KINDS for task in request.sample([task for task in tasks if task.kind == kind])]
    questions = [EvalQuestion(f"{number}", task.question, {}, {"task": task}) for number, task in enumerate(asked)]
    async with open_dataset(corpus, request.dataset, request) as subject:
        name = f"refusal in conversations, {request.limit}, {request.seed}"
        seen = await subject.run_questions(name, questions, lambda question: _ask(subject, question.given["task"]))
        cutoff = subject.snapshot.calibration.cutoff
    covered, foreign = (
        np.array([row["confidence"] for task, row in zip(asked, seen, strict=True) if task.kind == kind])
        for kind in ("ANSWERABLE", "UNANSWERABLE")
    )
    times = [row["milliseconds"] for row in seen]
    metrics = {
        **compute_metrics(asked, seen, cutoff=cutoff),
        "intervals": separation_intervals(covered, foreign, cutoff=cutoff, seed=request.seed),
        "milliseconds": percentiles(times),
    }
    plots = (refusal_curve(covered, foreign, cutoff=cutoff), histogram("Time to decide", times))
    return EvalResult("refusal", request.dataset, metrics, plots, "in conversations")


def load_tasks(folder: Path) -> tuple[Corpus, list[ConversationTask]]:
    """Load tasks.jsonl (or .gz) of a folder, and the pool of the passages of all tasks."""
    pool: dict[str, dict[str, Any]] = {}
    tasks = []
    for row in read_rows(folder, "tasks", needs=("history", "contexts", "answerability")):
        pool.update({context["document_id"]: {"text": context["text"]} for context in row["contexts"]})
        tasks.append(
            ConversationTask(row["history"][-1]["text"], _to_exchanges(row["history"][:-1]), row["answerability"])
        )
    kinds = {task.kind for task in tasks}
    if not {"ANSWERABLE", "UNANSWERABLE"} <= kinds:
        raise InputError(
            f"{folder} needs ANSWERABLE and UNANSWERABLE tasks; it has {', '.join(sorted(kinds)) or 'none'}."
        )
    return Corpus(folder.name, pool), tasks


def _to_exchanges(said: Sequence[dict[str, str]]) -> tuple[Exchange, ...]:
    """Pair each question with its answer."""
    texts = [entry["text"] for entry in said]
    return tuple(Exchange(question, answer) for question, answer in zip(texts[::2], texts[1::2], strict=False))


async def _ask(subject: BookUnderTest, task: ConversationTask) -> Row:
    response = await subject.ask(task.question, task.history)
    confidence = effective_confidence(response, subject.snapshot.calibration.cutoff)
    return {"confidence": confidence, "asked_back": response.outcome is Outcome.CLARIFY}


def compute_metrics(tasks: Sequence[ConversationTask], seen: Sequence[Row], *, cutoff: float) -> Metrics:
    """The separation of ANSWERABLE and UNANSWERABLE, and the outcomes of the other labels."""
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
    return {"questions": counts, **score_separation(*sides, cutoff=cutoff), **between}
