"""The evidence check embeds only as many spans as the decision needs."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, cast

import pytest

from bythebook import Book
from bythebook.index import NO_FILTERS
from bythebook.retrieval.evidence import confidence, lexical_evidence, score_evidence, score_until_confident

if TYPE_CHECKING:
    from bythebook.embeddings import Embedder, Vector

Opened = Callable[..., AbstractAsyncContextManager[Book]]


class Counting:
    """An embedder that counts the texts it embeds."""

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner
        self.read = 0

    async def embed_documents(self, texts: Sequence[str]) -> AsyncGenerator[Vector]:
        self.read += len(texts)
        async for vector in self._inner.embed_documents(texts):
            yield vector


@pytest.mark.parametrize("question", ["How often does the fog horn sound?", "What is the boiling point of mercury?"])
async def test_stops_at_the_required_confidence_with_the_same_decision(opened: Opened, question: str) -> None:
    async with opened(None) as book, book.snapshot() as snapshot:
        counting = Counting(book.embedder)
        embedder = cast("Embedder", counting)
        retrieved = await book.retriever.retrieve(snapshot, question, top_k=5, filters=NO_FILTERS)
        least = confidence(lexical_evidence(snapshot, retrieved).features)
        whole = await score_evidence(snapshot, book.embedder, retrieved)
        assert (await score_until_confident(snapshot, embedder, retrieved, sure=least)).confidence == least
        assert counting.read == 0
        for sure in (least, (least + whole.confidence) / 2, whole.confidence, 1.0):
            found = await score_until_confident(snapshot, embedder, retrieved, sure=sure)
            assert (found.confidence >= sure) == (whole.confidence >= sure)
        counting.read = 0
        everything = await score_until_confident(snapshot, embedder, retrieved, sure=1.1)
        assert everything.features == whole.features
        assert counting.read == len(whole.spans)
