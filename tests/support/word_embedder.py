"""A book with word-based vectors: no model to load, and vectors in microseconds.

It is assembled from the same parts as in `bythebook.book`, with another embedder.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bythebook.answers import AgentRequest, AgentResponse
from bythebook.chunking.splitter import ChunkSizes
from bythebook.embeddings import EmbedderId, iterate_texts
from bythebook.index.generations import Generations
from bythebook.index.provider import IndexProvider, LocalSnapshotLoader
from bythebook.ingest.pipeline import IngestContext, ingest, plan_ingest
from bythebook.llm.config import AgentConfig
from bythebook.qa.pipeline import AnswerPipeline
from bythebook.retrieval.retriever import Retriever
from bythebook.sources.folder import Folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bythebook.embeddings import Texts, Vector
    from bythebook.ingest import IngestReport
    from bythebook.sources import PageSource

DIMENSION = 32
_TOKEN = re.compile(r"\w+|[^\w\s]")


def count_words(text: str) -> int:
    """Count words and punctuation: the counts of parts add up to that of the text."""
    return len(_TOKEN.findall(text))


@cache
def _direction(word: str) -> Vector:
    seed = int.from_bytes(hashlib.sha256(word.encode("utf-8", "replace")).digest()[:8])
    return np.random.default_rng(seed).standard_normal(DIMENSION).astype(np.float32)


def vector_of(text: str) -> Vector:
    """A unit vector that only depends on the words of the text."""
    vector = _direction("")
    for word in sorted(_TOKEN.findall(text.lower())):
        vector = vector + _direction(word)
    unit: Vector = (vector / np.linalg.norm(vector)).astype(np.float32)
    return unit


@dataclass(slots=True)
class WordEmbedder:
    """Records every text that it embeds."""

    model: str = "words"
    embedded: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    @property
    def identity(self) -> EmbedderId:
        return EmbedderId(self.model, DIMENSION)

    def count_tokens(self, text: str) -> int:
        return count_words(text)

    async def embed_documents(self, texts: Texts) -> AsyncGenerator[Vector]:
        async for text in iterate_texts(texts):
            self.embedded.append(text)
            yield vector_of(text)

    async def embed_query(self, text: str) -> Vector:
        self.asked.append(text)
        return vector_of(text)


def _unseen(_stage: str, _done: int, _total: int) -> None:
    pass


@dataclass(slots=True)
class WordBook:
    """A book in a folder."""

    folder: Path
    sizes: ChunkSizes = field(default_factory=lambda: ChunkSizes(limit=60))
    embedder: WordEmbedder = field(default_factory=WordEmbedder)

    @property
    def generations(self) -> Generations:
        return Generations(self.folder)

    @property
    def workshop(self) -> IngestContext:
        return IngestContext(self.folder, self.generations, self.embedder, self.sizes, _unseen)

    async def ingest(self, *sources: PageSource | Path, prune: bool = False, rebuild: bool = False) -> IngestReport:
        return await ingest(self.workshop, _sources(sources), prune=prune, rebuild=rebuild)

    async def plan_ingest(
        self, *sources: PageSource | Path, prune: bool = False, rebuild: bool = False
    ) -> IngestReport:
        return await plan_ingest(self.workshop, _sources(sources), prune=prune, rebuild=rebuild)

    @property
    def loader(self) -> LocalSnapshotLoader:
        return LocalSnapshotLoader(self.generations, self.embedder.identity)

    @contextmanager
    def index_provider(self) -> Iterator[IndexProvider]:
        with closing(IndexProvider(self.loader)) as index_provider:
            yield index_provider

    async def ask(self, *questions: str, top_k: int = 5, threshold: float = 0.0) -> list[AgentResponse]:
        """An answer to each question. With a threshold of 0, no question is refused for its evidence."""
        with self.index_provider() as index_provider:
            config = AgentConfig(retrieval_top_k=top_k, retrieval_threshold=threshold)
            asker = AnswerPipeline(index_provider, self.embedder, Retriever(self.embedder), config)
            return [await asker.ask(AgentRequest(question)) for question in questions]


def _sources(given: Sequence[PageSource | Path]) -> list[PageSource]:
    return [Folder(source) if isinstance(source, Path) else source for source in given]
