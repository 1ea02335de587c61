"""How well a claim that its evidence supports is told from one that it does not."""

from __future__ import annotations

import gzip
import json
import re
import sys
import time
from collections import Counter
from dataclasses import dataclass
from itertools import islice
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from bythebook.answers.support import CUTOFF, Desk, Features, compared, read
from bythebook.errors import InputError
from bythebook.evals.corpus import rows
from bythebook.passages import RetrievalResult
from bythebook.passages.words import Words, rarity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from bythebook.answers.support import Support
    from bythebook.ingest import Progress
    from bythebook.vectors import Embedder

    Numbers = NDArray[np.float64]

_SUPPORTED = frozenset({"supported", "supports", "support", "entailment", "true", "1"})
_LONGEST_PASSAGE = 900
"""About as long as a chunk of a book."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim with the passages it is held against, and whether people found it supported by them."""

    text: str
    passages: tuple[RetrievalResult, ...]
    supported: bool


class Pairs:
    """Claims with their evidence, read as if all the evidence were one book."""

    def __init__(self, path: Path, *, limit: int = sys.maxsize) -> None:
        self.claims = [_claim(row) for row in islice(_rows(path), limit)]
        if not self.claims:
            raise InputError(f"{path} has no claims.")
        texts = {passage.text: passage for claim in self.claims for passage in claim.passages}
        self.words = Words(fmean(map(Words(100.0).length, texts)) if texts else 100.0)
        self._chunks = len(texts)
        self._counts = Counter(
            term
            for passage in texts.values()
            for term in self.words.terms("\n".join([*passage.heading_hierarchy, passage.text]))
        )

    def rarities(self, terms: Iterable[int]) -> dict[int, float]:
        """How much each term says in this collection."""
        return {term: rarity(self._counts[term], total=self._chunks) for term in terms}

    @property
    def labels(self) -> Numbers:
        return np.array([claim.supported for claim in self.claims], dtype=np.float64)


async def measure(pairs: Pairs, embedder: Embedder, *, progress: Progress) -> dict[str, object]:
    """The figures of the rule as it is: how it ranks, how it decides, and how long it takes."""
    scores: list[float] = []
    started = time.perf_counter()
    for done, claim in enumerate(pairs.claims, start=1):
        support = Desk(claim.passages, pairs).look_up(claim.text, named=())
        (support,) = await read([support], embedder)
        scores.append(support.confidence)
        progress("proving", done, len(pairs.claims))
    took = time.perf_counter() - started
    return {
        "claims": len(scores),
        "auroc": round(auroc(pairs.labels, np.array(scores)), 4),
        "balanced_accuracy": round(balanced_accuracy(pairs.labels, np.array(scores) >= CUTOFF), 4),
        "milliseconds_per_claim": round(took * 1000 / len(scores), 2),
    }


async def fit(collections: Sequence[Pairs], embedder: Embedder, *, progress: Progress) -> dict[str, object]:
    """The weights fitted on all of the collections, and on each what the weights fitted on the others reach."""
    found = [await _features(pairs, embedder, progress) for pairs in collections]
    labels = [pairs.labels for pairs in collections]
    elsewhere = []
    for index, (features, truth) in enumerate(zip(found, labels, strict=True)):
        others = [place for place in range(len(found)) if place != index]
        weights = _fitted([found[place] for place in others], [labels[place] for place in others])
        logits = _with_bias(features) @ weights
        elsewhere.append({"auroc": auroc(truth, logits), "balanced_accuracy": balanced_accuracy(truth, logits > 0)})
    weights = _fitted(found, labels)
    return {
        "bias": round(float(weights[0]), 2),
        "weights": dict(zip(Features.__slots__, np.round(weights[1:], 2).tolist(), strict=True)),
        "fitted_elsewhere": elsewhere,
    }


async def _features(pairs: Pairs, embedder: Embedder, progress: Progress) -> Numbers:
    """The features of every claim, each compared by meaning, also where the words would do."""
    supports: list[Support] = []
    for done, claim in enumerate(pairs.claims, start=1):
        support = Desk(claim.passages, pairs).look_up(claim.text, named=())
        texts = [support.sentence, support.quoted]
        vectors = dict(zip(texts, [vector async for vector in embedder.documents(texts)], strict=True))
        supports.append(compared(support, vectors))
        progress("reading", done, len(pairs.claims))
    return np.array([[getattr(support.features, name) for name in Features.__slots__] for support in supports])


