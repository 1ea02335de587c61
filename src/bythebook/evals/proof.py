"""How well a claim that its evidence supports is told from one that it does not."""

from __future__ import annotations

import re
import time
from collections import Counter
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from bythebook.answers.support import CUTOFF, Desk, read
from bythebook.book import Book
from bythebook.errors import InputError
from bythebook.evals import Measured
from bythebook.evals.datasets import objects, rows
from bythebook.evals.metrics import interval_of, percentiles
from bythebook.evals.refusal import auroc
from bythebook.evals.report import spread, trade
from bythebook.evals.runner import Finished, patient, say
from bythebook.index.terms import Words, rarity
from bythebook.retrieval import RetrievalResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from bythebook.embeddings import Embedder
    from bythebook.evals import Figures, Wanted
    from bythebook.evals.report import Plot
    from bythebook.evals.runner import Row

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

    def __init__(self, path: Path, *, choose: Callable[[list[Row]], list[Row]] = list) -> None:
        self.claims = [_claim(row) for row in choose(list(_rows(path)))]
        if len({claim.supported for claim in self.claims}) < 2:
            raise InputError(f"{path} needs claims that are supported and claims that are not.")
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


async def measure(wanted: Wanted) -> Measured:
    """The figures of the rule as it is: how it ranks, how it decides, and how long it takes."""
    pairs = Pairs(wanted.path, choose=wanted.some)
    finished = Finished(wanted.settings.data_dir / "evals" / "finished", about=[wanted.path, wanted.limit, wanted.seed])
    async with Book.open(patient(wanted.settings), say=say) as book:
        rows = await finished.each(
            list(enumerate(pairs.claims)),
            lambda numbered: _look(numbered[1], pairs, book.reader),
            name=lambda numbered: str(numbered[0]),
            progress=wanted.progress,
        )
    finished.complete()
    return Measured("proof", wanted.collection, *told(pairs.labels, rows, seed=wanted.seed))


async def _look(claim: Claim, pairs: Pairs, embedder: Embedder) -> Row:
    started = time.perf_counter()
    support = Desk(claim.passages, pairs).look_up(claim.text, named=())
    (support,) = await read([support], embedder)
    return {"confidence": support.confidence, "milliseconds": (time.perf_counter() - started) * 1000}


def told(labels: Numbers, rows: Sequence[Row], *, seed: int) -> tuple[Figures, tuple[Plot, ...]]:
    """The figures and their plots."""
    scores = np.array([row["confidence"] for row in rows])
    times = [row["milliseconds"] for row in rows]
    supported, others = scores[labels == 1], scores[labels == 0]
    measures: dict[str, Callable[[Numbers, Numbers], float]] = {
        "auroc": auroc,
        "balanced_accuracy": lambda yes, no: float(((yes >= CUTOFF).mean() + (no < CUTOFF).mean()) / 2),
    }
    figures: Figures = {
        "claims": len(scores),
        "supported": len(supported),
        **{name: round(of(supported, others), 4) for name, of in measures.items()},
        "accepted": {
            "supported": round(float((supported >= CUTOFF).mean()), 4),
            "others": round(float((others >= CUTOFF).mean()), 4),
        },
        "milliseconds_per_claim": round(fmean(times), 2),
        "milliseconds": percentiles(times),
        "intervals": {name: interval_of(of, supported, others, seed=seed) for name, of in measures.items()},
    }
    title = "Claims accepted and turned away, wherever the line is drawn"
    curve = trade(title, across=("others turned away", others), up=("supported accepted", supported), line=CUTOFF)
    return figures, (curve, spread("Time for a claim", times))


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    """The claims of a file of pairs, or of a folder with claims and the corpus they cite, as scifact has them."""
    if path.is_dir():
        yield from _cited(path)
        return
    yield from objects(path, needs=("claim", "label"))


def _cited(folder: Path) -> Iterator[dict[str, Any]]:
    documents = {str(row["_id"]): row for row in rows(folder, "corpus", needs=("_id", "text"))}
    for row in rows(folder, "claims", needs=("claim", "evidence")):
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
