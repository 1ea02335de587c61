"""Scores an exported network on labelled claims: AUROC by set and by kind of change, and the time a pair takes.

python -m training.evaluate MODEL.onnx TOKENIZER.json DATA [--pairs PAIRS.npz ...] [--limit N] [--json]

DATA is the folder of the evaluation sets: `claims`, `fool_me_twice` and `wice`. With `--pairs` the held-out part of the
encoded training pairs is scored too: choices are made on that part and never on the sets.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

MAX_TOKENS = 256
MIN_CLASS = 5
"""A kind with fewer true or false pairs has no AUROC worth printing."""


@dataclass(frozen=True, slots=True)
class Example:
    """A claim, the quotes that may support it, its label and its kind."""

    kind: str
    claim: str
    quotes: Sequence[str]
    label: bool


class EntailmentModel:
    """An exported network that reads one pair at a time."""

    def __init__(self, model: Path, tokenizer: Path, *, threads: int) -> None:
        import onnxruntime  # type: ignore[import-untyped]
        from tokenizers import Tokenizer

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 3
        self._session: Any = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self._tokenizer: Any = Tokenizer.from_file(str(tokenizer))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MAX_TOKENS, strategy="only_second")

    def score(self, claim: str, quote: str) -> float:
        """The log-odds that the quote supports the claim."""
        return self.score_ids(self._tokenizer.encode(claim, quote).ids)

    def score_ids(self, ids: Sequence[int]) -> float:
        (found,) = self._session.run(None, {"ids": np.array([ids], dtype=np.int64)})
        return float(found[0])


def auroc(scores: Sequence[float], labels: Sequence[bool]) -> float:
    """The chance that a true pair scores higher than a false one; ties count half."""
    values, truth = np.asarray(scores), np.asarray(labels, dtype=bool)
    true, false = values[truth], np.sort(values[~truth])
    below = np.searchsorted(false, true, side="left") + np.searchsorted(false, true, side="right")
    return float(below.mean() / 2 / len(false))


def read_claims(folder: Path) -> list[Example]:
    """Every labelled sentence with the evidence of its question."""
    rows = _lines(folder / "claims" / "claims.jsonl")
    return [
        Example(claim["kind"], claim["text"], _clean(row["evidence"]), claim["label"])
        for row in rows
        for claim in row["claims"]
    ]


def read_fool_me_twice(folder: Path) -> list[Example]:
    rows = _lines(folder / "fool_me_twice" / "pairs.jsonl.gz")
    return [
        Example(row["label"], row["claim"], [_sections(row["gold_evidence"])], row["label"] == "SUPPORTS")
        for row in rows
    ]


def _sections(evidence: Iterable[dict[str, str]]) -> str:
    return " ".join(f"{part['section_header']}: {part['text']}" for part in evidence)


def read_wice(folder: Path) -> list[Example]:
    """Claims with the sentences around each place of their source that may support them."""
    rows = _lines(folder / "wice" / "pairs.jsonl.gz")
    return [Example(row["label"], row["claim"], _clean(row["evidence"]), row["label"] == "supported") for row in rows]


def _clean(quotes: Iterable[str]) -> list[str]:
    return [" ".join(quote.split()) for quote in quotes if quote.strip()]


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def score_together(model: EntailmentModel, example: Example) -> float:
    """All quotes as one."""
    return model.score(example.claim, " ".join(example.quotes))


def score_best(model: EntailmentModel, example: Example) -> float:
    """The best of the quotes, each two neighbours, and all of them as one."""
    quotes = list(example.quotes)
    pairs = [f"{first} {second}" for first, second in pairwise(quotes)]
    return max(model.score(example.claim, quote) for quote in {*quotes, *pairs, " ".join(quotes)})


CANDIDATES = 4


def score_nearest(model: EntailmentModel, example: Example) -> float:
    """The best among the sentences of a long source that share most words with the claim, each with its neighbours."""
    words = _words(example.claim)
    quotes = list(example.quotes)
    rare = {word: 1 / (1 + sum(word in _words(quote) for quote in quotes)) for word in words}
    order = sorted(range(len(quotes)), key=lambda place: -sum(rare[word] for word in words & _words(quotes[place])))
    found = {quotes[place] for place in order[:CANDIDATES]}
    found |= {" ".join(quotes[max(place - 1, 0) : place + 2]) for place in order[:CANDIDATES]}
    found.add(" ".join(quotes[place] for place in sorted(order[:4])))
    return max(model.score(example.claim, quote) for quote in found)


def _words(text: str) -> set[str]:
    return {word.strip(".,;:()\"'").lower() for word in text.split() if len(word) > 3}


def evaluate(examples: Sequence[Example], score: Callable[[Example], float]) -> dict[str, Any]:
    """The AUROC of all, and of each kind of false claim against all true ones."""
    scores = [score(example) for example in examples]
    labels = [example.label for example in examples]
    true = [value for value, label in zip(scores, labels, strict=True) if label]
    kinds: dict[str, list[float]] = {}
    for value, example in zip(scores, examples, strict=True):
        if not example.label:
            kinds.setdefault(example.kind, []).append(value)
    by_kind = {
        kind: round(auroc([*true, *values], [True] * len(true) + [False] * len(values)), 3)
        for kind, values in sorted(kinds.items())
        if len(values) >= MIN_CLASS
    }
    return {
        "auroc": round(auroc(scores, labels), 4),
        "true": len(true),
        "false": len(scores) - len(true),
        "kinds": by_kind,
    }


def evaluate_held_out(model: EntailmentModel, path: Path, *, limit: int) -> dict[str, Any]:
    """The AUROC of the held-out pairs of a file, by origin."""
    arrays = np.load(path)
    starts = np.concatenate([[0], np.cumsum(arrays["lengths"])])
    chosen = np.flatnonzero(arrays["held_out"])[:limit]
    scores = [model.score_ids(arrays["ids"][starts[one] : starts[one + 1]].tolist()) for one in chosen]
    labels: NDArray[np.bool_] = arrays["labels"][chosen] == 0
    found: dict[str, Any] = {"auroc": round(auroc(scores, labels.tolist()), 4), "pairs": len(chosen), "kinds": {}}
    for number, name in enumerate(arrays["names"]):
        which = arrays["origins"][chosen] == number
        if min(labels[which].sum(), (~labels[which]).sum()) >= MIN_CLASS:
            found["kinds"][str(name)] = round(auroc(np.array(scores)[which].tolist(), labels[which].tolist()), 3)
    return found


def measure_time(model: EntailmentModel, examples: Sequence[Example]) -> dict[str, float]:
    """Milliseconds a pair of a claim and one quote takes, at the median and at the 95th percentile."""
    times = []
    for example in examples:
        begun = time.perf_counter()
        model.score(example.claim, example.quotes[0])
        times.append(1000 * (time.perf_counter() - begun))
    return {"median": round(float(np.median(times)), 2), "p95": round(float(np.percentile(times, 95)), 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("tokenizer", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("--pairs", type=Path, nargs="*", default=[])
    parser.add_argument("--limit", type=int, default=1200, help="held-out pairs of each file")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    model = EntailmentModel(given.model, given.tokenizer, threads=given.threads)
    claims = read_claims(given.data)
    found = {
        "claims, evidence as one quote": evaluate(claims, lambda example: score_together(model, example)),
        "claims, best quote": evaluate(claims, lambda example: score_best(model, example)),
        "fool_me_twice": evaluate(read_fool_me_twice(given.data), lambda example: score_together(model, example)),
        "wice": evaluate(read_wice(given.data), lambda example: score_nearest(model, example)),
        **{path.name: evaluate_held_out(model, path, limit=given.limit) for path in given.pairs},
        "milliseconds": measure_time(model, claims),
    }
    if given.json:
        print(json.dumps(found))
    else:
        for name, figures in found.items():
            print(f"{name}: {json.dumps(figures)}")


if __name__ == "__main__":
    main()
