"""Today's rules beside the same rules with the model's score, on what the model did not learn from.

python -m training.judge GATHERED SCORES.npz [--json]

SCORES is what `training.score` wrote. "in force" is the rule as it is. "fitted" is a rule on the same features, and
"with" one on the same features and the model's score: each is fitted to one half of the subjects of all collections and
tried on the other half, then the other way round. "alone" is the model's score and nothing else. "elsewhere" is fitted
to the other collections. A difference is the 95 % interval of what a rule has more than the fitted one, from 1,000
samples drawn with replacement, both tried on the same sample.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.fitting import Trial, fitted
from bythebook.evals.refusal import auroc
from bythebook.retrieval import evidence
from training.split import rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]
    Row = dict[str, Any]
    Inputs = Callable[["Tried"], Numbers]

SAMPLES = 1000
RIDGE = 1e-4
WEIGHTS = (0.0, 0.005, 0.01, 0.02, 0.04, 0.06, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0)
"""What a logit may weigh beside the score that units are ranked by today."""


@dataclass(frozen=True, slots=True)
class Tried:
    """Questions or claims of one collection: what each rule goes by, and whether each should be let through."""

    name: str
    features: Numbers
    model: Numbers
    through: NDArray[np.bool_]
    half: NDArray[np.bool_]
    """Which of two halves each belongs to; those about one subject are in the same."""
    in_force: Numbers

    def trial(self, which: NDArray[np.bool_], by: Inputs) -> Trial:
        given = by(self)
        return Trial(self.name, given[which & self.through], given[which & ~self.through])


def features(one: Tried) -> Numbers:
    return one.features


def features_and_model(one: Tried) -> Numbers:
    return np.hstack([one.features, one.model[:, None]])


def crossed(tried: Sequence[Tried], by: Inputs) -> list[Numbers]:
    """The logits of each, by a rule that was fitted to the other half of all."""
    found = [np.zeros(len(one.through)) for one in tried]
    for side in (True, False):
        weights = fitted([one.trial(one.half == side, by) for one in tried], ridge=RIDGE)
        for one, logits in zip(tried, found, strict=True):
            other = one.half != side
            logits[other] = weights[0] + by(one)[other] @ weights[1:]
    return found


def elsewhere(tried: Sequence[Tried], one: Tried, by: Inputs) -> Numbers:
    """The logits by a rule that was fitted to the other collections."""
    others = [other for other in tried if other.name.split(",")[0] != one.name.split(",")[0]]
    weights = fitted([other.trial(np.ones(len(other.through), dtype=bool), by) for other in others], ridge=RIDGE)
    logits: Numbers = weights[0] + by(one) @ weights[1:]
    return logits


def compared(one: Tried, rules: dict[str, Numbers], *, to: str) -> dict[str, Any]:
    """The AUROC of each rule, and the interval of its difference to the one it stands beside."""

    def reached(logits: Numbers, which: NDArray[np.int64]) -> float:
        through = one.through[which]
        return auroc(logits[which][through], logits[which][~through])

    chance = np.random.default_rng(1)
    sides = [np.flatnonzero(one.through), np.flatnonzero(~one.through)]
    drawn = [np.concatenate([chance.choice(side, len(side)) for side in sides]) for _ in range(SAMPLES)]
    every = np.arange(len(one.through))
    samples = {name: np.array([reached(logits, which) for which in drawn]) for name, logits in rules.items()}
    return {
        "through": len(sides[0]),
        "others": len(sides[1]),
        **{
            name: {"auroc": round(reached(logits, every), 4), "difference": _ends(samples[name] - samples[to])}
            for name, logits in rules.items()
        },
    }


def _ends(drawn: Numbers) -> list[float]:
    return [round(float(value), 4) for value in np.percentile(drawn, [2.5, 97.5])]


def _half(subject: str) -> bool:
    return hashlib.sha256(f"half {subject}".encode()).digest()[0] % 2 == 0


def questions(asked: Sequence[Row], scores: Numbers) -> list[Tried]:
    """The questions that have a score, by collection and by what must be refused."""
    kinds = dict.fromkeys((row["set"], row["kind"]) for row in asked)
    in_force = np.array([getattr(evidence.WEIGHTS, name) for name in evidence.Features.__slots__])
    found = []
    for collection, kind in kinds:
        which = [
            place
            for place, row in enumerate(asked)
            if (row["set"], row["kind"]) == (collection, kind) and not np.isnan(scores[place]).all()
        ]
        if not which:
            continue
        some = [asked[place] for place in which]
        given = np.array([row["features"] for row in some])
        found.append(
            Tried(
                f"{collection}, {kind}",
                given,
                np.nanmax(scores[which], axis=1),
                np.array([row["covered"] for row in some]),
                np.array([_half(row["about"]) for row in some]),
                evidence.BIAS + given @ in_force,
            )
        )
    return found


def claims(claimed: Sequence[Row], scores: Numbers) -> list[Tried]:
    """The claims that have a score, by collection."""
    found = []
    for collection in dict.fromkeys(row["set"] for row in claimed):
        which = [
            place for place, row in enumerate(claimed) if row["set"] == collection and not np.isnan(scores[place]).all()
        ]
        some = [claimed[place] for place in which]
        confidence = np.clip([row["confidence"] for row in some], 1e-6, 1 - 1e-6)
        found.append(
            Tried(
                collection,
                np.array([row["features"] for row in some]),
                scores[which, 0],
                np.array([row["supported"] for row in some]),
                np.array([_half(row["title"].split(" > ")[0] or row["evidence"]) for row in some]),
                np.log(confidence / (1 - confidence)),
            )
        )
    return found


def judged(tried: Sequence[Tried]) -> dict[str, Any]:
    """Every rule on every collection."""
    plain, read = crossed(tried, features), crossed(tried, features_and_model)
    found = {}
    for place, one in enumerate(tried):
        rules = {"in force": one.in_force, "fitted": plain[place], "with": read[place], "alone": one.model}
        away = {
            "fitted elsewhere": elsewhere(tried, one, features),
            "with, fitted elsewhere": elsewhere(tried, one, features_and_model),
        }
        found[one.name] = {**compared(one, rules, to="fitted"), **compared(one, away, to="fitted elsewhere")}
    return found


def hits(asked: Sequence[Row], scores: Numbers) -> dict[str, Any]:
    """How often an answer is in the best sentences, ranked as today, with the model's logits added, and by them alone.

    What a logit weighs is chosen on one half of the articles and tried on the other.
    """
    wanted = [row["set"] == "squad2" and row["kind"] == "near misses" and row["covered"] for row in asked]
    which = np.flatnonzero(np.array(wanted) & ~np.isnan(scores).all(axis=1)).tolist()
    some = [asked[place] for place in which]
    halves = np.array([_half(row["about"]) for row in some])
    today = [np.array([unit["score"] for unit in row["units"]]) for row in some]
    logits = [scores[place, : len(row["units"])] for place, row in zip(which, some, strict=True)]

    def share(weight: float, most: int) -> Numbers:
        ranks = (score + weight * line for score, line in zip(today, logits, strict=True))
        return np.array([_hit(row, rank, most) for row, rank in zip(some, ranks, strict=True)])

    best = {side: max(WEIGHTS, key=lambda weight: share(weight, 1)[halves == side].mean()) for side in (True, False)}
    drawn = np.random.default_rng(1).integers(0, len(some), (SAMPLES, len(some)))
    found: dict[str, Any] = {"questions": len(some), "weight of a logit": list(best.values())}
    for most in (1, 2, 3, 4):
        plain = share(0.0, most)
        rules = {
            "in force": plain,
            "with": np.where(halves, share(best[False], most), share(best[True], most)),
            "alone": share(1e6, most),
        }
        found[f"hit_at_{most}"] = {
            name: {"share": round(float(hit.mean()), 4), "difference": _ends((hit - plain)[drawn].mean(axis=1))}
            for name, hit in rules.items()
        }
    return found


def _hit(row: Row, ranks: Numbers, most: int) -> float:
    return float(any(row["units"][place]["answer"] for place in np.argsort(-ranks, kind="stable")[:most]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gathered", type=Path)
    parser.add_argument("scores", type=Path)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    asked, claimed = (rows(given.gathered / f"{name}.jsonl") for name in ("asked", "claimed"))
    with np.load(given.scores) as scores:
        of_questions, of_claims = scores["asked"], scores["claimed"]
    found = {
        "refusal": judged(questions(asked, of_questions)),
        "answers": hits(asked, of_questions),
        "proof": judged(claims(claimed, of_claims)),
    }
    print(json.dumps(found, indent=None if given.json else 2))


if __name__ == "__main__":
    main()
