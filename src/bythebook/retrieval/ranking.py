"""Ranking: candidates put in order by what else of their page was found."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from bythebook.index import Candidate, best_first

if TYPE_CHECKING:
    from collections.abc import Sequence

PAGE_EVIDENCE = 0.1
"""How much a chunk gains from the third, fourth and fifth best chunk of its page.

Two chunks of a page are often found by chance. A page of which more was found is about the subject.
"""


def rank(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Put candidates, best first, into the order that what else of their page was found gives them."""
    pages = [page_of(candidate) for candidate in candidates]
    if len(pages) - len(set(pages)) < 2:
        # No page has three.
        return list(candidates)
    by_page: dict[int, list[float]] = defaultdict(list)
    for page, (_, score) in zip(pages, candidates, strict=True):
        by_page[page].append(score)
    support = {page: PAGE_EVIDENCE * sum(scores[2:5]) for page, scores in by_page.items()}
    scored = zip(pages, candidates, strict=True)
    return best_first(Candidate(key, score + support[page]) for page, (key, score) in scored)


def added(rankings: Sequence[Sequence[Candidate]]) -> list[Candidate]:
    """Several rankings made into one: the scores a chunk has in each, added up."""
    totals: dict[int, float] = defaultdict(float)
    for ranking in rankings:
        for key, score in ranking:
            totals[key] += score
    return best_first(map(Candidate._make, totals.items()))


def page_of(candidate: Candidate) -> int:
    """The half of a chunk's id that all chunks of its page share. A short number is no half of anything."""
    return candidate[0] >> 64 or candidate[0]
