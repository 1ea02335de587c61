"""Texts one after the other, whether they are all there or still being made, and vectors as they come."""

from __future__ import annotations

from collections.abc import AsyncIterable
from contextlib import aclosing
from typing import TYPE_CHECKING

from bythebook.vectors import Unordered

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from bythebook.vectors import Embedder, Texts, Vector


async def arriving(texts: Texts) -> AsyncGenerator[str]:
    if isinstance(texts, AsyncIterable):
        async for text in texts:
            yield text
    else:
        for text in texts:
            yield text


async def as_they_come(embedder: Embedder, texts: Texts) -> AsyncGenerator[tuple[int, Vector]]:
    """The place of each text with its vector, as soon as the embedder has it."""
    if isinstance(embedder, Unordered):
        async with aclosing(embedder.as_they_come(texts)) as coming:
            async for placed in coming:
                yield placed
        return
    place = 0
    async with aclosing(embedder.documents(texts)) as vectors:
        async for vector in vectors:
            yield place, vector
            place += 1