def _fitted(features: Sequence[Numbers], labels: Sequence[Numbers], *, ridge: float = 3.0) -> Numbers:
    """Logistic regression by Newton's method; every collection, and in it both answers, weighs the same."""
    inputs, truth = _with_bias(np.vstack(features)), np.concatenate(labels)
    weighs = np.concatenate([np.where(own == 1, 500 / own.sum(), 500 / (1 - own).sum()) for own in labels])
    penalty = ridge * np.diag([0.0] + [1.0] * (inputs.shape[1] - 1))
    weights: Numbers = np.zeros(inputs.shape[1])
    for _ in range(25):
        guessed = 1 / (1 + np.exp(-inputs @ weights))
        slope = inputs.T @ (weighs * (guessed - truth)) + penalty @ weights
        curve = (inputs * (weighs * guessed * (1 - guessed))[:, None]).T @ inputs + penalty
        weights = weights - np.linalg.solve(curve, slope)
    return weights


def _with_bias(features: Numbers) -> Numbers:
    return np.hstack([np.ones((len(features), 1)), features])


def auroc(truth: Numbers, scores: Numbers) -> float:
    """How often a supported claim scores above an unsupported one, a tie counting half."""
    _, place, count = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(count) - (count - 1) / 2)[place]
    yes, no = truth.sum(), (1 - truth).sum()
    return float((ranks[truth == 1].sum() - yes * (yes + 1) / 2) / (yes * no)) if yes and no else 0.0


def balanced_accuracy(truth: Numbers, said: NDArray[np.bool_]) -> float:
    """The mean of how many supported claims are accepted and how many others are not."""
    return float((said[truth == 1].mean() + (~said)[truth == 0].mean()) / 2)


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    """The claims of a file of pairs, or of a folder with claims and the corpus they cite, as scifact has them."""
    if path.is_dir():
        yield from _cited(path)
        return
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def _cited(folder: Path) -> Iterator[dict[str, Any]]:
    documents = {str(row["_id"]): row for row in rows(folder, "corpus")}
    for row in rows(folder, "claims"):
        labels = {str(entry["label"]) for entry in row["evidence"]}
        cited = [entry["doc_id"] for entry in row["evidence"]] or row["cited_doc_ids"]
        if len(labels) > 1 or not cited or str(cited[0]) not in documents:
            continue
        document = documents[str(cited[0])]
        # The abstracts were joined without spaces between their sentences.
        lines = re.sub(r"(?<=[a-z)])\.\s*(?=[A-Z])", ".\n", document["text"]).split("\n")
        label = next(iter(labels), "nothing said")
        yield {"claim": row["claim"], "evidence": lines, "label": label, "wikipedia_page": document["title"]}


def _claim(row: dict[str, Any]) -> Claim:
    evidence = row.get("gold_evidence") or row.get("evidence") or []
    pieces = [evidence] if isinstance(evidence, str) else evidence
    page = str(row.get("wikipedia_page", ""))
    packed: list[tuple[tuple[str, ...], str]] = []
    for piece in pieces:
        text = str(piece["text"] if isinstance(piece, dict) else piece).strip()
        section = str(piece.get("section_header", "")) if isinstance(piece, dict) else ""
        headings = tuple(part for part in (page, *section.split(" | ")) if part)
        if packed and packed[-1][0] == headings and len(packed[-1][1]) + len(text) < _LONGEST_PASSAGE:
            packed[-1] = (headings, f"{packed[-1][1]}\n{text}")
        elif text:
            packed.append((headings, text))
    passages = tuple(_passage(text, headings, number) for number, (headings, text) in enumerate(packed, start=1))
    return Claim(row["claim"], passages, str(row["label"]).lower() in _SUPPORTED)


def _passage(text: str, headings: tuple[str, ...], number: int) -> RetrievalResult:
    return RetrievalResult(
        chunk_id=f"{number}",
        document_id="evidence",
        text=text,
        score=1.0,
        position=number,
        url="evidence:///",
        title=headings[0] if headings else "",
        chunk_index=number - 1,
        token_count=max(len(text) // 4, 1),
        heading_hierarchy=headings,
    )
