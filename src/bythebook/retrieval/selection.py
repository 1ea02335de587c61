"""What a reader points at: text marked on a page, or a source of an earlier answer. It comes before what is found."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bythebook.retrieval import RetrievalResult
from bythebook.retrieval.retriever import result_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bythebook.index.provider import Edition
    from bythebook.retrieval.retriever import Retrieved

URL = "selection:"
TITLE = "Selected text"


def selected(text: str, *, tokens: int, near: Sequence[RetrievalResult]) -> RetrievalResult:
    """The marked text as the first passage: as part of the page it was found on, or as what it is, a selection."""
    home = next((result for result in near if " ".join(text.split()) in " ".join(result.text.split())), None)
    return RetrievalResult(
        chunk_id="selection",
        document_id=home.document_id if home else "selection",
        text=text,
        score=1.0,
        position=1,
        url=home.url if home else URL,
        title=home.title if home else TITLE,
        chunk_index=0,
        token_count=max(tokens, 1),
        heading_hierarchy=home.heading_hierarchy if home else (TITLE,),
        anchor=home.anchor if home else "",
        rerank_score=max((result.rerank_score for result in near), default=1.0),
    )


async def put_first(edition: Edition, chunk_id: str, retrieved: Retrieved) -> Retrieved:
    """What was found, with this chunk at its head and then the others of its section, if the book still has it."""
    found = retrieved.context.results
    passage = (await edition.store.fetch([chunk_id])).get(chunk_id)
    if passage is None:
        return retrieved
    best = max((result.rerank_score for result in found), default=1.0)
    head = result_of(passage.chunk, position=1, score=float(passage.vector @ retrieved.vector), rerank_score=best)
    others = [result for result in found if result.chunk_id != chunk_id]
    others.sort(key=lambda result: _section(result) != _section(head))
    kept = others[: max(len(found) - 1, 0)]
    placed = (head, *(replace(result, position=place) for place, result in enumerate(kept, start=2)))
    return replace(retrieved, context=replace(retrieved.context, results=placed))


def _section(result: RetrievalResult) -> tuple[str, tuple[str, ...]]:
    return result.document_id, result.heading_hierarchy
