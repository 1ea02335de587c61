"""Administration of the index: its status, its generations, copies between engines, and attached collections."""

from __future__ import annotations

from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, closing, suppress
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Literal

from bythebook.embeddings.local import DEFAULT_MODEL, EMBEDDER_ID, LOCAL_MODELS, installed_embedder
from bythebook.embeddings.remote import open_remote_embedder
from bythebook.errors import Conflict, InputError, NotFound
from bythebook.index import backends
from bythebook.index.catalog import Catalog
from bythebook.index.generations import Generations, load_coverage
from bythebook.index.provider import CATALOG_FILE
from bythebook.models import ENTAILMENT, RERANKER
from bythebook.models.install import is_installed
from bythebook.retrieval.reranker import installed_reranker
from bythebook.sources import Coverage, ExcludedPage, SkippedPage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping
    from pathlib import Path

    from bythebook.embeddings import EmbedderId
    from bythebook.index import Calibration
    from bythebook.index.qdrant.generations import ServerGeneration
    from bythebook.ingest.attach import AttachReport
    from bythebook.settings import Settings
    from bythebook.telemetry import Progress


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """One source of the book."""

    name: str
    pages: int
    """The pages of this source in the index."""
    listed: int
    """The pages that the source listed in the last ingest."""
    skipped: tuple[SkippedPage, ...]
    left_out: tuple[ExcludedPage, ...]

    @property
    def coverage(self) -> float:
        """The share of the listed pages that could be read. Skipped pages count as missing."""
        return 1 - len(self.skipped) / self.listed if self.listed else 1.0


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """A local model that the book uses."""

    title: str
    purpose: str
    license: str
    author: str
    installed: bool
    fallback: str
    """What happens while it is not installed."""


@dataclass(frozen=True, slots=True)
class BookStatus:
    """The state of a book: its index, its sources and its calibration."""

    pages: int
    chunks: int
    generation: str
    published_at: str
    """For an attached collection: when it was attached."""
    model: str
    dimension: int
    size_bytes: int
    """The disk usage of the whole data folder."""
    sources: tuple[SourceStatus, ...]
    calibration: Calibration
    location: backends.IndexLocation = field(default_factory=backends.IndexLocation)
    models: tuple[ModelStatus, ...] = ()


def _describe_models(cache: Path, identity: EmbedderId) -> Iterator[ModelStatus]:
    """The local models of a book with this embedder. Opens none of them."""
    for spec in (LOCAL_MODELS.get(identity.model, DEFAULT_MODEL).spec, RERANKER, ENTAILMENT):
        installed = is_installed(cache, spec)
        yield ModelStatus(spec.title, spec.purpose, spec.license, spec.author, installed, spec.fallback)


def _source_status(name: str, pages: int, coverage: Mapping[str, Coverage]) -> SourceStatus:
    entry = coverage.get(name, Coverage(listed=pages))
    return SourceStatus(name, pages, entry.listed, tuple(entry.skipped), tuple(entry.left_out))


def _disk_usage(folder: Path) -> int:
    """The disk usage of a folder in bytes. Holes in sparse files do not count."""
    size = 0
    for path in folder.rglob("*"):
        # A running ingest may remove files at any time.
        with suppress(FileNotFoundError):
            size += path.lstat().st_blocks * 512
    return size


Engine = Literal["embedded", "qdrant"]
ENGINES: tuple[Engine, ...] = ("embedded", "qdrant")


@dataclass(frozen=True, slots=True)
class GenerationInfo:
    """One generation of the book, on this disk or on a server."""

    engine: Engine
    name: str
    state: str
    """`current`, `superseded` or `writing`."""
    pages: int
    chunks: int
    model: str
    published_at: str


@dataclass(frozen=True, slots=True)
class CopyResult:
    """The result of copying an index from one engine to the other."""

    source: Engine
    target: Engine
    generation: str
    """Its name in the target; empty if the target had the same generation already."""
    pages: int
    chunks: int


async def read_status(settings: Settings) -> BookStatus:
    """The status of the book. Loads no embedding model and reads no source."""
    async with backends.open_backend(settings.index_config()) as backend:
        identity = await backend.read_embedder_id() or EMBEDDER_ID
        with ExitStack() as stack:
            snapshot = await backend.snapshot_loader(identity, len).open(stack)
            coverage, catalog = await backend.load_coverage(), snapshot.catalog
            totals = catalog.totals()
            return BookStatus(
                pages=totals.pages,
                chunks=totals.chunks,
                generation=snapshot.name,
                published_at=catalog.get_fact("published_at"),
                model=identity.model,
                dimension=identity.dimension,
                size_bytes=_disk_usage(settings.data_dir),
                sources=tuple(_source_status(name, pages, coverage) for name, pages in catalog.page_counts().items()),
                calibration=snapshot.calibration,
                location=backend.location,
                models=tuple(_describe_models(settings.model_folder, identity)),
            )


async def list_generations(settings: Settings) -> list[GenerationInfo]:
    """Every generation on this disk and on the Qdrant server, if one is configured."""
    generations = _list_local(settings.data_dir / "index")
    if settings.qdrant_url:
        async with _connect(settings) as backend:
            generations += [_server_info(entry) for entry in await backend.server_generations.list_generations()]
    return generations


def _list_local(folder: Path) -> list[GenerationInfo]:
    current = Generations(folder).current()
    catalogs = {path.name: path / CATALOG_FILE for path in sorted(folder.glob("g[0-9]*"))}
    return [_local_info(name, path, current) for name, path in catalogs.items() if path.exists()]


