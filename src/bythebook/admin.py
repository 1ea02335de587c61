"""Status: what the book is made of, and how far it can be trusted.

What there is of a book: described, listed, copied between this disk and a server, attached from elsewhere.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, closing, suppress
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Literal

from bythebook.embeddings.factory import open_hosted, open_local
from bythebook.embeddings.minilm.embedder import IDENTITY
from bythebook.errors import Conflict, InputError, NotFound
from bythebook.index.backends import Whereabouts, connect, import_client, on_server, open_kept
from bythebook.index.catalog import Catalogue
from bythebook.index.generations import Generations
from bythebook.index.provider import CATALOGUE
from bythebook.sources import Coverage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from pathlib import Path

    from bythebook.embeddings import Identity
    from bythebook.index import Calibration
    from bythebook.index.backends import OnServer
    from bythebook.index.provider import Edition
    from bythebook.ingest.attach import Findings
    from bythebook.settings import Settings
    from bythebook.sources import LeftOut, Skipped
    from bythebook.telemetry import Progress


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """One source of the book."""

    name: str
    pages: int
    """In the book now."""
    listed: int
    """In the source, when it was last looked at."""
    skipped: tuple[Skipped, ...]
    left_out: tuple[LeftOut, ...]

    @property
    def coverage(self) -> float:
        """The part of the source that is in the book. What was skipped counts as missing."""
        return 1 - len(self.skipped) / self.listed if self.listed else 1.0


@dataclass(frozen=True, slots=True)
class Status:
    """The book as it stands on the shelf."""

    pages: int
    chunks: int
    generation: str
    published_at: str
    """For a collection of others: when it was attached."""
    model: str
    dimension: int
    size_bytes: int
    """What the whole data folder takes on disk."""
    sources: tuple[SourceStatus, ...]
    calibration: Calibration
    kept: Whereabouts = field(default_factory=Whereabouts)


def status(
    edition: Edition, identity: Identity, *, data_dir: Path, seen: Mapping[str, Coverage], kept: Whereabouts
) -> Status:
    """Describe an edition that is open."""
    catalogue = edition.catalogue
    totals = catalogue.totals()
    return Status(
        pages=totals.pages,
        chunks=totals.chunks,
        generation=edition.name,
        published_at=catalogue.fact("published_at"),
        model=identity.model,
        dimension=identity.dimension,
        size_bytes=_size(data_dir),
        sources=tuple(_source(name, pages, seen) for name, pages in catalogue.sources().items()),
        calibration=edition.calibration,
        kept=kept,
    )


def _source(name: str, pages: int, seen: Mapping[str, Coverage]) -> SourceStatus:
    coverage = seen.get(name, Coverage(listed=pages))
    return SourceStatus(name, pages, coverage.listed, tuple(coverage.skipped), tuple(coverage.left_out))


def _size(folder: Path) -> int:
    """The bytes a folder takes on disk, holes not counted."""
    size = 0
    for path in folder.rglob("*"):
        # An ingest that is running may remove what was there a moment ago.
        with suppress(FileNotFoundError):
            size += path.lstat().st_blocks * 512
    return size


Engine = Literal["embedded", "qdrant"]
ENGINES: tuple[Engine, ...] = ("embedded", "qdrant")


@dataclass(frozen=True, slots=True)
class Held:
    """One generation of the book, wherever it is."""

    engine: Engine
    name: str
    state: str
    """`current`, `superseded` or `writing`."""
    pages: int
    chunks: int
    model: str
    published_at: str


@dataclass(frozen=True, slots=True)
class Copied:
    """What a copy did."""

    source: Engine
    target: Engine
    generation: str
    """The name it has where it was copied to; empty where it was there already."""
    pages: int
    chunks: int


async def status_of(settings: Settings) -> Status:
    """What the book is made of. Opens no model and reads no page."""

    async with open_kept(settings.index_config()) as kept:
        identity = await kept.made_with() or IDENTITY
        with ExitStack() as stack:
            edition = await kept.library(identity, len).open(stack)
            seen = await kept.coverage()
            return status(edition, identity, data_dir=settings.data_dir, seen=seen, kept=kept.whereabouts)


async def list_generations(settings: Settings) -> list[Held]:
    """Every generation on this disk and, where one is named, on the Qdrant server."""
    held = [_held_here(settings.data_dir / "index", name) for name in _names_here(settings.data_dir / "index")]
    if settings.qdrant_url:
        async with _server(settings) as there:
            for kept in await there.there.kept():
                known = kept.manifest
                waits = "superseded" if known and known.state == "published" else "writing"
                held.append(
                    Held(
                        engine="qdrant",
                        name=kept.name,
                        state="current" if kept.current else waits,
                        pages=known.pages if known else 0,
                        chunks=known.chunks if known else 0,
                        model=known.model if known else "",
                        published_at=known.published_at if known else "",
                    )
                )
    return held


def _names_here(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("g[0-9]*") if (path / CATALOGUE).exists())


def _held_here(folder: Path, name: str) -> Held:
    with closing(Catalogue.open(folder / name / CATALOGUE)) as catalogue:
        totals = catalogue.totals()
        return Held(
            engine="embedded",
            name=name,
            state="current" if Generations(folder).current() == name else "superseded",
            pages=totals.pages,
            chunks=totals.chunks,
            model=catalogue.fact("identity")["model"],
            published_at=catalogue.fact("published_at"),
        )


@asynccontextmanager
async def _server(settings: Settings) -> AsyncIterator[OnServer]:
    await import_client()
    config = settings.index_config()
    async with connect(config, config.url) as server:
        yield on_server(config, server)


async def copy_index(settings: Settings, source: str, target: str, *, instead: bool, progress: Progress) -> Copied:
    """Copy the book from one engine to the other, and check the copy before readers see it.

    Raises Conflict where there is another book already, unless it shall be published `instead` of that one.
    """
    if {source, target} != set(ENGINES):
        raise InputError("copy the book from 'embedded' to 'qdrant', or from 'qdrant' to 'embedded'.")
    here = Generations(settings.data_dir / "index")
    async with _server(settings) as there:
        if source == "embedded":
            return await _to_server(here, there, instead=instead, progress=progress)
        return await _to_disk(here, there, instead=instead, progress=progress)


async def _to_server(here: Generations, there: OnServer, *, instead: bool, progress: Progress) -> Copied:
    from bythebook.index.coverage import recall_coverage
    from bythebook.index.qdrant.mirror import manifest_of, push

    with here.reading() as folder:
        made = manifest_of(folder / CATALOGUE, chunking={}, coverage={})
        index = folder.parent
    current = await there.there.current()
    name = ""
    if not current or (await there.there.manifest(current)).digest != made.digest:
        if current and not instead:
            raise _occupied(f"{there.there.alias!r} on {there.there.server.address}")
        coverage = {source: asdict(seen) for source, seen in recall_coverage(index).items()}
        name, made = await push(
            here,
            there.there,
            after=current,
            making=there.mirror.making,
            notes={"coverage": coverage},
            progress=progress,
        )
        await there.there.sweep()
    return Copied("embedded", "qdrant", name, made.pages, made.chunks)


async def _to_disk(here: Generations, there: OnServer, *, instead: bool, progress: Progress) -> Copied:
    from bythebook.index.qdrant.mirror import digest_here, pull

    current = await there.there.current()
    if not current:
        raise NotFound(f"there is no book {there.there.alias!r} on {there.there.server.address} to copy.")
    manifest = await there.there.manifest(current)
    name = ""
    if digest_here(here) != manifest.digest:
        if here.current() and not instead:
            raise _occupied("this data folder")
        cache = there.mirror.catalogues
        await pull(there.there, current, manifest, here, cache=cache, progress=progress)
        name = here.current()
    return Copied("qdrant", "embedded", name, manifest.pages, manifest.chunks)


def _occupied(where: str) -> Conflict:
    return Conflict(f"there is another book in {where} already. Add --replace to publish this one in its place.")


async def remove_generation(settings: Settings, name: str) -> None:
    """Remove a generation of the book from the Qdrant server. The current one stays."""
    async with _server(settings) as there:
        await there.there.remove(name)


async def attach_collection(
    settings: Settings, collection: str, *, vector: str, progress: Progress, say: Callable[[str], None]
) -> Findings:
    """Serve a collection that another program fills, from now on. Nothing is written to it."""
    await import_client()
    from bythebook.index.qdrant.attached import Attachment
    from bythebook.ingest.attach import Embedders, attach

    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(connect(settings.index_config(), settings.qdrant_url))
        hosted = await open_hosted(settings.embedding(""), None, stack)
        local = await stack.enter_async_context(open_local(settings.model_folder, say=say, begun=None))
        embedder = hosted or local
        wanted = Attachment(
            url=settings.qdrant_url,
            collection=collection,
            vector=vector or None,
            fields={},
            site_url=settings.site_url,
            identity=asdict(embedder.identity),
            edition="",
        )
        pair = Embedders(embedder, reader=local if hosted else None)
        return await attach(server, wanted, pair, data_dir=settings.data_dir, progress=progress)


def detach_collection(settings: Settings) -> str:
    """Serve the book of the settings again. Returns the name of the collection that was attached."""
    from bythebook.index.qdrant.attached import attached_catalogue, read_attachment, remove_attachment

    attachment = read_attachment(settings.data_dir)
    if attachment is None:
        raise NotFound("no collection is attached here.")
    remove_attachment(settings.data_dir)
    attached_catalogue(settings.data_dir, attachment.edition).unlink(missing_ok=True)
    return attachment.collection
