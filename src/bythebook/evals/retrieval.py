"""How well the right documents are found, and how well each of the two rankings alone would find them."""

from __future__ import annotations

import math
from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING

from bythebook.evals.corpus import document_of
from bythebook.passages import EVERYWHERE
from bythebook.passages.edge import DEPTH
from bythebook.passages.ranking import rank
from bythebook.passages.retriever import CANDIDATES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bythebook.evals.corpus import Question
    from bythebook.ingest import Progress
    from bythebook.passages import Candidate
    from bythebook.passages.shelf import Edition
    from bythebook.vectors import Embedder

    Ranked = dict[str, list[str]]


async def measure(
    edition: Edition, embedder: Embedder, questions: Sequence[Question], *, progress: Progress
) -> dict[str, object]:
    """nDCG@10, recall and reciprocal rank over the questions that have an answer."""
    asked = [question for question in questions if question.relevant]
    runs: dict[str, Ranked] = {"ours": {}, "bm25": {}, "dense": {}}
    for done, question in enumerate(asked, start=1):
        vector = await embedder.query(question.text)
        look = partial(edition.store.candidates, filters=EVERYWHERE)
        found = {
            "ours": rank(await look(vector, question.text, limit=CANDIDATES)),
            "bm25": await look(None, question.text, limit=DEPTH),
            "dense": await look(vector, "", limit=DEPTH),
        }
        for name, candidates in found.items():
            runs[name][question.id] = await _documents(edition, candidates)
        progress("asking", done, len(asked))
    figures = {name: score(asked, run) for name, run in runs.items()}
    return {"questions": len(asked), **figures["ours"], "bm25": figures["bm25"], "dense": figures["dense"]}


async def _documents(edition: Edition, ranked: Sequence[Candidate]) -> list[str]:
    """The documents of the ranked chunks, each once, best first."""
    ids = [candidate.chunk_id for candidate in ranked]
    passages = await edition.store.fetch(ids)
    return list(dict.fromkeys(document_of(passages[chunk_id].chunk.url) for chunk_id in ids))


def score(questions: Sequence[Question], run: Ranked) -> dict[str, float]:
    """The usual figures of a run, each the mean over the questions."""
    pairs = [(question.relevant, run[question.id]) for question in questions]
    return {
        "ndcg_at_10": round(fmean(ndcg(relevant, ranked) for relevant, ranked in pairs), 4),
        "recall_at_5": round(fmean(recall(relevant, ranked[:5]) for relevant, ranked in pairs), 4),
        "recall_at_10": round(fmean(recall(relevant, ranked[:10]) for relevant, ranked in pairs), 4),
        "mrr": round(fmean(reciprocal_rank(relevant, ranked) for relevant, ranked in pairs), 4),
    }


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
