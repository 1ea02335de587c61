"""Ranking: two lists of candidates made into one order."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bythebook.passages import Candidate

PAGE_EVIDENCE = 0.1
"""How much a chunk gains from the third, fourth and fifth best chunk of its page.

Two chunks of a page are often found by chance. A page of which more was found is about the subject.
"""


def rank(candidates: Sequence[Candidate]) -> list[tuple[str, float]]:
    """Order the candidates by both scores and by what else of their page was found: chunk id and score, best first."""
    fused = _fused(candidates)
    by_page: dict[str, list[float]] = defaultdict(list)
    for chunk_id, score in fused.items():
        by_page[page_of(chunk_id)].append(score)
    support = {page: _support(scores) for page, scores in by_page.items() if len(scores) > 2}
    scored = [(chunk_id, score + support.get(page_of(chunk_id), 0.0)) for chunk_id, score in fused.items()]
    return sorted(scored, key=lambda entry: (-entry[1], entry[0]))


def _support(scores: list[float]) -> float:
    return PAGE_EVIDENCE * sum(sorted(scores, reverse=True)[2:5])


def added(rankings: Sequence[Sequence[tuple[str, float]]]) -> list[tuple[str, float]]:
    """Several rankings made into one: the scores a chunk has in each, added up."""
    totals: dict[str, float] = defaultdict(float)
    for ranking in rankings:
        for chunk_id, score in ranking:
            totals[chunk_id] += score
    return sorted(totals.items(), key=lambda entry: (-entry[1], entry[0]))


def page_of(chunk_id: str) -> str:
    """The half of a chunk's id that all chunks of its page share."""
    return chunk_id[:18]


def _fused(candidates: Sequence[Candidate]) -> dict[str, float]:
    """Distribution-based fusion: each side's scores on the scale of its own mean and spread, added up."""
    fused: dict[str, float] = {}
    by_meaning = {c.chunk_id: c.cosine for c in candidates if c.cosine is not None}
    by_words = {c.chunk_id: c.bm25 for c in candidates if c.bm25 is not None}
    for raw in (by_meaning, by_words):
        for chunk_id, score in _normalised(raw).items():
            fused[chunk_id] = fused.get(chunk_id, 0.0) + score
    return fused


def _normalised(scores: dict[str, float]) -> dict[str, float]:
    """Three standard deviations below the mean become 0, three above become 1."""
    if len(scores) < 2:
        return dict.fromkeys(scores, 0.5)
    mean = math.fsum(scores.values()) / len(scores)
    spread = math.sqrt(math.fsum((score - mean) ** 2 for score in scores.values()) / (len(scores) - 1))
    if spread == 0:
        return dict.fromkeys(scores, 0.5)
    low = mean - 3 * spread
    return {chunk_id: (score - low) / (6 * spread) for chunk_id, score in scores.items()}
