"""The proof suite: how well supported claims are separated from unsupported ones.

Claims come from a file of pairs, from a folder of labelled claims, or are made from a book by `swaps`.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bythebook.answers.support import PassageMatcher, TermWeights
from bythebook.book import Book
from bythebook.chunking.spans import SpanKind, split_spans
from bythebook.errors import InputError
from bythebook.evals import EvalRequest, EvalResult, Metrics
from bythebook.evals.datasets import read_objects
from bythebook.evals.metrics import mean_interval, percentiles, two_sample_interval
from bythebook.evals.refusal import auroc
from bythebook.evals.report import Plot, histogram, tradeoff_curve
from bythebook.evals.runner import EvalCheckpoint, Row, say, without_deadlines
from bythebook.evals.swaps import MadeClaim, make_claims
from bythebook.index.terms import Bm25Terms, idf
from bythebook.models.cross_encoder import CrossEncoder
from bythebook.retrieval import RetrievalResult

Numbers = NDArray[np.float64]

_SUPPORTED = frozenset({"supported", "supports", "support", "entailment", "true", "1"})
_MAX_PASSAGE = 900
"""In characters, about the size of a chunk."""
_MADE_CLAIMS = 1000
"""Claims that are made from a book, unless the request limits them."""
_FETCH_BATCH = 256


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim, its evidence passages, the label, and its kind if it has one."""

    text: str
    passages: tuple[RetrievalResult, ...]
    supported: bool
    kind: str = ""


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


async def measure(request: EvalRequest) -> EvalResult:
    """Measure the ranking, the decisions and the time of the proof, with a figure for each kind of claim."""
    settings, ingested = without_deadlines(request.settings), request.path / "index"
    if request.swaps:
        folder = request.settings.data_dir / "evals" / f"swaps-{request.dataset}"
        settings = replace(settings, data_dir=request.path if ingested.is_dir() else folder, qdrant_url="")
    about = [request.path, request.limit, request.seed, request.swaps]
    checkpoint = EvalCheckpoint(request.settings.data_dir / "evals" / "finished", about=about)
    async with AsyncExitStack() as stack:
        book = await stack.enter_async_context(Book.open(settings, say=say))
        entailment = await book.open_entailment()
        if request.swaps:
            if not ingested.is_dir():
                await book.ingest(request.path, progress=request.progress)
            lexicon: TermWeights = await stack.enter_async_context(book.snapshot())
            claims = await _make_claims(book, request)
        else:
            found = ClaimSet(request.path, choose=request.sample)
            lexicon, claims = found, found.claims
        rows = await checkpoint.run(
            list(enumerate(claims)),
            lambda numbered: _score_claim(numbered[1], lexicon, entailment),
            name=lambda numbered: str(numbered[0]),
            progress=request.progress,
        )
    checkpoint.complete()
    metrics, plots = compute_metrics([claim.supported for claim in claims], rows, seed=request.seed)
    kinds = _kind_metrics(claims, rows, seed=request.seed)
    model = {"model": "entailment" if entailment else "none"}
    return EvalResult("proof", request.dataset, {**model, **metrics, **kinds}, plots, "swaps" if request.swaps else "")


async def _make_claims(book: Book, request: EvalRequest) -> list[Claim]:
    """Claims from the sentences of a book, each with the passages that its sentence finds."""
    sections: dict[tuple[str, str], list[str]] = defaultdict(list)
    async with book.snapshot() as snapshot:
        ids = snapshot.catalog.all_chunk_ids()
        for first in range(0, len(ids), _FETCH_BATCH):
            for passage in (await snapshot.store.fetch(ids[first : first + _FETCH_BATCH])).values():
                chunk = passage.chunk
                prose = [span for span in split_spans(chunk.text, fence=chunk.fence) if span.kind is SpanKind.SENTENCE]
                heading = chunk.heading_hierarchy[-1] if chunk.heading_hierarchy else chunk.title
                text = " ".join(chunk.text[span.start : span.end] for span in prose)
                sections[chunk.url, heading].append(text)
    made = list(make_claims([(heading, texts) for (_, heading), texts in sections.items()], seed=request.seed))
    chosen: list[MadeClaim] = replace(request, limit=min(request.limit, _MADE_CLAIMS)).sample(made)
    return [Claim(one.text, (await book.search(one.source[:300])).results, one.supported, one.kind) for one in chosen]


