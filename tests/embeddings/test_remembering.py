"""Vectors that are kept: the same ones, not made twice, and not for ever."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bythebook.embeddings import Identity, arriving
from bythebook.embeddings.cache import RememberingEmbedder

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from bythebook.embeddings import Texts, Vector


class Counting:
    """Gives each text its own length as a vector, and writes down what it was asked for."""

    identity = Identity("counting", 1)

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.questions: list[str] = []

    def count(self, text: str) -> int:
        return len(text)

    async def documents(self, texts: Texts) -> AsyncGenerator[Vector]:
        async for text in arriving(texts):
            self.asked.append(text)
            yield np.asarray([len(text)], dtype=np.float32)

    async def query(self, text: str) -> Vector:
        self.questions.append(text)
        return np.asarray([-len(text)], dtype=np.float32)


async def lengths(embedder: RememberingEmbedder, *texts: str) -> list[int]:
    return [int(vector[0]) async for vector in embedder.documents(texts)]


async def test_a_text_is_embedded_once_however_often_it_is_asked_for() -> None:
    inner = Counting()
    embedder = RememberingEmbedder(inner)
    assert await lengths(embedder, "lamp", "oil", "lamp") == [4, 3, 4]
    assert await lengths(embedder, "oil", "wicks") == [3, 5]
    assert inner.asked == ["lamp", "oil", "wicks"]


async def test_a_question_is_another_vector_than_a_text_of_the_same_words() -> None:
    embedder = RememberingEmbedder(Counting())
    assert await lengths(embedder, "lamp") == [4]
    assert int((await embedder.query("lamp"))[0]) == -4
    assert (embedder.identity, embedder.count("lamp")) == (Counting.identity, 4)


async def test_a_question_is_embedded_once() -> None:
    inner = Counting()
    embedder = RememberingEmbedder(inner)
    assert [int((await embedder.query(text))[0]) for text in ("lamp", "oil", "lamp")] == [-4, -3, -4]
    assert inner.questions == ["lamp", "oil"]


async def test_what_was_not_asked_for_longest_is_forgotten() -> None:
    inner = Counting()
    embedder = RememberingEmbedder(inner, most=2)
    await lengths(embedder, "a", "bb")
    await lengths(embedder, "a", "ccc")
    await lengths(embedder, "a", "bb")
    assert inner.asked == ["a", "bb", "ccc", "bb"]


async def test_more_texts_than_are_kept_still_have_their_vectors() -> None:
    assert await lengths(RememberingEmbedder(Counting(), most=1), "a", "bb", "ccc") == [1, 2, 3]
