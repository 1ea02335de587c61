"""Selected text: what a reader has marked on a page, as a passage of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bythebook.passages import RetrievalResult

if TYPE_CHECKING:
    from collections.abc import Sequence

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
