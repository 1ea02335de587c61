"""Ranking: reorders candidates by how many other candidates come from the same page."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from bythebook.index import Candidate, sort_candidates

if TYPE_CHECKING:
    from collections.abc import Sequence

PAGE_EVIDENCE = 0.1
"""The weight of the scores of the third, fourth and fifth best chunk of a page, which are added to all its chunks.

Two chunks of a page are often found by chance. A page with more of them is about the subject.
"""


def rank(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Sort candidates by their score plus the evidence of their page. They must come best first."""
    pages = [page_key(candidate) for candidate in candidates]
    if len(pages) - len(set(pages)) < 2:
        # No page has three candidates.
        return list(candidates)
    by_page: dict[int, list[float]] = defaultdict(list)
    for page, (_, score) in zip(pages, candidates, strict=True):
        by_page[page].append(score)
    support = {page: PAGE_EVIDENCE * sum(scores[2:5]) for page, scores in by_page.items()}
    scored = zip(pages, candidates, strict=True)
    return sort_candidates(Candidate(key, score + support[page]) for page, (key, score) in scored)


def sum_rankings(rankings: Sequence[Sequence[Candidate]]) -> list[Candidate]:
    """Fuse several rankings: a chunk's score is the sum of its scores."""
    totals: dict[int, float] = defaultdict(float)
    for ranking in rankings:
        for key, score in ranking:
            totals[key] += score
    return sort_candidates(map(Candidate._make, totals.items()))


def page_key(candidate: Candidate) -> int:
    """The first half of a chunk id, which all chunks of a page share. A 64-bit integer id has no halves."""
    return candidate[0] >> 64 or candidate[0]
