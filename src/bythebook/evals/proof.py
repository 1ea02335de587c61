"""The proof suite: how well supported claims are separated from unsupported ones."""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bythebook.answers.support import CUTOFF, PassageMatcher, compare_by_meaning
from bythebook.book import Book
from bythebook.embeddings import Embedder
from bythebook.errors import InputError
from bythebook.evals import EvalRequest, EvalResult, Metrics
from bythebook.evals.datasets import read_objects, read_rows
from bythebook.evals.metrics import percentiles, two_sample_interval
from bythebook.evals.refusal import auroc
from bythebook.evals.report import Plot, histogram, tradeoff_curve
from bythebook.evals.runner import EvalCheckpoint, Row, say, without_deadlines
from bythebook.index.terms import Bm25Terms, idf
from bythebook.retrieval import RetrievalResult

Numbers = NDArray[np.float64]


_SUPPORTED = frozenset({"supported", "supports", "support", "entailment", "true", "1"})
_MAX_PASSAGE = 900
"""In characters, about the size of a chunk."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim, its evidence passages, and the label."""

    text: str
    passages: tuple[RetrievalResult, ...]
    supported: bool


class ClaimSet:
    """Claims with their evidence. Term weights are computed as if all evidence were one book."""

    def __init__(self, path: Path, *, choose: Callable[[list[Row]], list[Row]] = list) -> None:
        self.claims = [_make_claim(row) for row in choose(list(_read_claims(path)))]
        if len({claim.supported for claim in self.claims}) < 2:
            raise InputError(f"{path} needs claims that are supported and claims that are not.")
        texts = {passage.text: passage for claim in self.claims for passage in claim.passages}
        self.bm25 = Bm25Terms(fmean(map(Bm25Terms(100.0).count_terms, texts)) if texts else 100.0)
        self._chunks = len(texts)
        self._counts = Counter(
            term
            for passage in texts.values()
            for term in self.bm25.terms("\n".join([*passage.heading_hierarchy, passage.text]))
        )

    def idf_weights(self, terms: Iterable[int]) -> dict[int, float]:
        """The inverse document frequency of each term in the evidence."""
        return {term: idf(self._counts[term], total=self._chunks) for term in terms}

    @property
    def labels(self) -> Numbers:
        return np.array([claim.supported for claim in self.claims], dtype=np.float64)


async def measure(request: EvalRequest) -> EvalResult:
    """Measure the ranking, the decisions and the time of the support rule."""
    claims = ClaimSet(request.path, choose=request.sample)
    folder = request.settings.data_dir / "evals" / "finished"
    checkpoint = EvalCheckpoint(folder, about=[request.path, request.limit, request.seed])
    async with Book.open(without_deadlines(request.settings), say=say) as book:
        rows = await checkpoint.run(
            list(enumerate(claims.claims)),
            lambda numbered: _score_claim(numbered[1], claims, book.reader),
            name=lambda numbered: str(numbered[0]),
            progress=request.progress,
        )
    checkpoint.complete()
    return EvalResult("proof", request.dataset, *compute_metrics(claims.labels, rows, seed=request.seed))


async def _score_claim(claim: Claim, claims: ClaimSet, embedder: Embedder) -> Row:
    started = time.perf_counter()
    support = PassageMatcher(claim.passages, claims).look_up(claim.text, named=())
    (support,) = await compare_by_meaning([support], embedder)
    return {"confidence": support.confidence, "milliseconds": (time.perf_counter() - started) * 1000}


def compute_metrics(labels: Numbers, rows: Sequence[Row], *, seed: int) -> tuple[Metrics, tuple[Plot, ...]]:
    """Compute the metrics and their plots."""
    scores = np.array([row["confidence"] for row in rows])
    times = [row["milliseconds"] for row in rows]
    supported, others = scores[labels == 1], scores[labels == 0]
    measures: dict[str, Callable[[Numbers, Numbers], float]] = {
        "auroc": auroc,
        "balanced_accuracy": lambda yes, no: float(((yes >= CUTOFF).mean() + (no < CUTOFF).mean()) / 2),
    }
    metrics: Metrics = {
        "claims": len(scores),
        "supported": len(supported),
        **{name: round(of(supported, others), 4) for name, of in measures.items()},
        "accepted": {
            "supported": round(float((supported >= CUTOFF).mean()), 4),
            "others": round(float((others >= CUTOFF).mean()), 4),
        },
        "milliseconds_per_claim": round(fmean(times), 2),
        "milliseconds": percentiles(times),
        "intervals": {name: two_sample_interval(of, supported, others, seed=seed) for name, of in measures.items()},
    }
    title = "Claims accepted and rejected, by cutoff"
    curve = tradeoff_curve(
        title, across=("others rejected", others), up=("supported accepted", supported), cutoff=CUTOFF
    )
    return metrics, (curve, histogram("Time for a claim", times))


def _read_claims(path: Path) -> Iterator[dict[str, Any]]:
    """Read a file of claims, or a folder with claims and their corpus in the layout of SciFact."""
    if path.is_dir():
        yield from _read_scifact(path)
        return
    yield from read_objects(path, needs=("claim", "label"))


def _read_scifact(folder: Path) -> Iterator[dict[str, Any]]:
    documents = {str(row["_id"]): row for row in read_rows(folder, "corpus", needs=("_id", "text"))}
    for row in read_rows(folder, "claims", needs=("claim", "evidence")):
        labels = {str(entry["label"]) for entry in row["evidence"]}
        cited = [entry["doc_id"] for entry in row["evidence"]] or row["cited_doc_ids"]
        if len(labels) > 1 or not cited or str(cited[0]) not in documents:
            continue
        document = documents[str(cited[0])]
        # The abstracts are joined without spaces between their sentences.
        lines = re.sub(r"(?<=[a-z)])\.\s*(?=[A-Z])", ".\n", document["text"]).split("\n")
        label = next(iter(labels), "nothing said")
        yield {"claim": row["claim"], "evidence": lines, "label": label, "wikipedia_page": document["title"]}


def _make_claim(row: dict[str, Any]) -> Claim:
    evidence = row.get("gold_evidence") or row.get("evidence") or []
    pieces = [evidence] if isinstance(evidence, str) else evidence
    page = str(row.get("wikipedia_page", ""))
    packed: list[tuple[tuple[str, ...], str]] = []
    for piece in pieces:
        text = str(piece["text"] if isinstance(piece, dict) else piece).strip()
        section = str(piece.get("section_header", "")) if isinstance(piece, dict) else ""
        headings = tuple(part for part in (page, *section.split(" | ")) if part)
        if packed and packed[-1][0] == headings and len(packed[-1][1]) + len(text) < _MAX_PASSAGE:
            packed[-1] = (headings, f"{packed[-1][1]}\n{text}")
        elif text:
            packed.append((headings, text))
    passages = tuple(_make_passage(text, headings, number) for number, (headings, text) in enumerate(packed, start=1))
    return Claim(row["claim"], passages, str(row["label"]).lower() in _SUPPORTED)


def _make_passage(text: str, headings: tuple[str, ...], number: int) -> RetrievalResult:
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
