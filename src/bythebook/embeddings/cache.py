"""An LRU cache of vectors. Different questions are often answered by the same passages."""

from collections import OrderedDict
from collections.abc import AsyncGenerator, Mapping

from bythebook.embeddings import Embedder, EmbedderId, Texts, Vector, iterate_texts

MAX_DOCUMENTS = 2048
"""Document vectors in the cache: about 3 MB."""

MAX_QUERIES = 256
"""Query vectors in the cache. Most questions are asked once, so their vectors are only needed for one answer."""


class CachedEmbedder:
    """Returns vectors from a cache and asks the wrapped embedder for the rest. Vectors are deterministic, so cached
    ones are as good as new ones."""

    def __init__(self, embedder: Embedder, *, max_documents: int = MAX_DOCUMENTS) -> None:
        self._embedder = embedder
        self._max_documents = max_documents
        self._documents: OrderedDict[str, Vector] = OrderedDict()
        self._queries: OrderedDict[str, Vector] = OrderedDict()

    @property
    def identity(self) -> EmbedderId:
        return self._embedder.identity

    def count_tokens(self, text: str) -> int:
        return self._embedder.count_tokens(text)

    async def embed_query(self, text: str) -> Vector:
        vector = self._queries.get(text)
        if vector is None:
            vector = await self._embedder.embed_query(text)
        _store(self._queries, {text: vector}, max_size=MAX_QUERIES)
        return vector

    async def embed_documents(self, texts: Texts) -> AsyncGenerator[Vector]:
        wanted = [text async for text in iterate_texts(texts)]
        found = {text: self._documents[text] for text in wanted if text in self._documents}
        missing = [text for text in dict.fromkeys(wanted) if text not in found]
        found.update(zip(missing, [vector async for vector in self._embedder.embed_documents(missing)], strict=True))
        _store(self._documents, found, max_size=self._max_documents)
        for text in wanted:
            yield found[text]


def _store(cache: OrderedDict[str, Vector], vectors: Mapping[str, Vector], *, max_size: int) -> None:
    for text, vector in vectors.items():
        cache[text] = vector
        cache.move_to_end(text)
    while len(cache) > max_size:
        cache.popitem(last=False)
