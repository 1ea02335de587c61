"""Where a book is kept: on this disk, on a Qdrant server, or in a collection there that another program fills."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from bythebook.embeddings import Identity
from bythebook.errors import ConfigurationError
from bythebook.index.coverage import recall_coverage
from bythebook.index.generations import Generations
from bythebook.index.provider import DiskLibrary, identity_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from pathlib import Path

    from bythebook.index.provider import Library
    from bythebook.index.qdrant.attached import Attachment
    from bythebook.index.qdrant.client import QdrantServer
    from bythebook.index.qdrant.generations import ServerGenerations
    from bythebook.index.qdrant.mirror import Mirror
    from bythebook.sources import Coverage
    from bythebook.telemetry import Progress

    Count = Callable[[str], int]

EXTRA = "a Qdrant server needs the official client: pip install 'bythebook[qdrant]'."


@dataclass(frozen=True, slots=True)
class IndexConfig:
    """Where the index of a book is kept, and how a Qdrant server is used."""

    data_dir: Path
    url: str = ""
    """Of the Qdrant server; empty for the embedded engine."""
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
    """Seconds a replaced generation stays on the server for questions that are still using it."""


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """Where a book is kept."""

    engine: str = "embedded"
    url: str = ""
    """Of the Qdrant server; empty where the engine is in this process."""
    collection: str = ""
    attached: bool = False
    """Whether another program fills the collection."""


class Kept(Protocol):
    """A place where a book is kept."""

    @property
    def whereabouts(self) -> Whereabouts: ...

    async def made_with(self) -> Identity | None:
        """Whose vectors the book has, None before the first ingest."""
        ...

    def library(self, identity: Identity, count: Count) -> Library: ...

    async def desk(self, *, progress: Progress) -> Desk:
        """Where an ingest works, brought up to what is published. Raises ConfigurationError for a book of others."""
        ...

    async def coverage(self) -> Mapping[str, Coverage]:
        """How much of each source the last look at it could read."""
        ...


class Desk(Protocol):
    """Where an ingest works, and where its work goes."""

    @property
    def folder(self) -> Path: ...

    @property
    def generations(self) -> Generations: ...

    async def publish(self, *, chunking: Mapping[str, int], progress: Progress) -> str:
        """Bring the generation published here to the readers. Returns its name there, empty if it keeps its own."""
        ...


@asynccontextmanager
async def open_kept(config: IndexConfig) -> AsyncIterator[Kept]:
    """The place these settings name, until the block ends."""
    if not config.url and not (config.data_dir / "attached.json").exists():
        yield OnDisk(config.data_dir / "index")
        return
    await import_client()
    from bythebook.index.qdrant.attached import read_attachment

    attachment = read_attachment(config.data_dir)
    if attachment and config.url and config.url.rstrip("/") != attachment.url.rstrip("/"):
        raise ConfigurationError(
            f"this data folder is attached to {attachment.collection!r} on {attachment.url}, but qdrant_url is "
            f"{config.url}. Run 'bythebook index detach' first, or leave qdrant_url out."
        )
    async with connect(config, attachment.url if attachment else config.url) as server:
        yield Attached(server, config.data_dir, attachment) if attachment else on_server(config, server)


async def import_client() -> None:
    """Import the client, which takes seconds, without keeping others waiting."""
    try:
        await asyncio.to_thread(import_module, "qdrant_client")
    except ModuleNotFoundError as exc:
        raise ConfigurationError(EXTRA) from exc


@asynccontextmanager
async def connect(config: IndexConfig, url: str) -> AsyncIterator[QdrantServer]:
    from bythebook.index.qdrant.client import Address, connected

    if not url:
        raise ConfigurationError("there is no Qdrant server: set QDRANT_URL to its address, as http://localhost:6333.")
    async with connected(Address(url, config.api_key), reading_seconds=config.read_timeout) as server:
        yield server


def on_server(config: IndexConfig, server: QdrantServer) -> OnServer:
    from bythebook.index.qdrant.generations import GRACE_SECONDS, Making, ServerGenerations
    from bythebook.index.qdrant.mirror import Mirror, mirror_folder

    there = ServerGenerations(server, config.collection, grace_seconds=max(GRACE_SECONDS, config.retire_after))
    making = Making(config.shards, config.replicas, on_disk=config.on_disk)
    folder = mirror_folder(config.data_dir, server.address, config.collection)
    return OnServer(there, Mirror(there, folder, making), exact=config.exact)


@dataclass(frozen=True, slots=True)
class OnDisk:
    """A book in a folder of this machine, searched in this process."""

    folder: Path
    whereabouts: Whereabouts = field(default=Whereabouts())

    @property
    def generations(self) -> Generations:
        return Generations(self.folder)

    async def made_with(self) -> Identity | None:
        return identity_of(self.generations)

    def library(self, identity: Identity, _count: Count) -> Library:
        return DiskLibrary(self.generations, identity)

    async def desk(self, *, progress: Progress) -> Desk:  # noqa: ARG002 - there is nothing to wait for
        return self

    async def publish(self, *, chunking: Mapping[str, int], progress: Progress) -> str:  # noqa: ARG002
        return ""

    async def coverage(self) -> Mapping[str, Coverage]:
        return recall_coverage(self.folder)


@dataclass(frozen=True, slots=True)
class OnServer:
    """A book on a Qdrant server."""

    there: ServerGenerations
    mirror: Mirror
    exact: bool

    @property
    def whereabouts(self) -> Whereabouts:
        return Whereabouts("qdrant", self.there.server.address, self.there.alias)

    @property
    def folder(self) -> Path:
        return self.mirror.folder

    @property
    def generations(self) -> Generations:
        return self.mirror.generations

    async def made_with(self) -> Identity | None:
        name = await self.there.current()
        if not name:
            return None
        manifest = await self.there.manifest(name)
        return Identity(manifest.model, manifest.dimension)

    def library(self, identity: Identity, _count: Count) -> Library:
        from bythebook.index.qdrant.catalog_sync import QdrantLibrary

        return QdrantLibrary(self.there, identity, self.mirror.catalogues, exact=self.exact)

    async def desk(self, *, progress: Progress) -> Desk:
        await self.mirror.catch_up(progress=progress)
        return self

    async def publish(self, *, chunking: Mapping[str, int], progress: Progress) -> str:
        coverage = {name: asdict(seen) for name, seen in recall_coverage(self.folder).items()}
        name = await self.mirror.publish(notes={"chunking": chunking, "coverage": coverage}, progress=progress)
        await self.there.sweep()
        return name

    async def coverage(self) -> Mapping[str, Coverage]:
        from bythebook.index.coverage import as_coverage

        name = await self.there.current()
        return as_coverage((await self.there.manifest(name)).coverage) if name else {}


@dataclass(frozen=True, slots=True)
class Attached:
    """A collection that another program fills."""

    server: QdrantServer
    data_dir: Path
    attachment: Attachment

    @property
    def whereabouts(self) -> Whereabouts:
        return Whereabouts("qdrant", self.attachment.url, self.attachment.collection, attached=True)

    async def made_with(self) -> Identity | None:
        return Identity(**self.attachment.identity)

    def library(self, identity: Identity, count: Count) -> Library:
        from bythebook.index.qdrant.attached import AttachedLibrary

        return AttachedLibrary(self.server, self.data_dir, identity, count=count)

    async def desk(self, *, progress: Progress) -> Desk:  # noqa: ARG002 - there is none
        raise ConfigurationError(
            f"this book is the collection {self.attachment.collection!r} on {self.attachment.url}, which another "
            "program fills: nothing is written to it. Run 'bythebook index detach' first to make a book of your own."
        )

    async def coverage(self) -> Mapping[str, Any]:
        return {}
