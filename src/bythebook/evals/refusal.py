"""The refusal suite: how well covered questions are separated from questions that must be refused."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from bythebook.answers import AgentResponse, Outcome
from bythebook.conversations.followups import Exchange
from bythebook.errors import InputError
from bythebook.evals import EvalRequest, EvalResult, Metrics
from bythebook.evals.datasets import Corpus, Dataset, EvalQuestion, has_file, load_dataset, read_rows
from bythebook.evals.followups import SPEAKER
from bythebook.evals.metrics import Numbers, percentiles, two_sample_interval
from bythebook.evals.report import histogram, tradeoff_curve
from bythebook.evals.runner import BookUnderTest, Row, open_dataset


async def measure(request: EvalRequest) -> EvalResult:
    """Ask the questions of a dataset as a reader would, or its conversations if it has any."""
    if has_file(request.path, "tasks"):
        return await measure_conversations(request)
    dataset = load_dataset(request.path)
    name, covered, foreign = split_questions(dataset, request)
    async with open_dataset(dataset.corpus, name, request) as subject:
        rows = [
            await subject.run_questions(f"refusal of {kind}", questions, lambda question: _ask(subject, question))
            for kind, questions in (("covered", covered), ("foreign", foreign))
        ]
        cutoff = subject.snapshot.calibration.cutoff
    sides = [np.array([row["confidence"] for row in side]) for side in rows]
    times = [row["milliseconds"] for side in rows for row in side]
    metrics: Metrics = {
        "questions": {"covered": len(covered), "foreign": len(foreign)},
        **score_separation(*sides, cutoff=cutoff),
    }
    kind = f"questions of {request.foreign.name}" if request.foreign else "out of book" if request.out_of_book else ""
    return _make_result(request, metrics, sides, times, cutoff=cutoff, kind=kind or "near misses")


def split_questions(dataset: Dataset, request: EvalRequest) -> tuple[str, list[EvalQuestion], list[EvalQuestion]]:
    """The name of the book, the questions it covers, and those it must refuse. Documents may be left out."""
    name, covered, foreign = request.dataset, dataset.answered, dataset.impossible
    if request.foreign:
        foreign = load_dataset(request.foreign).answered
    elif request.out_of_book:
        name = f"{name}-half"
        covered, foreign = _leave_out_half(dataset.corpus, dataset.answered)
    if not covered or not foreign:
        missing = "is answered" if not covered else "is_impossible"
        raise InputError(
            f"no question in {request.path} {missing}. With --out-of-book half of the documents are left out, and what "
            "is asked about them must be refused; with --foreign the questions of another dataset must be."
        )
    if request.out_of_book or request.foreign:
        most = min(len(covered), len(foreign))
        return name, _sample(covered, most, request), _sample(foreign, most, request)
    return name, request.sample(covered), request.sample(foreign)


def _sample(questions: list[EvalQuestion], most: int, request: EvalRequest) -> list[EvalQuestion]:
    """Sample the same number of both kinds, so that precision is comparable between datasets."""
    return replace(request, limit=min(most, request.limit)).sample(questions)


def _leave_out_half(corpus: Corpus, asked: list[EvalQuestion]) -> tuple[list[EvalQuestion], list[EvalQuestion]]:
    """Leave out every second title. Questions about those must be refused."""
    titles = corpus.titles()
    kept_titles = set(sorted(set(titles.values()))[::2])
    keep = {key for key, title in titles.items() if title in kept_titles}
    corpus.only(keep)
    covered = [question for question in asked if set(question.relevant) & keep]
    return covered, [question for question in asked if not set(question.relevant) & keep]


async def _ask(subject: BookUnderTest, question: EvalQuestion) -> Row:
    response = await subject.ask(standalone_text(question))
    return {"confidence": effective_confidence(response, subject.snapshot.calibration.cutoff)}


def standalone_text(question: EvalQuestion) -> str:
    """The text of the question. For a conversation, the human rewrite of its last question."""
    return str(question.given.get("rewrite", question.text)).replace(SPEAKER, "").strip()


def effective_confidence(response: AgentResponse, cutoff: float) -> float:
    """The confidence of the book. A refused question counts as 0, even if its confidence is above the cutoff."""
    confidence = response.metadata.coverage or 0.0
    return confidence if response.outcome is Outcome.ANSWERED or confidence < cutoff else 0.0


def score_separation(covered: Numbers, foreign: Numbers, *, cutoff: float) -> dict[str, float]:
    """The separation of the two kinds: over all cutoffs, and at the cutoff of the book."""
    metrics = {name: of(covered, foreign) for name, of in _metric_functions(cutoff).items()}
    return {**{name: round(value, 4) for name, value in metrics.items()}, "cutoff": cutoff}


def _make_result(
    request: EvalRequest,
    metrics: Metrics,
    sides: Sequence[Numbers],
    times: Sequence[float],
    *,
    cutoff: float,
    kind: str,
) -> EvalResult:
    """The result with the intervals and plots of the confidences of covered and of foreign questions."""
    covered, foreign = sides
    functions = _metric_functions(cutoff).items()
    intervals = {name: two_sample_interval(of, covered, foreign, seed=request.seed) for name, of in functions}
    curve = tradeoff_curve(
        "Kept and refused, by cutoff", across=("refused", foreign), up=("kept", covered), cutoff=cutoff
    )
    metrics = {**metrics, "intervals": intervals, "milliseconds": percentiles(times)}
    return EvalResult("refusal", request.dataset, metrics, (curve, histogram("Time to decide", times)), kind)


def _metric_functions(cutoff: float) -> dict[str, Callable[[Numbers, Numbers], float]]:
    def precision(covered: Numbers, foreign: Numbers) -> float:
        correct, incorrect = int((foreign < cutoff).sum()), int((covered < cutoff).sum())
        return correct / max(correct + incorrect, 1)

    def recall(_: Numbers, foreign: Numbers) -> float:
        return float((foreign < cutoff).mean())

    def f1(covered: Numbers, foreign: Numbers) -> float:
        p, r = precision(covered, foreign), recall(covered, foreign)
        return 2 * p * r / max(p + r, 1e-9)

    return {
        "auroc": auroc,
        "kept": lambda covered, _: float((covered >= cutoff).mean()),
        "refused": recall,
        "precision": precision,
        "recall": recall,
        "f1": f1,
    }


def auroc(higher: Numbers, lower: Numbers) -> float:
    """The probability that a value of the first kind is higher than one of the second. Ties count half."""
    ordered = np.sort(lower)
    below = np.searchsorted(ordered, higher, side="left") + np.searchsorted(ordered, higher, side="right")
    return float(below.mean() / 2 / len(lower))


KINDS = ("ANSWERABLE", "UNANSWERABLE", "PARTIAL", "UNDERSPECIFIED")


@dataclass(frozen=True, slots=True)
class ConversationTask:
    """The last question of a conversation, the history, and whether the passage pool answers it."""

    question: str
    history: tuple[Exchange, ...]
    kind: str
    """The label: ANSWERABLE, PARTIAL, UNDERSPECIFIED or UNANSWERABLE."""


async def measure_conversations(request: EvalRequest) -> EvalResult:
    """Ask the last question of each conversation with the original history: is it refused if nothing answers it?"""
    corpus, tasks = load_tasks(request.path)
    asked = [task for kind in KINDS for task in request.sample([task for task in tasks if task.kind == kind])]
    questions = [EvalQuestion(f"{number}", task.question, {}, {"task": task}) for number, task in enumerate(asked)]
    async with open_dataset(corpus, request.dataset, request) as subject:
        name = f"refusal in conversations, {request.limit}, {request.seed}"
        seen = await subject.run_questions(name, questions, lambda question: _ask_task(subject, question.given["task"]))
        cutoff = subject.snapshot.calibration.cutoff
    metrics, times = compute_metrics(asked, seen, cutoff=cutoff), [row["milliseconds"] for row in seen]
    return _make_result(request, metrics, _split_sides(asked, seen), times, cutoff=cutoff, kind="in conversations")


def _split_sides(tasks: Sequence[ConversationTask], seen: Sequence[Row]) -> list[Numbers]:
    """The confidences of the ANSWERABLE and of the UNANSWERABLE questions."""
    rows = list(zip(tasks, seen, strict=True))
    return [np.array([row["confidence"] for task, row in rows if task.kind == kind]) for kind in KINDS[:2]]


def load_tasks(folder: Path) -> tuple[Corpus, list[ConversationTask]]:
    """Load tasks.jsonl (or .gz) of a folder, and the pool of the passages of all tasks."""
    pool: dict[str, dict[str, Any]] = {}
    tasks = []
    for row in read_rows(folder, "tasks", needs=("history", "contexts", "answerability")):
        pool.update({context["document_id"]: {"text": context["text"]} for context in row["contexts"]})
        *before, last = row["history"]
        tasks.append(ConversationTask(last["text"], _to_exchanges(before), row["answerability"]))
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


async def _ask_task(subject: BookUnderTest, task: ConversationTask) -> Row:
    response = await subject.ask(task.question, task.history)
    confidence = effective_confidence(response, subject.snapshot.calibration.cutoff)
    return {"confidence": confidence, "asked_back": response.outcome is Outcome.CLARIFY}


def compute_metrics(tasks: Sequence[ConversationTask], seen: Sequence[Row], *, cutoff: float) -> Metrics:
    """The separation of ANSWERABLE and UNANSWERABLE, and the outcomes of the other labels."""
    kinds = {kind: [row for task, row in zip(tasks, seen, strict=True) if task.kind == kind] for kind in KINDS}
    sides = _split_sides(tasks, seen)
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
