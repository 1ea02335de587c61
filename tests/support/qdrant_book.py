"""A book with word-based vectors on a Qdrant server, assembled as in `bythebook.book`."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from bythebook.answers import AgentRequest, AgentResponse
from bythebook.chunking.splitter import ChunkSizes
from bythebook.index.provider import IndexProvider
from bythebook.index.qdrant.catalog_sync import QdrantSnapshotLoader
from bythebook.index.qdrant.generations import CollectionParams, Manifest, ServerGenerations
from bythebook.index.qdrant.mirror import Mirror
from bythebook.ingest.pipeline import IngestContext, ingest
from bythebook.llm.config import AgentConfig
from bythebook.qa.pipeline import AnswerPipeline
from bythebook.retrieval.retriever import Retriever
from bythebook.sources.folder import Folder
from tests.support.word_embedder import DIMENSION, WordEmbedder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bythebook.index.qdrant.client import QdrantServer


AVERAGE = 8.0

MANIFEST = Manifest(
    digest="0123456789abcdef",
    size=0,
    blocks=(),
    pages=0,
    chunks=0,
    model="words",
    dimension=DIMENSION,
    average_length=AVERAGE,
    calibration={},
    chunking={},
)
"""The manifest of an empty generation."""


def unseen(_stage: str, _done: int, _total: int) -> None:
    pass


@dataclass(slots=True)
class ServerBook:
    """A book on a server, used by a machine with this folder."""

    server: QdrantServer
    folder: Path
    alias: str = "book"
    embedder: WordEmbedder = field(default_factory=WordEmbedder)
    params: CollectionParams = field(default_factory=CollectionParams)
    grace_seconds: float = 60.0

    @property
    def there(self) -> ServerGenerations:
        return ServerGenerations(self.server, self.alias, grace_seconds=self.grace_seconds)

    @property
    def mirror(self) -> Mirror:
        return Mirror(self.there, self.folder / "mirror", self.params)

    async def ingest(self, *pages: Path) -> str:
        """Ingest these folders and publish. Returns the generation, empty if nothing has changed."""
        mirror = self.mirror
        await mirror.catch_up(progress=unseen)
        work = IngestContext(mirror.folder, mirror.generations, self.embedder, ChunkSizes(limit=60), unseen)
        await ingest(work, [Folder(folder) for folder in pages], prune=False, rebuild=False)
        name = await mirror.publish(metadata={"chunking": {"limit": 60}}, progress=unseen)
        await self.there.sweep()
        return name

    @contextmanager
    def index_provider(self) -> Iterator[IndexProvider]:
        loader = QdrantSnapshotLoader(self.there, self.embedder.identity, self.folder / "read", refresh_seconds=0.0)
        index_provider = IndexProvider(loader)
        try:
            yield index_provider
        finally:
            index_provider.close()

    async def ask(self, *questions: str) -> list[AgentResponse]:
        with self.index_provider() as index_provider:
            config = AgentConfig(retrieval_threshold=0.0)
            asker = AnswerPipeline(index_provider, self.embedder, Retriever(self.embedder), config)
            return [await asker.ask(AgentRequest(question)) for question in questions]
