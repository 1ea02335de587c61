"""How well unanswered questions come together by topic: whether a group's questions are of one article."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from bythebook.errors import InputError
from bythebook.evals import Measured
from bythebook.evals.datasets import collection
from bythebook.evals.runner import opened
from bythebook.feedback.gaps import groups, similarities

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from bythebook.embeddings import Embedder
    from bythebook.evals import Figures, Wanted
    from bythebook.index.provider import Edition
    from bythebook.telemetry import Progress


async def measure(wanted: Wanted) -> Measured:
    """The questions of a collection that nobody can answer, grouped as `bythebook gaps` groups a book's."""
    found = collection(wanted.path)
    asked = [question.given for question in found.impossible if question.given.get("context_id")]
    if not asked:
        raise InputError(f"no question in {wanted.path} is_impossible and has a context_id that names its article.")
    async with opened(found.corpus, wanted.collection, wanted) as subject:
        figures = await grouped(subject.edition, subject.book.embedder, wanted.some(asked), progress=wanted.progress)
    return Measured("gaps", wanted.collection, figures)


async def grouped(
    edition: Edition, embedder: Embedder, questions: Sequence[Mapping[str, str]], *, progress: Progress
) -> Figures:
    """What the groups are like. Alone, a question is pure: so how many are is told beside it."""
    vectors = []
    for number, question in enumerate(questions, start=1):
        vectors.append(await embedder.query(question["text"]))
        progress("embedding", number, len(questions))
    terms = [edition.rarities(edition.words.terms(question["text"])) for question in questions]
    found = groups(similarities(vectors, terms))
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
    """The part of the questions that are of what most of their group is of."""
    total = sum(map(len, found))
    return round(sum(max(Counter(map(of, group)).values()) for group in found) / total, 3) if total else 0.0
