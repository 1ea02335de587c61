"""How well the right documents are found, and how well each ranking alone would find them."""

from __future__ import annotations

import math
from statistics import fmean
from typing import TYPE_CHECKING

from bythebook.evals.corpus import document_of
from bythebook.passages import Candidate, Filters
from bythebook.passages.ranking import page_of, rank
from bythebook.passages.retriever import CANDIDATES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bythebook.evals.bench import Bench
    from bythebook.evals.corpus import Question

_DEPTH = 60


async def measure(bench: Bench, questions: Sequence[Question]) -> dict[str, object]:
    """nDCG@10, recall and MRR over the questions that have an answer."""
    asked = [question for question in questions if question.relevant]
    runs: dict[str, list[list[str]]] = {"ours": [], "bm25": [], "dense": []}
    async with bench.shelf.edition() as edition:
        for question in asked:
            found = await bench.retriever.retrieve(edition, question.text, top_k=_DEPTH, filters=Filters())
            runs["ours"].append(_documents([result.url for result in found.context.results]))
            candidates = await edition.store.candidates(
                found.vector, question.text, limit=CANDIDATES, filters=Filters()
            )
            for name, side in (("bm25", "bm25"), ("dense", "cosine")):
                runs[name].append(await _alone(bench, candidates, side))
    figures = {name: score(asked, ranked) for name, ranked in runs.items()}
    return {"questions": len(asked), **figures["ours"], "bm25": figures["bm25"], "dense": figures["dense"]}
