"""How often the sentences of an answer without a model contain what a person marked as the answer."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

from bythebook.answers.extractive import cite, extract
from bythebook.passages import EVERYWHERE
from bythebook.passages.evidence import weigh

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bythebook.evals.corpus import Question
    from bythebook.ingest import Progress
    from bythebook.passages import Citation
    from bythebook.passages.retriever import Retriever
    from bythebook.passages.shelf import Edition
    from bythebook.vectors import Embedder

_PASSAGES = 5


async def measure(
    edition: Edition, embedder: Embedder, retriever: Retriever, questions: Sequence[Question], *, progress: Progress
) -> dict[str, object]:
    """Hits among the best ranked sentences, and in what a reader is told; each question is answered, covered or not.

    An answer puts the sentences of a passage in the passage's order, so what is told first need not rank first.
    """
    hits: dict[str, list[bool]] = {name: [] for name in ("hit_at_1", "hit_at_2", "hit_at_3", "told_first", "told")}
    exact: list[bool] = []
    for done, question in enumerate(questions, start=1):
        found = await retriever.retrieve(edition, question.text, top_k=_PASSAGES, filters=EVERYWHERE)
        units = (await weigh(edition, embedder, found)).units
        ranked = [entry.text for entry in units]
        quotes = extract(units, edition.words)
        _, citations = cite(quotes)
        told = [quote.text for quote in quotes]
        texts = (ranked[:1], ranked[:2], ranked[:3], told[:1], told)
        for seen, said in zip(hits.values(), texts, strict=True):
            seen.append(contains(said, question.given["answers"]))
        exact.extend([await stands(edition, citation) for citation in citations])
        progress("asking", done, len(questions))
    shares = {name: round(fmean(seen), 4) for name, seen in hits.items()}
    return {"questions": len(questions), **shares, "quotes": len(exact), "quotes_exact": round(fmean(exact), 4)}


def contains(texts: Sequence[str], answers: Sequence[str]) -> bool:
    """Whether one of the answers stands in one of the texts; case and spacing do not matter."""
    plain = [_plain(text) for text in texts]
    return any(_plain(answer) in text for text in plain for answer in answers)


async def stands(edition: Edition, citation: Citation) -> bool:
    """Whether the quote stands at its offsets, in its chunk and in its page."""
    passage = (await edition.store.fetch([citation.chunk_id])).get(citation.chunk_id)
    page = edition.catalogue.page(passage.chunk.url) if passage else None
    if passage is None or page is None:
        return False
    start, end = (passage.chunk.start + offset for offset in (citation.start, citation.end))
    return passage.chunk.text[citation.start : citation.end] == citation.quote == page.text[start:end]


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
