"""The retrieval suite: the quality of the ranking, with and without the reranker, and of BM25 and of vectors alone."""

import math
import time
from collections.abc import Mapping, Sequence
from statistics import fmean

from bythebook.errors import InputError
from bythebook.evals import EvalRequest, EvalResult, Metrics
from bythebook.evals.datasets import EvalQuestion, load_dataset
from bythebook.evals.metrics import mean_intervals, percentiles
from bythebook.evals.report import bar_chart, histogram
from bythebook.evals.runner import BookUnderTest, Row, open_dataset
from bythebook.index import NO_FILTERS
from bythebook.index.edge_store import MIN_RANKING_DEPTH

Columns = dict[str, list[float]]

OTHER_RANKINGS = ("hybrid", "bm25", "dense")
"""What readers get is compared with the ranking before the reranker, and with each half of that."""


async def measure(request: EvalRequest) -> EvalResult:
    """nDCG@10, recall and reciprocal rank over the questions with relevant documents."""
    dataset = load_dataset(request.path)
    questions = request.sample(dataset.answered)
    if not questions:
        raise InputError(f"no question in {request.path} has a document that answers it.")
    async with open_dataset(dataset.corpus, request.dataset, request) as subject:
        rows = await subject.run_questions("retrieval", questions, lambda question: _search(subject, question))
        sizes: Metrics = {"documents": subject.report.pages, "chunks": subject.report.chunks}
        known = set(await subject.sections_of(subject.snapshot.catalog.all_chunk_ids()))
    columns = {name: score_rankings(questions, [row[name] for row in rows]) for name in ("ours", *OTHER_RANKINGS)}
    means = {name: averages(own) for name, own in columns.items()}
    intervals = {name: mean_intervals(own, seed=request.seed) for name, own in columns.items()}
    times = [row["milliseconds_to_find"] for row in rows]
    metrics = {
        **sizes,
        "questions": len(questions),
        **means["ours"],
        **{name: means[name] for name in OTHER_RANKINGS},
        **section_hits(questions, rows, known),
        "intervals": {**intervals["ours"], **{name: intervals[name] for name in OTHER_RANKINGS}},
        "milliseconds": percentiles(times),
    }
    plots = [
        bar_chart(title, {name: (means[name][metric], intervals[name][metric]) for name in means})
        for metric, title in (("ndcg_at_10", "nDCG@10 by method"), ("recall_at_10", "recall@10 by method"))
    ]
    return EvalResult("retrieval", request.dataset, metrics, (*plots, histogram("Time to find", times)))


async def _search(subject: BookUnderTest, question: EvalQuestion) -> Row:
    """What readers get, what the hybrid search finds without the reranker, and what BM25 and vectors find alone."""
    started = time.perf_counter()
    found = await subject.search([question.text])
    ours = await subject.documents_of(found)
    took = (time.perf_counter() - started) * 1000
    vector = await subject.book.embedder.embed_query(question.text)
    look = subject.snapshot.store.search
    bm25 = await look(None, question.text, limit=MIN_RANKING_DEPTH, filters=NO_FILTERS)
    dense = await look(vector, "", limit=MIN_RANKING_DEPTH, filters=NO_FILTERS)
    return {
        "ours": ours,
        "sections": (await subject.sections_of(found))[:10],
        "hybrid": await subject.documents_of(await subject.search_hybrid([question.text])),
        "bm25": await subject.documents_of([each.chunk_id for each in bm25]),
        "dense": await subject.documents_of([each.chunk_id for each in dense]),
        "milliseconds_to_find": took,
    }


def section_hits(questions: Sequence[EvalQuestion], rows: Sequence[Row], known: set[tuple[str, str]]) -> Metrics:
    """The hit rate of sections, over the questions that name a section which the book contains."""
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


def score_rankings(questions: Sequence[EvalQuestion], rankings: Sequence[Sequence[str]]) -> Columns:
    """The standard metrics for each question."""
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
    """Normalised discounted cumulative gain of the first ten results."""
    best = sorted(relevant.values(), reverse=True)[:10]
    ideal = sum(grade / math.log2(place + 2) for place, grade in enumerate(best))
    gain = sum(relevant.get(document, 0) / math.log2(place + 2) for place, document in enumerate(ranked[:10]))
    return gain / ideal if ideal else 0.0


def recall(relevant: Mapping[str, int], ranked: Sequence[str]) -> float:
    return len(relevant.keys() & set(ranked)) / len(relevant)


def reciprocal_rank(relevant: Mapping[str, int], ranked: Sequence[str]) -> float:
    return next((1 / place for place, document in enumerate(ranked, start=1) if document in relevant), 0.0)
