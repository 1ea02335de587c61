"""Passages that the reader has selected: marked text, or a source of an earlier answer. They come first."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bythebook.retrieval import RetrievalResult
from bythebook.retrieval.retriever import to_result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bythebook.index.provider import IndexSnapshot
    from bythebook.retrieval.retriever import Retrieval

URL = "selection:"
TITLE = "Selected text"


def selection_result(text: str, *, tokens: int, near: Sequence[RetrievalResult]) -> RetrievalResult:
    """The marked text as a result. Its source is the page of `near` that contains it, or "Selected text"."""
    page = next((result for result in near if " ".join(text.split()) in " ".join(result.text.split())), None)
    return RetrievalResult(
        chunk_id="selection",
        document_id=page.document_id if page else "selection",
        text=text,
        score=1.0,
        position=1,
        url=page.url if page else URL,
        title=page.title if page else TITLE,
        chunk_index=0,
        token_count=max(tokens, 1),
        heading_hierarchy=page.heading_hierarchy if page else (TITLE,),
        anchor=page.anchor if page else "",
        rerank_score=max((result.rerank_score for result in near), default=1.0),
    )


async def pin_chunk(snapshot: IndexSnapshot, chunk_id: str, retrieval: Retrieval) -> Retrieval:
    """Put this chunk first and the results of its section second, if the book still has the chunk."""
    results = retrieval.context.results
    passage = (await snapshot.store.fetch([chunk_id])).get(chunk_id)
    if passage is None:
        return retrieval
    best = max((result.rerank_score for result in results), default=1.0)
    pinned = to_result(passage.chunk, position=1, score=float(passage.vector @ retrieval.vector), rerank_score=best)
    others = [result for result in results if result.chunk_id != chunk_id]
    others.sort(key=lambda result: _section(result) != _section(pinned))
    kept = others[: max(len(results) - 1, 0)]
    reordered = (pinned, *(replace(result, position=place) for place, result in enumerate(kept, start=2)))
    return replace(retrieval, context=replace(retrieval.context, results=reordered))


def _section(result: RetrievalResult) -> tuple[str, tuple[str, ...]]:
    return result.document_id, result.heading_hierarchy
