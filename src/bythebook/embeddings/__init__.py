"""Vectors: text as numbers, so that a question and the passage that answers it come out close together.

Texts one after the other, whether they are all there or still being made, and vectors as they come.
"""

from __future__ import annotations

from collections.abc import AsyncIterable
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable

    import numpy as np
    from numpy.typing import NDArray

    Vector: TypeAlias = NDArray[np.float32]
    Texts: TypeAlias = Iterable[str] | AsyncIterable[str]


@dataclass(frozen=True, slots=True)
class Identity:
    """Which vectors these are. An index made with one identity is never searched with another."""

    model: str
    dimension: int


class Embedder(Protocol):
    """Turns text into unit vectors. The same text gives the same bits, whatever stands beside it."""

    @property
    def identity(self) -> Identity: ...

    def count(self, text: str) -> int:
        """How many of the model's own tokens `text` is, without the ones the model adds itself."""
        ...

    def documents(self, texts: Texts) -> AsyncGenerator[Vector]:
        """One vector for each text, in order, each as soon as it is ready. Closing it stops the work.

        The texts may still be in the making: those that are there are embedded meanwhile.
        """
        ...

    async def query(self, text: str) -> Vector: ...


@runtime_checkable
class Unordered(Protocol):
    """An embedder that has several requests under way, and can hand over each as soon as it is answered."""

    def as_they_come(self, texts: Texts) -> AsyncGenerator[tuple[int, Vector]]:
        """The place of each text, from 0, with its vector, in any order. What was begun comes before an error."""
        ...


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
