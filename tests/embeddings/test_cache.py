"""The vector cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bythebook.embeddings import EmbedderId, iterate_texts
from bythebook.embeddings.cache import CachedEmbedder

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from bythebook.embeddings import Texts, Vector


class Counting:
    """Returns the length of a text as its vector, and records all calls."""

    identity = EmbedderId("counting", 1)

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.questions: list[str] = []

    def count_tokens(self, text: str) -> int:
        return len(text)

    async def embed_documents(self, texts: Texts) -> AsyncGenerator[Vector]:
        async for text in iterate_texts(texts):
            self.asked.append(text)
            yield np.asarray([len(text)], dtype=np.float32)

    async def embed_query(self, text: str) -> Vector:
        self.questions.append(text)
        return np.asarray([-len(text)], dtype=np.float32)


async def lengths(embedder: CachedEmbedder, *texts: str) -> list[int]:
    return [int(vector[0]) async for vector in embedder.embed_documents(texts)]


async def test_embeds_each_text_once() -> None:
    inner = Counting()
    embedder = CachedEmbedder(inner)
    assert await lengths(embedder, "lamp", "oil", "lamp") == [4, 3, 4]
    assert await lengths(embedder, "oil", "wicks") == [3, 5]
    assert inner.asked == ["lamp", "oil", "wicks"]


async def test_queries_and_documents_are_cached_separately() -> None:
    embedder = CachedEmbedder(Counting())
    assert await lengths(embedder, "lamp") == [4]
    assert int((await embedder.embed_query("lamp"))[0]) == -4
    assert (embedder.identity, embedder.count_tokens("lamp")) == (Counting.identity, 4)


async def test_embeds_each_query_once() -> None:
    inner = Counting()
    embedder = CachedEmbedder(inner)
    assert [int((await embedder.embed_query(text))[0]) for text in ("lamp", "oil", "lamp")] == [-4, -3, -4]
    assert inner.questions == ["lamp", "oil"]


async def test_evicts_the_least_recently_used_vector() -> None:
    inner = Counting()
    embedder = CachedEmbedder(inner, max_documents=2)
    await lengths(embedder, "a", "bb")
    await lengths(embedder, "a", "ccc")
    await lengths(embedder, "a", "bb")
    assert inner.asked == ["a", "bb", "ccc", "bb"]


async def test_returns_more_vectors_than_the_cache_holds() -> None:
    assert await lengths(CachedEmbedder(Counting(), max_documents=1), "a", "bb", "ccc") == [1, 2, 3]
