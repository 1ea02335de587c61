"""How well the last question of a conversation is refused when the book does not answer it."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from bythebook.conversations.followups import Exchange
from bythebook.conversations.followups.rule import standalone
from bythebook.errors import InputError
from bythebook.evals.corpus import Corpus, rows
from bythebook.evals.refusal import Trial, auroc, score
from bythebook.passages import EVERYWHERE
from bythebook.passages.evidence import Features, confidence, weigh

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from bythebook.ingest import Progress
    from bythebook.passages.retriever import Retriever
    from bythebook.passages.shelf import Edition
    from bythebook.vectors import Embedder

    Numbers = NDArray[np.float64]

_PASSAGES = 5
_RESAMPLES = 1000
_NOTHING = Features(0.0, 0.0, 0.0, 0.0)
"""The evidence for a question that was asked back: nothing was looked for."""


@dataclass(frozen=True, slots=True)
class Task:
    """The last question of a conversation, what was said before it, and whether the pool answers it."""

    question: str
    history: tuple[Exchange, ...]
    kind: str
    """ANSWERABLE, PARTIAL, UNDERSPECIFIED or UNANSWERABLE, as people found."""


def read(folder: Path) -> tuple[Corpus, list[Task]]:
    """The tasks of a folder with tasks.jsonl (or .gz), and the pool of all passages that belong to any of them."""
    pool: dict[str, dict[str, Any]] = {}
    tasks = []
    for row in rows(folder, "tasks"):
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


async def look(
    edition: Edition, embedder: Embedder, retriever: Retriever, tasks: Sequence[Task], *, progress: Progress
) -> list[Features]:
    """The evidence for each last question, as a reader of the conversation would get it."""
    seen = []
    for done, task in enumerate(tasks, start=1):
        understood = standalone(task.question, task.history)
        progress("asking", done, len(tasks))
        if (task.history and understood.unclear) or not edition.words.terms(understood.text):
            seen.append(_NOTHING)
            continue
        query, also = understood.text, tuple(text for text in understood.searches if text != understood.text)
        found = await retriever.retrieve(
            edition, query, top_k=_PASSAGES, filters=EVERYWHERE, also=also if task.history else ()
        )
        seen.append((await weigh(edition, embedder, found)).features)
    return seen


def figures(tasks: Sequence[Task], seen: Sequence[Features], *, cutoff: float, seed: int) -> dict[str, object]:
    """What is answerable against what is not, with 95 % intervals; then how the kinds between them fare."""
    kinds = {kind: tuple(f for task, f in zip(tasks, seen, strict=True) if task.kind == kind) for kind in KINDS}
    trial = Trial(kinds["ANSWERABLE"], kinds["UNANSWERABLE"])
    covered, foreign = (np.array([confidence(f) for f in side]) for side in (trial.covered, trial.foreign))
    measures: dict[str, Callable[[Numbers, Numbers], float]] = {
        "auroc": auroc,
        "kept": lambda kept, _: float((kept >= cutoff).mean()),
        "refused": lambda _, refused: float((refused < cutoff).mean()),
    }
    between = {
        kind.lower(): {
            "questions": len(found),
            "asked_back": round(fmean(f == _NOTHING for f in found), 4) if found else None,
            "refused": round(fmean(confidence(f) < cutoff for f in found), 4) if found else None,
        }
        for kind, found in kinds.items()
        if kind not in ("ANSWERABLE", "UNANSWERABLE")
    }
    return {
        "answerable": len(covered),
        "unanswerable": len(foreign),
        **score(trial, cutoff=cutoff),
        "intervals": {name: interval(of, covered, foreign, seed=seed) for name, of in measures.items()},
        **between,
    }


KINDS = ("ANSWERABLE", "UNANSWERABLE", "PARTIAL", "UNDERSPECIFIED")


def interval(of: Callable[[Numbers, Numbers], float], first: Numbers, second: Numbers, *, seed: int) -> list[float]:
    """Between which two values a figure lies in 95 of 100 samples drawn, with replacement, from these."""
    chance = np.random.default_rng(seed)
    drawn = [of(chance.choice(first, len(first)), chance.choice(second, len(second))) for _ in range(_RESAMPLES)]
    return [round(float(value), 4) for value in np.percentile(drawn, [2.5, 97.5])]
