"""A book whose vectors are made of words: no model to load, and vectors in microseconds.

It is put together from the same parts as `bythebook.book` does it; only the embedder is another one.
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
from bythebook.chunking.splitter import Sizes
from bythebook.embeddings import Identity, arriving
from bythebook.index.generations import Generations
from bythebook.index.provider import DiskLibrary, Shelf
from bythebook.ingest.pipeline import Workshop, ingest, rehearse
from bythebook.llm.config import AgentConfig
from bythebook.qa.pipeline import Asker
from bythebook.retrieval.retriever import Retriever
from bythebook.sources.folder import Folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bythebook.embeddings import Texts, Vector
    from bythebook.ingest import Report
    from bythebook.sources import PageSource

DIMENSION = 32
_TOKEN = re.compile(r"\w+|[^\w\s]")


def count_words(text: str) -> int:
    """Words and marks: a token count that adds up however a text is cut."""
    return len(_TOKEN.findall(text))


@cache
def _direction(word: str) -> Vector:
    seed = int.from_bytes(hashlib.sha256(word.encode("utf-8", "replace")).digest()[:8])
    return np.random.default_rng(seed).standard_normal(DIMENSION).astype(np.float32)


def vector_of(text: str) -> Vector:
    """A unit vector that depends on nothing but the words of the text."""
    vector = _direction("")
    for word in sorted(_TOKEN.findall(text.lower())):
        vector = vector + _direction(word)
    unit: Vector = (vector / np.linalg.norm(vector)).astype(np.float32)
    return unit


@dataclass(slots=True)
class WordEmbedder:
    """Keeps every text it was asked to embed as a document."""

    model: str = "words"
    embedded: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    @property
    def identity(self) -> Identity:
        return Identity(self.model, DIMENSION)

    def count(self, text: str) -> int:
        return count_words(text)

    async def documents(self, texts: Texts) -> AsyncGenerator[Vector]:
        async for text in arriving(texts):
            self.embedded.append(text)
            yield vector_of(text)

    async def query(self, text: str) -> Vector:
        self.asked.append(text)
        return vector_of(text)


def _unseen(_stage: str, _done: int, _total: int) -> None:
    pass


@dataclass(slots=True)
class WordBook:
    """A book in a folder."""

    folder: Path
    sizes: Sizes = field(default_factory=lambda: Sizes(limit=60))
    embedder: WordEmbedder = field(default_factory=WordEmbedder)

    @property
    def generations(self) -> Generations:
        return Generations(self.folder)

    @property
    def workshop(self) -> Workshop:
        return Workshop(self.folder, self.generations, self.embedder, self.sizes, _unseen)

    async def ingest(self, *sources: PageSource | Path, alone: bool = False, rebuild: bool = False) -> Report:
        return await ingest(self.workshop, _sources(sources), alone=alone, rebuild=rebuild)

    async def rehearse(self, *sources: PageSource | Path, alone: bool = False, rebuild: bool = False) -> Report:
        return await rehearse(self.workshop, _sources(sources), alone=alone, rebuild=rebuild)

    @property
    def library(self) -> DiskLibrary:
        return DiskLibrary(self.generations, self.embedder.identity)

    @contextmanager
    def shelf(self) -> Iterator[Shelf]:
        with closing(Shelf(self.library)) as shelf:
            yield shelf

    async def ask(self, *questions: str, top_k: int = 5, threshold: float = 0.0) -> list[AgentResponse]:
        """An answer to each; with a threshold of 0 the book is never too shy to quote itself."""
        with self.shelf() as shelf:
            config = AgentConfig(retrieval_top_k=top_k, retrieval_threshold=threshold)
            asker = Asker(shelf, self.embedder, Retriever(self.embedder), config)
            return [await asker.ask(AgentRequest(question)) for question in questions]


def _sources(given: Sequence[PageSource | Path]) -> list[PageSource]:
    return [Folder(source) if isinstance(source, Path) else source for source in given]
