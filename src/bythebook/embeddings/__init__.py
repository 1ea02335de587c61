"""Embeddings: the `Embedder` port, and iteration over texts that may arrive while others are embedded."""

from collections.abc import AsyncGenerator, AsyncIterable, Iterable
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Vector: TypeAlias = "NDArray[np.float32]"
Texts: TypeAlias = Iterable[str] | AsyncIterable[str]


@dataclass(frozen=True, slots=True)
class EmbedderId:
    """Identifies a vector space. An index is only searched with the embedder id that it was built with."""

    model: str
    dimension: int


class Embedder(Protocol):
    """Turns text into unit vectors. The same text gives the same bits, independent of the batch."""

    @property
    def identity(self) -> EmbedderId: ...

    def count_tokens(self, text: str) -> int:
        """The number of the model's tokens in `text`, without the special tokens that the model adds."""
        ...

    def embed_documents(self, texts: Texts) -> AsyncGenerator[Vector]:
        """Yield one vector for each text, in order, each as soon as it is ready. Closing the generator stops the work.

        `texts` may be an async iterator: texts are embedded while later ones are still being produced.
        """
        ...

    async def embed_query(self, text: str) -> Vector: ...


@runtime_checkable
class UnorderedEmbedder(Protocol):
    """An embedder with several requests in flight, which can return each result as soon as it arrives."""

    def embed_in_any_order(self, texts: Texts) -> AsyncGenerator[tuple[int, Vector]]:
        """Yield the index of each text with its vector, in any order. On an error, results in flight come first."""
        ...


async def iterate_texts(texts: Texts) -> AsyncGenerator[str]:
    """Iterate over `texts`, whether it is a plain or an async iterable."""
    if isinstance(texts, AsyncIterable):
        async for text in texts:
            yield text
    else:
        for text in texts:
            yield text


async def embed_in_any_order(embedder: Embedder, texts: Texts) -> AsyncGenerator[tuple[int, Vector]]:
    """Yield the index of each text with its vector, as soon as the embedder has it."""
    if isinstance(embedder, UnorderedEmbedder):
        async with aclosing(embedder.embed_in_any_order(texts)) as results:
            async for result in results:
                yield result
        return
    index = 0
    async with aclosing(embedder.embed_documents(texts)) as vectors:
        async for vector in vectors:
            yield index, vector
            index += 1
