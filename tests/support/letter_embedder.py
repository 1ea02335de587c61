"""An embedder for tests that need vectors, but no model."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

import numpy as np

from bythebook.embeddings import Identity, arriving

if TYPE_CHECKING:
    from bythebook.embeddings import Texts, Vector


class Letters:
    """Vectors from the letters of a text: near for texts alike, and nothing to load."""

    identity = Identity("letters", 26)

    def __init__(self) -> None:
        self.embedded = 0

    def count(self, text: str) -> int:
        return len(text.split())

    async def documents(self, texts: Texts) -> AsyncGenerator[Vector]:
        async for text in arriving(texts):
            self.embedded += 1
            yield await self.query(text)

    async def query(self, text: str) -> Vector:
        counts = np.array([1 + text.lower().count(chr(97 + index)) for index in range(26)], dtype=np.float32)
        vector: Vector = counts / np.linalg.norm(counts)
        return vector
