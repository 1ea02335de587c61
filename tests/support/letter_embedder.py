"""An embedder for tests that need vectors, but no model."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

import numpy as np

from bythebook.embeddings import EmbedderId, iterate_texts

if TYPE_CHECKING:
    from bythebook.embeddings import Texts, Vector


class LetterEmbedder:
    """Embeds a text by its letters: similar texts have similar vectors, and no model is loaded."""

    identity = EmbedderId("letters", 26)

    def __init__(self) -> None:
        self.embedded = 0

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    async def embed_documents(self, texts: Texts) -> AsyncGenerator[Vector]:
        async for text in iterate_texts(texts):
            self.embedded += 1
            yield await self.embed_query(text)

    async def embed_query(self, text: str) -> Vector:
        counts = np.array([1 + text.lower().count(chr(97 + index)) for index in range(26)], dtype=np.float32)
        vector: Vector = counts / np.linalg.norm(counts)
        return vector
