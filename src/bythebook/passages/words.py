"""Words: how text is cut into terms and weighed, the same for the index, the evidence and the answer."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

from qdrant_edge import Bm25, Bm25Config

from bythebook.passages.spelling import with_spellings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from qdrant_edge import SparseVector

SATURATION = 1.2
LENGTH_WEIGHT = 0.75

_STEPS_PER_DOUBLING = 4
_REMEMBERED = 1024
"""How many texts are remembered with their terms: the passages that answer one question answer others too."""


class Words:
    """The engine's own BM25 terms: stemmed, without stop words, as numbers. A name counts in all its spellings."""

    def __init__(self, average_length: float) -> None:
        config = Bm25Config(k=SATURATION, b=LENGTH_WEIGHT, avg_len=average_length, language="english")
        self._bm25 = Bm25(config)
        # Without length normalisation a weight depends on the frequency alone, and gives it back.
        self._frequencies = Bm25(Bm25Config(k=SATURATION, b=0.0, language="english"))
        self.average_length = average_length
        self._terms = lru_cache(_REMEMBERED)(self._cut)
        self._weights = lru_cache(_REMEMBERED)(self._weighed)

    def document(self, text: str) -> SparseVector:
        return self._bm25.embed_document(with_spellings(text))

    def query(self, text: str) -> SparseVector:
        return self._bm25.embed_query(with_spellings(text))

    def terms(self, text: str) -> frozenset[int]:
        """The distinct terms of `text`."""
        return self._terms(text)

    def _cut(self, text: str) -> frozenset[int]:
        return frozenset(self.query(text).indices)

    def frequencies(self, text: str) -> dict[int, int]:
        """Each term of `text` with how often it stands there."""
        sparse = self._frequencies.embed_document(with_spellings(text))
        counts = (round(value * SATURATION / (SATURATION + 1 - value)) for value in sparse.values)
        return dict(zip(sparse.indices, counts, strict=True))

    def length(self, text: str) -> int:
        """How many terms `text` has, each counted as often as it stands there."""
        return sum(self.frequencies(text).values())

    def weights(self, text: str) -> Mapping[int, float]:
        """Each term of `text` with how much its frequency counts, from 0 to `SATURATION + 1`."""
        return self._weights(text)

    def _weighed(self, text: str) -> Mapping[int, float]:
        sparse = self.document(text)
        return dict(zip(sparse.indices, sparse.values, strict=True))


def rarity(count: int, *, total: int) -> float:
    """How much a term says that stands in `count` of `total` chunks (BM25's idf)."""
    return math.log(1 + (total - count + 0.5) / (count + 0.5))


def share(wanted: Mapping[int, float], found: Iterable[int]) -> float:
    """The part of the wanted weight that is found, from 0 to 1."""
    total = sum(wanted.values())
    return sum(wanted.get(term, 0.0) for term in set(found)) / total if total else 0.0


def stepped(length: float) -> float:
    """`length` rounded to one of a few steps.

    The average length of a book's chunks goes into the weight of every word of every chunk. Rounding it keeps an
    edit of one page from changing the others.
    """
    steps = round(math.log2(max(length, 8.0)) * _STEPS_PER_DOUBLING)
    return round(2 ** (steps / _STEPS_PER_DOUBLING), 3)
