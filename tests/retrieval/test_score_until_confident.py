"""The evidence check reads or embeds only as many spans as the decision needs."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import pytest

from bythebook import Book
from bythebook.index import NO_FILTERS
from bythebook.retrieval.evidence import Evidence, lexical_evidence, score_evidence
from bythebook.retrieval.retriever import Retriever

if TYPE_CHECKING:
    from bythebook.embeddings import Embedder, Vector
    from bythebook.models.cross_encoder import CrossEncoder

Opened = Callable[..., AbstractAsyncContextManager[Book]]


class CountingEmbedder:
    """An embedder that counts the texts it embeds."""

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner
        self.read = 0

    async def embed_documents(self, texts: Sequence[str]) -> AsyncGenerator[Vector]:
        self.read += len(texts)
        async for vector in self._inner.embed_documents(texts):
            yield vector

    async def embed_query(self, text: str) -> Vector:
        return await self._inner.embed_query(text)


class CountingReranker:
    """A cross-encoder that counts the pairs it reads."""

    def __init__(self, inner: CrossEncoder) -> None:
        self._inner = inner
        self.read = 0

    async def score(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        self.read += len(pairs)
        return await self._inner.score(pairs)


@pytest.mark.parametrize("reranked", [True, False], ids=["read", "embedded"])
@pytest.mark.parametrize("question", ["How often does the fog horn sound?", "What is the boiling point of mercury?"])
async def test_stops_at_the_required_confidence_with_the_same_decision(
    opened: Opened, question: str, reranked: bool
) -> None:
    async with opened(None) as book, book.snapshot() as snapshot:
        embedder = CountingEmbedder(book.embedder)
        retriever = book.retriever if reranked else Retriever(book.embedder)
        retrieved = await retriever.retrieve(snapshot, question, top_k=5, filters=NO_FILTERS)
        whole = await score_evidence(snapshot, book.embedder, retrieved)
        counting: CountingEmbedder | CountingReranker = embedder
        assert (retrieved.reading is not None) == reranked
        if retrieved.reading:
            counting = CountingReranker(retrieved.reading.model)
            reading = replace(retrieved.reading, model=cast("CrossEncoder", counting))
            retrieved = replace(retrieved, reading=reading)

        async def score(sure: float) -> Evidence:
            return await score_evidence(snapshot, cast("Embedder", embedder), retrieved, sure=sure)

        first = await score(0.0)
        assert counting.read == min(4, len(whole.spans))
        assert first.features != lexical_evidence(snapshot, retrieved).features
        for sure in (0.0, first.confidence / 2, whole.confidence, 1.0):
            assert ((await score(sure)).confidence >= sure) == (whole.confidence >= sure)
        counting.read = 0
        everything = await score(1.1)
        assert everything.features == whole.features
        assert counting.read == len(whole.spans)
