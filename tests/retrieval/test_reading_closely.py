"""How closely the passages are read before a model is asked: as closely as the decision takes, and no closer."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, cast

import pytest

from bythebook import Book
from bythebook.index import EVERYWHERE
from bythebook.retrieval.evidence import confidence, glance, weigh, weigh_until

if TYPE_CHECKING:
    from bythebook.embeddings import Embedder, Vector

Opened = Callable[..., AbstractAsyncContextManager[Book]]


class Counting:
    """An embedder that counts what it is given to read."""

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner
        self.read = 0

    async def documents(self, texts: Sequence[str]) -> AsyncGenerator[Vector]:
        self.read += len(texts)
        async for vector in self._inner.documents(texts):
            yield vector


@pytest.mark.parametrize("question", ["How often does the fog horn sound?", "What is the boiling point of mercury?"])
async def test_reading_stops_once_it_is_sure_and_never_decides_otherwise(opened: Opened, question: str) -> None:
    async with opened(None) as book, book.edition() as edition:
        counting = Counting(book.embedder)
        embedder = cast("Embedder", counting)
        retrieved = await book.retriever.retrieve(edition, question, top_k=5, filters=EVERYWHERE)
        least = confidence(glance(edition, retrieved).features)
        whole = await weigh(edition, book.embedder, retrieved)
        assert (await weigh_until(edition, embedder, retrieved, sure=least)).confidence == least
        assert counting.read == 0
        for sure in (least, (least + whole.confidence) / 2, whole.confidence, 1.0):
            found = await weigh_until(edition, embedder, retrieved, sure=sure)
            assert (found.confidence >= sure) == (whole.confidence >= sure)
        counting.read = 0
        everything = await weigh_until(edition, embedder, retrieved, sure=1.1)
        assert everything.features == whole.features
        assert counting.read == len(whole.units)
