"""Where a book is kept: on this disk, on a Qdrant server, or in a collection there that another program fills."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from bythebook.errors import ConfigurationError
from bythebook.ingest.coverage import recall_coverage
from bythebook.passages.generations import Generations
from bythebook.passages.shelf import DiskLibrary, identity_of
from bythebook.status import Whereabouts
from bythebook.vectors import Identity

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from pathlib import Path

    from bythebook.ingest import Progress, Report
    from bythebook.ingest.plan import Coverage
    from bythebook.passages.qdrant.attached import Attachment
    from bythebook.passages.qdrant.connection import QdrantServer
    from bythebook.passages.qdrant.generations import ServerGenerations
    from bythebook.passages.qdrant.mirror import Mirror
    from bythebook.passages.shelf import Library
    from bythebook.settings import Settings

    Count = Callable[[str], int]

EXTRA = "a Qdrant server needs the official client: pip install 'bythebook[qdrant]'."
READING_SHARE = 0.8
"""How much of the time to the first word a server may take: the rest is for saying that it did not answer."""


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

    async def publish(self, report: Report, *, chunking: Mapping[str, int], progress: Progress) -> Report:
        """Bring what was published on the desk to the readers. Returns the report with what they know it by."""
        ...


@asynccontextmanager
async def open_kept(settings: Settings) -> AsyncIterator[Kept]:
    """The place these settings name, until the block ends."""
    if not settings.qdrant_url and not (settings.data_dir / "attached.json").exists():
        yield OnDisk(settings.data_dir / "index")
        return
    await import_client()
    from bythebook.passages.qdrant.attached import read_attachment

    attachment = read_attachment(settings.data_dir)
    if attachment and settings.qdrant_url and settings.qdrant_url.rstrip("/") != attachment.url.rstrip("/"):
        raise ConfigurationError(
            f"this data folder is attached to {attachment.collection!r} on {attachment.url}, but qdrant_url is "
            f"{settings.qdrant_url}. Run 'bythebook index detach' first, or leave qdrant_url out."
        )
    async with connect(settings, attachment.url if attachment else settings.qdrant_url) as server:
        yield Attached(server, settings.data_dir, attachment) if attachment else on_server(settings, server)


async def import_client() -> None:
    """Import the client, which takes seconds, without keeping others waiting."""
    try:
        await asyncio.to_thread(import_module, "qdrant_client")
    except ModuleNotFoundError as exc:
        raise ConfigurationError(EXTRA) from exc


@asynccontextmanager
async def connect(settings: Settings, url: str) -> AsyncIterator[QdrantServer]:
    from bythebook.passages.qdrant.connection import Address, connected

    if not url:
        raise ConfigurationError("there is no Qdrant server: set QDRANT_URL to its address, as http://localhost:6333.")
    seconds = READING_SHARE * settings.first_token_seconds
    async with connected(Address(url, settings.qdrant_api_key), reading_seconds=seconds) as server:
        yield server


def on_server(settings: Settings, server: QdrantServer) -> OnServer:
    from bythebook.passages.qdrant.generations import GRACE_SECONDS, Making, ServerGenerations
    from bythebook.passages.qdrant.mirror import Mirror, mirror_folder

    grace = max(GRACE_SECONDS, 2 * settings.answer_seconds)
    there = ServerGenerations(server, settings.collection_name, grace_seconds=grace)
    making = Making(settings.qdrant_shards, settings.qdrant_replicas, on_disk=settings.qdrant_on_disk == "on")
    folder = mirror_folder(settings.data_dir, server.address, settings.collection_name)
    return OnServer(there, Mirror(there, folder, making), exact=settings.qdrant_exact == "on")


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

    async def publish(self, report: Report, *, chunking: Mapping[str, int], progress: Progress) -> Report:  # noqa: ARG002
        return report

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
        from bythebook.passages.qdrant.library import QdrantLibrary

        return QdrantLibrary(self.there, identity, self.mirror.catalogues, exact=self.exact)

    async def desk(self, *, progress: Progress) -> Desk:
        await self.mirror.catch_up(progress=progress)
        return self

    async def publish(self, report: Report, *, chunking: Mapping[str, int], progress: Progress) -> Report:
        coverage = {name: asdict(seen) for name, seen in recall_coverage(self.folder).items()}
        began = time.perf_counter()
        name = await self.mirror.publish(notes={"chunking": chunking, "coverage": coverage}, progress=progress)
        await self.there.sweep()
        return replace(report, generation=name, seconds=report.seconds + time.perf_counter() - began)

    async def coverage(self) -> Mapping[str, Coverage]:
        from bythebook.ingest.coverage import as_coverage

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
        from bythebook.passages.qdrant.attached import AttachedLibrary

        return AttachedLibrary(self.server, self.data_dir, identity, count=count)

    async def desk(self, *, progress: Progress) -> Desk:  # noqa: ARG002 - there is none
        raise ConfigurationError(
            f"this book is the collection {self.attachment.collection!r} on {self.attachment.url}, which another "
            "program fills: nothing is written to it. Run 'bythebook index detach' first to make a book of your own."
        )

    async def coverage(self) -> Mapping[str, Any]:
        return {}
