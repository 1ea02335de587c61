"""Do the questions of a topic cluster belong to the same article? python -m bench.gap_topics COLLECTION [LIMIT]

COLLECTION is a folder with unanswerable questions that have a `context_id`, such as SQuAD 2. They are clustered as
`bythebook gaps` does.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bythebook.embeddings import Embedder
from bythebook.errors import InputError
from bythebook.evals import EvalRequest, Metrics
from bythebook.evals.datasets import load_dataset
from bythebook.evals.runner import open_dataset
from bythebook.feedback.gaps import cluster, compute_similarities
from bythebook.index.provider import IndexSnapshot
from bythebook.settings import Settings
from bythebook.telemetry import Progress


async def measure(request: EvalRequest) -> Metrics:
    """Cluster the unanswerable questions of a dataset as `bythebook gaps` does."""
    dataset = load_dataset(request.path)
    asked = [question.given for question in dataset.impossible if question.given.get("context_id")]
    if not asked:
        raise InputError(f"no question in {request.path} is_impossible and has a context_id that names its article.")
    async with open_dataset(dataset.corpus, request.dataset, request) as subject:
        questions = request.sample(asked)
        return await group_questions(subject.snapshot, subject.book.embedder, questions, progress=request.progress)


async def group_questions(
    snapshot: IndexSnapshot, embedder: Embedder, questions: Sequence[Mapping[str, str]], *, progress: Progress
) -> Metrics:
    """The number and purity of the clusters. Single questions are always pure, so their fraction is included."""
    vectors = []
    for number, question in enumerate(questions, start=1):
        vectors.append(await embedder.embed_query(question["text"]))
        progress("embedding", number, len(questions))
    terms = [snapshot.idf_weights(snapshot.bm25.terms(question["text"])) for question in questions]
    found = cluster(compute_similarities(vectors, terms))
    together = [group for group in found if len(group) > 1]
    paragraphs = [question["context_id"] for question in questions]
    articles = [paragraph.partition("#")[0] for paragraph in paragraphs]
    return {
        "questions": len(questions),
        "groups": len(found),
        "alone": round((len(found) - len(together)) / len(questions), 3),
        "purity_by_article": _purity(found, articles.__getitem__),
        "purity_by_paragraph": _purity(found, paragraphs.__getitem__),
        "purity_by_article_together": _purity(together, articles.__getitem__),
    }


def _purity(found: Sequence[Sequence[int]], of: Callable[[int], str]) -> float:
    """The fraction of questions that have the most frequent label of their cluster."""
    total = sum(map(len, found))
    return round(sum(max(Counter(map(of, group)).values()) for group in found) / total, 3) if total else 0.0


def main(folder: Path, limit: int = sys.maxsize) -> None:
    request = EvalRequest(folder, Settings.load(), lambda *_: None, limit=limit)
    print(json.dumps(asyncio.run(measure(request)), indent=2))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:3]))
