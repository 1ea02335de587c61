"""How well the right documents are found, and how well each of the two rankings alone would find them."""

from __future__ import annotations

import math
import time
from statistics import fmean
from typing import TYPE_CHECKING

from bythebook.errors import InputError
from bythebook.evals import Measured
from bythebook.evals.datasets import collection
from bythebook.evals.metrics import intervals, percentiles
from bythebook.evals.report import bars, spread
from bythebook.evals.runner import opened
from bythebook.index import EVERYWHERE
from bythebook.index.edge_store import DEPTH

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bythebook.evals import Figures, Wanted
    from bythebook.evals.datasets import Question
    from bythebook.evals.runner import Row, Subject

    Columns = dict[str, list[float]]

ALONE = ("bm25", "dense")


async def measure(wanted: Wanted) -> Measured:
    """nDCG@10, recall and reciprocal rank over the questions that have an answer."""
    found = collection(wanted.path)
    questions = wanted.some(found.answered)
    if not questions:
        raise InputError(f"no question in {wanted.path} has a document that answers it.")
    async with opened(found.corpus, wanted.collection, wanted) as subject:
        rows = await subject.each("retrieval", questions, lambda question: _look(subject, question))
        sizes: Figures = {"documents": subject.report.pages, "chunks": subject.report.chunks}
        known = set(await subject.sections(subject.edition.catalogue.all_chunk_ids()))
    columns = {name: scores(questions, [row[name] for row in rows]) for name in ("ours", *ALONE)}
    means = {name: averages(own) for name, own in columns.items()}
    sure = {name: intervals(own, seed=wanted.seed) for name, own in columns.items()}
    times = [row["milliseconds_to_find"] for row in rows]
    figures = {
        **sizes,
        "questions": len(questions),
        **means["ours"],
        **{name: means[name] for name in ALONE},
        **sections(questions, rows, known),
        "intervals": {**sure["ours"], **{name: sure[name] for name in ALONE}},
        "milliseconds": percentiles(times),
    }
    plots = [
        bars(title, {name: (means[name][figure], sure[name][figure]) for name in means})
        for figure, title in (("ndcg_at_10", "nDCG@10 by method"), ("recall_at_10", "recall@10 by method"))
    ]
    return Measured("retrieval", wanted.collection, figures, (*plots, spread("Time to find", times)))


async def _look(subject: Subject, question: Question) -> Row:
    """What a reader's question finds, and what it would find by its words or by its meaning alone."""
    started = time.perf_counter()
    found = await subject.found([question.text])
    ours = await subject.of(found)
    took = (time.perf_counter() - started) * 1000
    vector = await subject.book.embedder.query(question.text)
    look = subject.edition.store.candidates
    bm25 = await look(None, question.text, limit=DEPTH, filters=EVERYWHERE)
    dense = await look(vector, "", limit=DEPTH, filters=EVERYWHERE)
    return {
        "ours": ours,
        "sections": (await subject.sections([each.chunk_id for each in found]))[:10],
        "bm25": await subject.of(bm25),
        "dense": await subject.of(dense),
        "milliseconds_to_find": took,
    }


def sections(questions: Sequence[Question], rows: Sequence[Row], known: set[tuple[str, str]]) -> Figures:
    """How often the very section is found, where questions name one and the book has it under that name."""
    hits: list[tuple[bool, bool]] = []
    for question, row in zip(questions, rows, strict=True):
        right = known & {(document, str(question.given.get("anchor"))) for document in question.relevant}
        found = [tuple(section) for section in row["sections"]]
        if right:
            hits.append((bool(right & set(found[:5])), bool(right & set(found))))
    if not hits:
        return {}
    by_five, by_ten = (round(fmean(column), 4) for column in zip(*hits, strict=True))
    return {"sections": {"questions": len(hits), "hit_at_5": by_five, "hit_at_10": by_ten}}


def scores(questions: Sequence[Question], rankings: Sequence[Sequence[str]]) -> Columns:
    """The usual figures of a run, for each question."""
    pairs = [(question.relevant, ranking) for question, ranking in zip(questions, rankings, strict=True)]
    return {
        "ndcg_at_10": [ndcg(relevant, ranking) for relevant, ranking in pairs],
        "recall_at_5": [recall(relevant, ranking[:5]) for relevant, ranking in pairs],
        "recall_at_10": [recall(relevant, ranking[:10]) for relevant, ranking in pairs],
        "mrr": [reciprocal_rank(relevant, ranking) for relevant, ranking in pairs],
    }


def averages(columns: Mapping[str, Sequence[float]]) -> dict[str, float]:
    return {name: round(fmean(values), 4) for name, values in columns.items()}


def ndcg(relevant: Mapping[str, int], ranked: Sequence[str]) -> float:
    """Discounted cumulative gain of the first ten, as a part of the best possible."""
    best = sorted(relevant.values(), reverse=True)[:10]
    ideal = sum(grade / math.log2(place + 2) for place, grade in enumerate(best))
    gain = sum(relevant.get(document, 0) / math.log2(place + 2) for place, document in enumerate(ranked[:10]))
    return gain / ideal if ideal else 0.0


def recall(relevant: Mapping[str, int], ranked: Sequence[str]) -> float:
    return len(relevant.keys() & set(ranked)) / len(relevant)


def reciprocal_rank(relevant: Mapping[str, int], ranked: Sequence[str]) -> float:
    return next((1 / place for place, document in enumerate(ranked, start=1) if document in relevant), 0.0)
