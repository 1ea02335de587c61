"""Vectors that were asked for before. Readers ask different questions, but the same passages answer them."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from bythebook.embeddings import arriving

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from bythebook.embeddings import Embedder, Identity, Texts, Vector

MOST = 2048
"""How many vectors are kept: some 3 MB of them."""

MOST_QUESTIONS = 256
"""How many of questions: most are asked by one reader, once, and needed for no longer than their answer takes."""


class RememberingEmbedder:
    """An embedder that does not embed again what it knows. The same text gives the same bits, so it need not."""

    def __init__(self, embedder: Embedder, *, most: int = MOST) -> None:
        self._embedder = embedder
        self._most = most
        self._known: OrderedDict[str, Vector] = OrderedDict()
        self._questions: OrderedDict[str, Vector] = OrderedDict()

    @property
    def identity(self) -> Identity:
        return self._embedder.identity

    def count(self, text: str) -> int:
        return self._embedder.count(text)

    async def query(self, text: str) -> Vector:
        vector = self._questions.get(text)
        if vector is None:
            vector = await self._embedder.query(text)
        self._keep(self._questions, {text: vector}, most=MOST_QUESTIONS)
        return vector

    async def documents(self, texts: Texts) -> AsyncGenerator[Vector]:
        wanted = [text async for text in arriving(texts)]
        found = {text: self._known[text] for text in wanted if text in self._known}
        missing = [text for text in dict.fromkeys(wanted) if text not in found]
        fresh = zip(missing, [vector async for vector in self._embedder.documents(missing)], strict=True)
        found.update(fresh)
        self._keep(self._known, found, most=self._most)
        for text in wanted:
            yield found[text]

    def _keep(self, known: OrderedDict[str, Vector], found: Mapping[str, Vector], *, most: int) -> None:
        for text, vector in found.items():
            known[text] = vector
            known.move_to_end(text)
        while len(known) > most:
            known.popitem(last=False)
