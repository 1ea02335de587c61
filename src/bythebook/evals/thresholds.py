"""What this project promises of its answers: each figure with the floor it must hold and the goal it is to reach."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from bythebook.evals import Figures, Measured, Wanted

    Run = Callable[[str, Wanted], Measured]

Verdict = Literal["goal", "floor", "MISSED", "not measured"]
"""Which of its two marks a figure reaches."""

WHERE_FROM = "docs/quality.md says where each comes from. Say where you keep them: make quality COLLECTIONS=FOLDER."


OUT_OF_BOOK = "out of book"


@dataclass(frozen=True, slots=True)
class Promise:
    """A figure by its key, what it must be at least (or at most, where less is better), and what it should be."""

    key: str
    floor: float
    goal: float
    less_is_better: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """A measure on one collection, and the promises it is held to."""

    measure: str
    collection: str
    promises: tuple[Promise, ...]
    most: int = 1000
    """At most so many questions of each kind: more would take long and change little."""
    kind: str = ""


PARTS = (
    Part("retrieval", "scifact", (Promise("ndcg_at_10", 0.73, 0.75),)),
    Part("retrieval", "ray_docs_qa", (Promise("ndcg_at_10", 0.575, 0.65), Promise("recall_at_10", 0.82, 0.90))),
    Part("retrieval", "squad2", (Promise("ndcg_at_10", 0.90, 0.95),)),
    Part("followups", "mtrag_cloud_pool", (Promise("share_of_the_way", 0.5, 1.0),)),
    Part(
        "refusal",
        "squad2",
        (Promise("auroc", 0.98, 0.995), Promise("kept", 0.95, 0.98), Promise("refused", 0.92, 0.98)),
        kind=OUT_OF_BOOK,
    ),
    Part("refusal", "mtrag_un", (Promise("auroc", 0.82, 0.92),), kind="in conversations"),
    Part("refusal", "squad2", (Promise("auroc", 0.65, 0.85),), kind="near misses"),
    Part(
        "answers",
        "squad2",
        (
            Promise("hit_at_1", 0.74, 0.85),
            Promise("hit_at_3", 0.89, 0.95),
            Promise("quotes_exact", 1.0, 1.0),
            Promise("checking.milliseconds", 60.0, 20.0, less_is_better=True),
        ),
    ),
    Part("proof", "wice/pairs.jsonl.gz", (Promise("auroc", 0.74, 0.85),), most=100_000),
    Part("proof", "fool_me_twice/pairs.jsonl.gz", (Promise("auroc", 0.58, 0.80),), most=100_000),
)


@dataclass(frozen=True, slots=True)
class Held:
    """A figure beside its floor and its goal."""

    name: str
    value: float | None
    """None for a share of a way that is not there."""
    floor: float
    goal: float
    verdict: Verdict
    note: str = ""

    def __str__(self) -> str:
        value = "-" if self.value is None else f"{self.value:.4g}"
        note = f"  ({self.note})" if self.note else ""
        return f"{self.verdict:<13} {self.name:<48} {value:>8}   floor {self.floor:<6g} goal {self.goal:g}{note}"


@dataclass(frozen=True, slots=True)
class Found:
    """What came out of a part; nothing was measured where its collection is not there."""

    measured: Measured | None
    held: tuple[Held, ...]


def everything(wanted: Wanted, *, run: Run) -> Iterator[Found]:
    """Every part, one after the other. `wanted` has the folder of all collections."""
    for part in PARTS:
        path = wanted.path / part.collection
        if not path.exists():
            yield Found(None, tuple(_absent(part, promise) for promise in part.promises))
            continue
        limit = min(part.most, wanted.limit)
        measured = run(part.measure, replace(wanted, path=path, limit=limit, out_of_book=part.kind == OUT_OF_BOOK))
        yield Found(measured, tuple(held(part, promise, measured.figures) for promise in part.promises))


def missed(every: Sequence[Held]) -> list[Held]:
    """Those below their floor. What could not be measured does not hold either."""
    return [one for one in every if one.verdict in ("MISSED", "not measured")]


def _absent(part: Part, promise: Promise) -> Held:
    return Held(_name(part, promise), None, promise.floor, promise.goal, "not measured", "the collection is not there")


def held(part: Part, promise: Promise, figures: Figures) -> Held:
    """A figure of a measurement, held against what is promised of it."""
    name = _name(part, promise)
    value = _value(figures, promise.key)
    if value is None:
        return _beyond(name, promise, figures)
    sign = -1 if promise.less_is_better else 1
    verdict: Verdict = "goal" if sign * value >= sign * promise.goal else "floor"
    if sign * value < sign * promise.floor:
        verdict = "MISSED"
    return Held(name, value, promise.floor, promise.goal, verdict)


def _beyond(name: str, promise: Promise, figures: Figures) -> Held:
    """A share of a way that leads nowhere: a person's rewrite finds no more than the last turn does."""
    ours, rewrite = (_value(figures, f"{of}.ndcg_at_10") or 0.0 for of in ("ours", "rewrite"))
    note = f"the rewrite finds {rewrite:.3f}, no more than the last turn; ours finds {ours:.3f}"
    return Held(name, None, promise.floor, promise.goal, "goal" if ours >= rewrite else "MISSED", note)


def _value(figures: Figures, key: str) -> float | None:
    """A figure by its name, one inside of others with theirs in front."""
    value: object = figures
    for name in key.split("."):
        value = value[name] if isinstance(value, dict) else None
    return value if isinstance(value, int | float) else None


def _name(part: Part, promise: Promise) -> str:
    kind = f", {part.kind}" if part.kind else ""
    return f"{part.measure} {part.collection.partition('/')[0]}{kind}: {promise.key}"
