"""Retrieval results for tests without a book."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bythebook.index.terms import Bm25Terms, idf
from bythebook.retrieval import RetrievalResult


def found(*texts: str, titles: Sequence[str] = ("ROS 2 Basics", "Topics", "Isaac Sim")) -> list[RetrievalResult]:
    """One result for each text, on pages p1, p2 and so on."""
    return [
        RetrievalResult(
            chunk_id=f"chunk-{position}",
            document_id=f"page-{position}",
            text=text,
            score=0.8,
            position=position,
            url=f"https://book.example/docs/p{position}.html",
            title=title,
            chunk_index=0,
            token_count=40,
            heading_hierarchy=(title,),
            anchor="start",
        )
        for position, (text, title) in enumerate(zip(texts, titles, strict=False), start=1)
    ]


class TermWeights:
    """Term weights from a few passages, computed as for a book."""

    def __init__(self, results: Sequence[RetrievalResult]) -> None:
        self.bm25 = Bm25Terms(60.0)
        self._there = [self.bm25.terms(result.text) for result in results]

    def idf_weights(self, terms: Iterable[int]) -> dict[int, float]:
        return {term: idf(sum(term in there for there in self._there), total=1000) for term in terms}
