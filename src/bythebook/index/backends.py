"""Index backends: local disk, a Qdrant server, or an attached (read-only) collection that another program fills."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from bythebook.embeddings import EmbedderId
from bythebook.errors import ConfigurationError
from bythebook.index.generations import Generations, load_coverage, parse_coverage
from bythebook.index.provider import LocalSnapshotLoader, SnapshotLoader, read_embedder_id

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from pathlib import Path

    from bythebook.index.qdrant.attached import Attachment
    from bythebook.index.qdrant.client import QdrantServer
    from bythebook.index.qdrant.generations import ServerGenerations
    from bythebook.index.qdrant.mirror import Mirror
    from bythebook.sources import Coverage
    from bythebook.telemetry import Progress

    CountTokens = Callable[[str], int]

MISSING_CLIENT = "a Qdrant server needs the Qdrant client library: pip install 'bythebook[qdrant]'."


@dataclass(frozen=True, slots=True)
class IndexConfig:
    """The location of the index, and the options of a Qdrant server."""

    data_dir: Path
    url: str = ""
    """The URL of the Qdrant server; empty for the embedded engine."""
    api_key: str = field(default="", repr=False)
    collection: str = ""
    shards: int = 1
    replicas: int = 1
    on_disk: bool = False
    """True if the server keeps vectors on its disk rather than in memory."""
    exact: bool = False
    """True if the server compares every vector instead of using its HNSW index."""
    read_timeout: float = 4.0
    retire_after: float = 60.0
    """Seconds a superseded generation stays on the server for questions that still read it."""


@dataclass(frozen=True, slots=True)
class IndexLocation:
    """The location of an index, for `status` and logs."""

    engine: str = "embedded"
    url: str = ""
    """The URL of the Qdrant server; empty for the embedded engine."""
    collection: str = ""
    attached: bool = False
    """True if another program fills the collection."""


class IndexBackend(Protocol):
    """Stores the index of a book: opens it for reading, and for an ingest."""

    @property
    def location(self) -> IndexLocation: ...

    async def read_embedder_id(self) -> EmbedderId | None:
        """The embedder that the index was built with, None before the first ingest."""
        ...

    def snapshot_loader(self, identity: EmbedderId, count_tokens: CountTokens) -> SnapshotLoader: ...

    async def open_workspace(self, *, progress: Progress) -> IngestWorkspace:
        """The workspace of an ingest, up to date with the published generation. Raises ConfigurationError if the index
        is read-only."""
        ...

    async def load_coverage(self) -> Mapping[str, Coverage]:
        """How much of each source the last ingest could read."""
        ...


class IngestWorkspace(Protocol):
    """The folder in which an ingest builds a generation, and the way to publish it."""

    @property
    def folder(self) -> Path: ...

    @property
    def generations(self) -> Generations: ...

    async def publish(self, *, chunking: Mapping[str, int], progress: Progress) -> str:
        """Make the generation of the workspace visible to readers. Returns its new name, empty if the name stays."""
        ...


@asynccontextmanager
async def open_backend(config: IndexConfig) -> AsyncIterator[IndexBackend]:
    """The configured backend, open until the block ends."""
    if not config.url and not (config.data_dir / "attached.json").exists():
        yield LocalBackend(config.data_dir / "index")
        return
    await import_client()
    from bythebook.index.qdrant.attached import read_attachment

    attachment = read_attachment(config.data_dir)
    if attachment and config.url and config.url.rstrip("/") != attachment.url.rstrip("/"):
        raise ConfigurationError(
            f"this data folder is attached to {attachment.collection!r} on {attachment.url}, but qdrant_url is "
            f"{config.url}. Run 'bythebook index detach' first, or leave qdrant_url out."
        )
    async with connect_qdrant(config, attachment.url if attachment else config.url) as server:
        yield AttachedBackend(server, config.data_dir, attachment) if attachment else qdrant_backend(config, server)


async def import_client() -> None:
    """Import the Qdrant client in a thread: it takes seconds."""
    try:
        await asyncio.to_thread(import_module, "qdrant_client")
    except ModuleNotFoundError as exc:
        raise ConfigurationError(MISSING_CLIENT) from exc


@asynccontextmanager
async def connect_qdrant(config: IndexConfig, url: str) -> AsyncIterator[QdrantServer]:
    from bythebook.index.qdrant.client import QdrantAddress, open_server

    if not url:
        raise ConfigurationError("no Qdrant server is configured: set QDRANT_URL, for instance http://localhost:6333.")
    async with open_server(QdrantAddress(url, config.api_key), reading_seconds=config.read_timeout) as server:
        yield server


def qdrant_backend(config: IndexConfig, server: QdrantServer) -> QdrantBackend:
    from bythebook.index.qdrant.generations import GRACE_SECONDS, CollectionParams, ServerGenerations
    from bythebook.index.qdrant.mirror import Mirror, mirror_folder

    generations = ServerGenerations(server, config.collection, grace_seconds=max(GRACE_SECONDS, config.retire_after))
    params = CollectionParams(config.shards, config.replicas, on_disk=config.on_disk)
    folder = mirror_folder(config.data_dir, server.address, config.collection)
    return QdrantBackend(generations, Mirror(generations, folder, params), exact=config.exact)


@dataclass(frozen=True, slots=True)
class LocalBackend:
    """An index in a folder of this machine, searched in this process."""

    folder: Path
    location: IndexLocation = field(default=IndexLocation())

    @property
    def generations(self) -> Generations:
        return Generations(self.folder)

    async def read_embedder_id(self) -> EmbedderId | None:
        return read_embedder_id(self.generations)

    def snapshot_loader(self, identity: EmbedderId, _count_tokens: CountTokens) -> SnapshotLoader:
        return LocalSnapshotLoader(self.generations, identity)

    async def open_workspace(self, *, progress: Progress) -> IngestWorkspace:  # noqa: ARG002 - nothing to download
        return self

    async def publish(self, *, chunking: Mapping[str, int], progress: Progress) -> str:  # noqa: ARG002 - it is published already
        return ""

    async def load_coverage(self) -> Mapping[str, Coverage]:
        return load_coverage(self.folder)


@dataclass(frozen=True, slots=True)
class QdrantBackend:
    """An index on a Qdrant server, with a local mirror for ingests."""

    server_generations: ServerGenerations
    mirror: Mirror
    exact: bool

    @property
    def location(self) -> IndexLocation:
        return IndexLocation("qdrant", self.server_generations.server.address, self.server_generations.alias)

    @property
    def folder(self) -> Path:
        return self.mirror.folder

    @property
    def generations(self) -> Generations:
        return self.mirror.generations

    async def read_embedder_id(self) -> EmbedderId | None:
        name = await self.server_generations.current()
        if not name:
            return None
        manifest = await self.server_generations.manifest(name)
        return EmbedderId(manifest.model, manifest.dimension)

    def snapshot_loader(self, identity: EmbedderId, _count_tokens: CountTokens) -> SnapshotLoader:
        from bythebook.index.qdrant.catalog_sync import QdrantSnapshotLoader

        return QdrantSnapshotLoader(self.server_generations, identity, self.mirror.catalogs, exact=self.exact)

    async def open_workspace(self, *, progress: Progress) -> IngestWorkspace:
        await self.mirror.catch_up(progress=progress)
        return self

    async def publish(self, *, chunking: Mapping[str, int], progress: Progress) -> str:
        coverage = {name: asdict(entry) for name, entry in load_coverage(self.folder).items()}
        name = await self.mirror.publish(metadata={"chunking": chunking, "coverage": coverage}, progress=progress)
        await self.server_generations.sweep()
        return name

    async def load_coverage(self) -> Mapping[str, Coverage]:
        name = await self.server_generations.current()
        return parse_coverage((await self.server_generations.manifest(name)).coverage) if name else {}


@dataclass(frozen=True, slots=True)
class AttachedBackend:
    """A collection that another program fills. It is read-only."""

    server: QdrantServer
    data_dir: Path
    attachment: Attachment

    @property
    def location(self) -> IndexLocation:
        return IndexLocation("qdrant", self.attachment.url, self.attachment.collection, attached=True)

    async def read_embedder_id(self) -> EmbedderId | None:
        return EmbedderId(**self.attachment.identity)

    def snapshot_loader(self, identity: EmbedderId, count_tokens: CountTokens) -> SnapshotLoader:
        from bythebook.index.qdrant.attached import AttachedSnapshotLoader

        return AttachedSnapshotLoader(self.server, self.data_dir, identity, count_tokens=count_tokens)

    async def open_workspace(self, *, progress: Progress) -> IngestWorkspace:  # noqa: ARG002 - always raises
        raise ConfigurationError(
            f"this book is the collection {self.attachment.collection!r} on {self.attachment.url}, which another "
            "program fills: nothing is written to it. Run 'bythebook index detach' first to build an index of your own."
        )

    async def load_coverage(self) -> Mapping[str, Any]:
        return {}
