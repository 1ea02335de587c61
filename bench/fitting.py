"""Refits the weights of two rules: when the book covers a question, and when passages support a sentence.

python -m bench.fitting refusal COLLECTIONS [--limit 400] [--seed 1] [--json]
python -m bench.fitting proof ENTAILMENT --made MADE.jsonl [--limit 1500] [--json]

COLLECTIONS is the folder that docs/quality.md describes, ENTAILMENT the folder of labelled pairs that
training/README.md describes, and MADE.jsonl what training/minimal_pairs.py wrote. The rule of proof is fitted on the
held-out parts of these two, with the model in the package; its weights are `RULE` and `RULE_WITHOUT_MODEL` in
src/bythebook/answers/support.py.

Each rule is fitted to its collections together, every collection and both kinds in it weighing the same. Then, for each
collection, what the weights reach on it that were fitted to the others alone: that is what the rule can be expected to
do on a book nobody has seen. The weights in force are printed beside the fitted ones.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from dataclasses import dataclass, fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from bythebook.answers import support
from bythebook.evals import EvalRequest
from bythebook.evals.datasets import load_dataset
from bythebook.evals.proof import ClaimSet
from bythebook.evals.refusal import auroc, split_questions, standalone_text
from bythebook.evals.runner import open_dataset
from bythebook.index import NO_FILTERS
from bythebook.models import ENTAILMENT, ENTAILMENT_TOKENS, install
from bythebook.models.cross_encoder import CrossEncoder, open_cross_encoder
from bythebook.retrieval import evidence
from bythebook.settings import Settings
from training.data import is_held_out, read_labelled, read_made, sample

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from bythebook.evals.datasets import EvalQuestion
    from bythebook.evals.runner import BookUnderTest

    Numbers = NDArray[np.float64]

REFUSAL = (
    ("squad2", {"out_of_book": True}),
    ("ray_docs_qa", {"strangers": "mtrag_cloud_pool"}),
    ("clapnq_dev", {"out_of_book": True}),
)
STEPS = 50


@dataclass(frozen=True, slots=True)
class Trial:
    """The features of the two kinds of a dataset: those the rule must accept, and those it must reject."""

    name: str
    through: Numbers
    turned_away: Numbers


def fitted(trials: Sequence[Trial], *, ridge: float, signs: Numbers | None = None) -> Numbers:
    """As `regressed`, without the features whose weight has another sign than `signs` says."""
    kept = np.ones(trials[0].through.shape[1], dtype=bool)
    while True:
        cut = [Trial(one.name, one.through[:, kept], one.turned_away[:, kept]) for one in trials]
        found = regressed(cut, ridge=ridge)
        weights = np.zeros(len(kept) + 1)
        weights[0], weights[1:][kept] = found[0], found[1:]
        wrong = kept & (weights[1:] * signs < 0) if signs is not None else np.zeros_like(kept)
        if not wrong.any():
            return weights
        kept &= ~wrong


def regressed(trials: Sequence[Trial], *, ridge: float) -> Numbers:
    """The bias and weights of a logistic regression. All datasets, and both kinds in each, have equal weight."""
    sides = [side for trial in trials for side in (trial.through, trial.turned_away)]
    inputs = _with_bias(np.vstack(sides))
    truth = np.concatenate([np.full(len(side), float(place % 2 == 0)) for place, side in enumerate(sides)])
    weighs = np.concatenate([np.full(len(side), 1 / len(side) / len(sides)) for side in sides])
    penalty = ridge * np.diag([0.0] + [1.0] * (inputs.shape[1] - 1))
    weights: Numbers = np.zeros(inputs.shape[1])
    for _ in range(STEPS):
        guessed = 1 / (1 + np.exp(-inputs @ weights))
        slope = inputs.T @ (weighs * (guessed - truth)) + penalty @ weights
        curve = (inputs * (weighs * guessed * (1 - guessed))[:, None]).T @ inputs + penalty
        weights = weights - np.linalg.solve(curve, slope)
    return weights


def report(
    trials: Sequence[Trial],
    *,
    names: Sequence[str],
    in_force: Numbers,
    ridge: float,
    signs: Numbers | None = None,
) -> dict[str, Any]:
    """The weights, and the results of fitted, current and held-out weights on each dataset."""
    everywhere = fitted(trials, ridge=ridge, signs=signs)
    reached = {}
    for trial in trials:
        elsewhere = fitted([other for other in trials if other is not trial], ridge=ridge, signs=signs)
        tried = {"in_force": in_force, "fitted": everywhere, "fitted_elsewhere": elsewhere}
        reached[trial.name] = {name: _reached(trial, weights) for name, weights in tried.items()}
    shown = {"in_force": in_force, "fitted": everywhere}
    weights = {
        name: dict(zip(("bias", *names), np.round(values, 2).tolist(), strict=True)) for name, values in shown.items()
    }
    return {"weights": weights, "reached": reached}


def _reached(trial: Trial, weights: Numbers) -> dict[str, float]:
    through, away = (_with_bias(side) @ weights for side in (trial.through, trial.turned_away))
    kept, refused = float((through > 0).mean()), float((away <= 0).mean())
    return {"auroc": round(auroc(through, away), 4), "let_through": round(kept, 4), "turned_away": round(refused, 4)}


def _with_bias(features: Numbers) -> Numbers:
    return np.hstack([np.ones((len(features), 1)), features])


async def refusal(given: argparse.Namespace) -> dict[str, Any]:
    settings = Settings.load({"data_dir": given.data_dir})
    rule = evidence.READ_RULE
    names = [known.name for known in fields(evidence.EvidenceFeatures) if getattr(rule.weights, known.name)]
    trials = []
    for name, how in REFUSAL:
        strangers = given.collections / str(how["strangers"]) if "strangers" in how else None
        wanted = EvalRequest(
            given.collections / name,
            settings,
            progress(name),
            limit=given.limit or 400,
            seed=given.seed,
            out_of_book=bool(how.get("out_of_book")),
            foreign=strangers,
        )
        found = load_dataset(wanted.path)
        book, covered, foreign = split_questions(found, wanted)
        async with open_dataset(found.corpus, book, wanted) as subject:
            sides = [await _evidence(subject, questions, names) for questions in (covered, foreign)]
        trials.append(Trial(name, *sides))
    in_force = np.array([rule.bias, *(getattr(rule.weights, name) for name in names)])
    return report(trials, names=names, in_force=in_force, ridge=1e-4)


async def _evidence(subject: BookUnderTest, questions: Sequence[EvalQuestion], names: Sequence[str]) -> Numbers:
    rows = []
    for done, question in enumerate(questions, start=1):
        found = await subject.book.retriever.retrieve(
            subject.snapshot, standalone_text(question), top_k=5, filters=NO_FILTERS
        )
        features = (await evidence.score_evidence(subject.snapshot, subject.book.reader, found)).features
        rows.append([getattr(features, name) for name in names])
        subject.request.progress("asking", done, len(questions))
    return np.array(rows)


async def proof(given: argparse.Namespace) -> dict[str, Any]:
    """Both rules of proof: with the entailment model, and without it. What the model reads well needs no other rule,
    so a weight with the wrong sign is nothing."""
    trials = []
    opening = open_cross_encoder(install.find(Path(), ENTAILMENT), max_tokens=ENTAILMENT_TOKENS)
    with TemporaryDirectory() as folder:
        async with opening as model:
            for name, pairs in (("labelled", read_labelled(given.collections)), ("made", read_made(given.made))):
                held_out = sample([pair for pair in pairs if is_held_out(pair.quote)], seed=given.seed)
                file = Path(folder) / f"{name}.jsonl"
                rows = [{"claim": one.claim, "evidence": [one.quote], "label": one.label} for one in held_out]
                file.write_text("".join(json.dumps(row) + "\n" for row in rows[: given.limit]), encoding="utf-8")
                trials.append(await _proof_trial(name, ClaimSet(file), model))
    names = list(support.SupportFeatures.__slots__)
    found: dict[str, Any] = {"weights": {}, "reached": {}}
    for name, rule, first in (("with", support.RULE, 0), ("without", support.RULE_WITHOUT_MODEL, 1)):
        cut = [Trial(one.name, one.through[:, first:], one.turned_away[:, first:]) for one in trials]
        in_force = np.array([rule.bias, *(getattr(rule.weights, known) for known in names[first:])])
        signs = np.array([1.0, 1.0, -1.0, -1.0])[first:]
        part = report(cut, names=names[first:], in_force=in_force, ridge=1e-3, signs=signs)
        for kind, values in part.items():
            found[kind].update({f"{known}, {name} model": value for known, value in values.items()})
    return found


async def _proof_trial(name: str, claims: ClaimSet, model: CrossEncoder) -> Trial:
    """The features of the place that is most likely to support each claim, if rules do not object to all places."""
    sides: tuple[list[list[float]], list[list[float]]] = ([], [])
    for done, claim in enumerate(claims.claims, start=1):
        places = support.PassageMatcher(claim.passages, claims, entailment=model).look_up(claim.text, named=())
        read = [one for one in places if one.quotes and not one.objection]
        scores = await model.score([one.pair for one in read])
        if read:
            score, best = max(zip(scores, read, strict=True), key=lambda pair: pair[0])
            features = replace(best.features, entailment=support.clip(score))
            values = [getattr(features, known) for known in support.SupportFeatures.__slots__]
            sides[not claim.supported].append(values)
        progress(name)("reading", done, len(claims.claims))
    return Trial(name, *(np.array(side) for side in sides))


def progress(name: str) -> Callable[[str, int, int], None]:
    def show(stage: str, done: int, total: int) -> None:
        if done % 100 == 0 or done == total:
            print(f"{name} {stage} {done} of {total}", file=sys.stderr)

    return show


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rule", choices=("refusal", "proof"))
    parser.add_argument("collections", type=Path)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--made", type=Path)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found = asyncio.run({"refusal": refusal, "proof": proof}[given.rule](given))
    if given.json:
        print(json.dumps(found))
        return
    for name, weights in found["weights"].items():
        print(f"{name:<24}", "  ".join(f"{known} {value:+.2f}" for known, value in weights.items()))
    for name, tried in found["reached"].items():
        for how, figures in tried.items():
            print(f"{name:<24} {how:<17}", "  ".join(f"{known} {value:.3f}" for known, value in figures.items()))


if __name__ == "__main__":
    main()