async def _score_claim(claim: Claim, lexicon: TermWeights, entailment: CrossEncoder | None) -> Row:
    started = time.perf_counter()
    (support,) = await PassageMatcher(claim.passages, lexicon, entailment=entailment).prove([(claim.text, ())])
    milliseconds = (time.perf_counter() - started) * 1000
    return {"confidence": support.confidence, "kept": support.holds, "milliseconds": milliseconds}


def compute_metrics(labels: Sequence[bool], rows: Sequence[Row], *, seed: int) -> tuple[Metrics, tuple[Plot, ...]]:
    """Compute the metrics and their plots."""
    truth = np.array(labels, dtype=bool)
    scores, kept = (np.array([row[name] for row in rows], dtype=np.float64) for name in ("confidence", "kept"))
    times = [row["milliseconds"] for row in rows]
    supported, others = scores[truth], scores[~truth]
    accepted, wrongly = kept[truth], kept[~truth]
    metrics: Metrics = {
        "claims": len(scores),
        "supported": len(supported),
        "auroc": round(auroc(supported, others), 4),
        "balanced_accuracy": round(float((accepted.mean() + 1 - wrongly.mean()) / 2), 4),
        "accepted": {"supported": round(float(accepted.mean()), 4), "others": round(float(wrongly.mean()), 4)},
        "false_keeps": round(float(wrongly.mean()), 4),
        "false_removals": round(float(1 - accepted.mean()), 4),
        "milliseconds_per_claim": round(fmean(times), 2),
        "milliseconds": percentiles(times),
        "intervals": {
            "auroc": two_sample_interval(auroc, supported, others, seed=seed),
            "false_keeps": mean_interval(wrongly.tolist(), seed=seed),
            "false_removals": mean_interval((1 - accepted).tolist(), seed=seed),
        },
    }
    cutoff = float(min(scores[kept == 1], default=0.5))
    title = "Claims accepted and rejected, by cutoff"
    curve = tradeoff_curve(
        title, across=("others rejected", others), up=("supported accepted", supported), cutoff=cutoff
    )
    return metrics, (curve, histogram("Time for a claim", times))


def _kind_metrics(claims: Sequence[Claim], rows: Sequence[Row], *, seed: int) -> Metrics:
    """For each kind of claim: how many were decided wrongly, with the interval, and for false ones the AUROC."""
    groups: dict[tuple[bool, str], list[Row]] = defaultdict(list)
    for claim, row in zip(claims, rows, strict=True):
        groups[claim.supported, claim.kind].append(row)
    true = np.array([row["confidence"] for claim, row in zip(claims, rows, strict=True) if claim.supported])
    kinds: dict[str, Metrics] = {"false_keeps_by_kind": {}, "false_removals_by_kind": {}}
    for (supported, kind), group in sorted(groups.items()):
        wrong = [float(row["kept"] != supported) for row in group]
        of: Metrics = {
            "claims": len(group),
            "share": round(fmean(wrong), 4),
            "interval": mean_interval(wrong, seed=seed),
        }
        if not supported:
            of["auroc"] = round(auroc(true, np.array([row["confidence"] for row in group])), 4)
        kinds["false_removals_by_kind" if supported else "false_keeps_by_kind"][kind] = of
    return {name: values for name, values in kinds.items() if any(values)}


def _read_claims(path: Path) -> Iterator[dict[str, Any]]:
    """Read a file of claims, or a folder whose `claims.jsonl` has several claims for each piece of evidence."""
    if not path.is_dir():
        yield from read_objects(path, needs=("claim", "label"))
        return
    for row in read_objects(path / "claims.jsonl", needs=("claims", "evidence")):
        for claim in row["claims"]:
            evidence = [" ".join(text.split()) for text in row["evidence"]]
            yield {"claim": claim["text"], "evidence": evidence, "label": claim["label"], "kind": claim["kind"]}


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
            packed[-1] = (headings, f"{packed[-1][1]} {text}")
        elif text:
            packed.append((headings, text))
    passages = tuple(_make_passage(text, headings, number) for number, (headings, text) in enumerate(packed, start=1))
    return Claim(row["claim"], passages, str(row["label"]).lower() in _SUPPORTED, str(row.get("kind", "")))


def _make_passage(text: str, headings: tuple[str, ...], number: int) -> RetrievalResult:
    return RetrievalResult(
        chunk_id=f"{number}",
        document_id="evidence",
        text=text,
        score=1.0,
        position=number,
        url="file:///evidence",
        title=headings[0] if headings else "",
        chunk_index=number - 1,
        token_count=max(len(text) // 4, 1),
        heading_hierarchy=headings,
    )