def _local_info(name: str, path: Path, current: str) -> GenerationInfo:
    with closing(Catalog.open(path)) as catalog:
        totals = catalog.totals()
        return GenerationInfo(
            engine="embedded",
            name=name,
            state="current" if name == current else "superseded",
            pages=totals.pages,
            chunks=totals.chunks,
            model=catalog.get_fact("identity")["model"],
            published_at=catalog.get_fact("published_at"),
        )


def _server_info(generation: ServerGeneration) -> GenerationInfo:
    manifest = generation.manifest
    state = "superseded" if manifest and manifest.state == "published" else "writing"
    return GenerationInfo(
        engine="qdrant",
        name=generation.name,
        state="current" if generation.current else state,
        pages=manifest.pages if manifest else 0,
        chunks=manifest.chunks if manifest else 0,
        model=manifest.model if manifest else "",
        published_at=manifest.published_at if manifest else "",
    )


@asynccontextmanager
async def _connect(settings: Settings) -> AsyncIterator[backends.QdrantBackend]:
    await backends.import_client()
    config = settings.index_config()
    async with backends.connect_qdrant(config, config.url) as server:
        yield backends.qdrant_backend(config, server)


async def copy_index(settings: Settings, source: str, target: str, *, replace: bool, progress: Progress) -> CopyResult:
    """Copy the index from one engine to the other, and verify the copy before publishing it.

    Raises Conflict if the target has another book, unless `replace` is true.
    """
    if {source, target} != set(ENGINES):
        raise InputError("copy the book from 'embedded' to 'qdrant', or from 'qdrant' to 'embedded'.")
    local = Generations(settings.data_dir / "index")
    async with _connect(settings) as backend:
        copy = _copy_to_server if source == "embedded" else _copy_to_disk
        return await copy(local, backend, replace=replace, progress=progress)


async def _copy_to_server(
    local: Generations, backend: backends.QdrantBackend, *, replace: bool, progress: Progress
) -> CopyResult:
    from bythebook.index.qdrant.mirror import push, read_manifest

    remote = backend.server_generations
    with local.reading() as folder:
        manifest = read_manifest(folder / CATALOG_FILE, chunking={}, coverage={})
        index = folder.parent
    current = await remote.current()
    name = ""
    if not current or (await remote.manifest(current)).digest != manifest.digest:
        if current and not replace:
            raise _conflict_error(f"{remote.alias!r} on {remote.server.address}")
        coverage = {source: asdict(entry) for source, entry in load_coverage(index).items()}
        name, manifest = await push(
            local,
            remote,
            after=current,
            params=backend.mirror.params,
            metadata={"coverage": coverage},
            progress=progress,
        )
        await remote.sweep()
    return CopyResult("embedded", "qdrant", name, manifest.pages, manifest.chunks)


async def _copy_to_disk(
    local: Generations, backend: backends.QdrantBackend, *, replace: bool, progress: Progress
) -> CopyResult:
    from bythebook.index.qdrant.mirror import local_digest, pull

    remote = backend.server_generations
    current = await remote.current()
    if not current:
        raise NotFound(f"there is no book {remote.alias!r} on {remote.server.address} to copy.")
    manifest = await remote.manifest(current)
    name = ""
    if local_digest(local) != manifest.digest:
        if local.current() and not replace:
            raise _conflict_error("this data folder")
        await pull(remote, current, manifest, local, cache=backend.mirror.catalogs, progress=progress)
        name = local.current()
    return CopyResult("qdrant", "embedded", name, manifest.pages, manifest.chunks)


def _conflict_error(target: str) -> Conflict:
    return Conflict(f"there is another book in {target} already. Add --replace to publish this one in its place.")


async def remove_generation(settings: Settings, name: str) -> None:
    """Remove a generation from the Qdrant server. The current one cannot be removed."""
    async with _connect(settings) as backend:
        await backend.server_generations.remove(name)


async def attach_collection(
    settings: Settings, collection: str, *, vector: str, progress: Progress, say: Callable[[str], None]
) -> AttachReport:
    """Use a collection that another program fills as the index of this book. It is read-only."""
    await backends.import_client()
    from bythebook.index.qdrant.attached import Attachment
    from bythebook.ingest.attach import RetrievalModels, attach

    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(backends.connect_qdrant(settings.index_config(), settings.qdrant_url))
        hosted = await open_remote_embedder(settings.embedder_config(""), None, stack)
        local = await stack.enter_async_context(
            installed_embedder(settings.model_folder, DEFAULT_MODEL, say=say, pending=None)
        )
        embedder = hosted or local
        wanted = Attachment(
            url=settings.qdrant_url,
            collection=collection,
            vector=vector or None,
            fields={},
            site_url=settings.site_url,
            identity=asdict(embedder.identity),
            snapshot="",
        )
        reranker = await stack.enter_async_context(installed_reranker(settings.model_folder, fetch=False, say=say))
        models = RetrievalModels(embedder, reader=local if hosted else None, reranker=reranker)
        return await attach(server, wanted, models, data_dir=settings.data_dir, progress=progress)


def detach_collection(settings: Settings) -> str:
    """Use the index of the settings again. Returns the name of the collection that was attached."""
    from bythebook.index.qdrant.attached import attached_catalog_path, read_attachment, remove_attachment

    attachment = read_attachment(settings.data_dir)
    if attachment is None:
        raise NotFound("no collection is attached here.")
    remove_attachment(settings.data_dir)
    attached_catalog_path(settings.data_dir, attachment.snapshot).unlink(missing_ok=True)
    return attachment.collection
