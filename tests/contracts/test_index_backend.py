"""The contract of every index backend and of the snapshot loader it returns."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from qdrant_client import models

from bythebook.chunking.splitter import ChunkSizes
from bythebook.errors import ConfigurationError, NotFound
from bythebook.index import NO_FILTERS
from bythebook.index.backends import AttachedBackend, IndexBackend, IndexConfig, LocalBackend, qdrant_backend
from bythebook.index.qdrant.attached import Attachment, read_attachment
from bythebook.index.qdrant.client import QdrantAddress, open_server
from bythebook.ingest.attach import RetrievalModels, attach
from bythebook.ingest.pipeline import IngestContext, ingest
from bythebook.sources.folder import Folder
from tests.support.qdrant_book import unseen
from tests.support.qdrant_server import running_qdrant
from tests.support.word_embedder import DIMENSION, WordEmbedder, count_words, vector_of

if TYPE_CHECKING:
    from bythebook.index.provider import IndexSnapshot, SnapshotLoader
    from bythebook.index.qdrant.client import QdrantServer

EMBEDDER_ID = WordEmbedder().identity
LAMP, HORN = "The lamp burns colza oil.", "The fog horn sounds twice a minute."

Backends = Callable[[Path], AbstractAsyncContextManager[IndexBackend]]


@asynccontextmanager
async def local(folder: Path) -> AsyncIterator[IndexBackend]:
    yield LocalBackend(folder / "index")


@asynccontextmanager
async def qdrant(folder: Path) -> AsyncIterator[IndexBackend]:
    async with _server() as server:
        yield qdrant_backend(IndexConfig(folder, url=server.address, collection="book"), server)


@asynccontextmanager
async def filled_local(folder: Path) -> AsyncIterator[IndexBackend]:
    async with local(folder) as backend:
        await publish(backend, folder, lamp=LAMP, horn=HORN)
        yield backend


@asynccontextmanager
async def filled_qdrant(folder: Path) -> AsyncIterator[IndexBackend]:
    async with qdrant(folder) as backend:
        await publish(backend, folder, lamp=LAMP, horn=HORN)
        yield backend


@asynccontextmanager
async def attached(folder: Path) -> AsyncIterator[IndexBackend]:
    async with _server() as server:
        params = models.VectorParams(size=DIMENSION, distance=models.Distance.COSINE)
        await server.write("filling", lambda client: client.create_collection("theirs", vectors_config=params))
        points = [
            models.PointStruct(
                id=number,
                vector=vector_of(text).tolist(),
                payload={"text": text, "url": f"https://book.example/{number}", "title": f"Page {number}"},
            )
            for number, text in enumerate((LAMP, HORN))
        ]
        await server.write("filling", lambda client: client.upsert("theirs", points, wait=True))
        identity = {"model": EMBEDDER_ID.model, "dimension": EMBEDDER_ID.dimension}
        wanted = Attachment(server.address, "theirs", None, {}, "", identity, snapshot="")
        await attach(server, wanted, RetrievalModels(WordEmbedder()), data_dir=folder, progress=unseen)
        attachment = read_attachment(folder)
        assert attachment is not None
        yield AttachedBackend(server, folder, attachment)


@asynccontextmanager
async def _server() -> AsyncIterator[QdrantServer]:
    with running_qdrant() as running:
        async with open_server(QdrantAddress(running.url), reading_seconds=60.0) as server:
            yield server


async def publish(backend: IndexBackend, folder: Path, **pages: str) -> None:
    source = folder / "pages"
    source.mkdir(exist_ok=True)
    for name, text in pages.items():
        (source / f"{name}.md").write_text(f"# {name}\n\n{text}\n")
    workspace = await backend.open_workspace(progress=unseen)
    context = IngestContext(workspace.folder, workspace.generations, WordEmbedder(), ChunkSizes(limit=60), unseen)
    await ingest(context, [Folder(source)], prune=False, rebuild=False)
    await workspace.publish(chunking={"limit": 60}, progress=unseen)


def loader_of(backend: IndexBackend) -> SnapshotLoader:
    return backend.snapshot_loader(EMBEDDER_ID, count_words)


async def texts_of(snapshot: IndexSnapshot) -> list[str]:
    passages = await snapshot.store.fetch(snapshot.catalog.all_chunk_ids())
    return sorted(passage.chunk.text for passage in passages.values())


WRITABLE: list[Backends] = [local, qdrant]
READABLE: list[Backends] = [filled_local, filled_qdrant, attached]


@pytest.fixture(params=WRITABLE, ids=lambda adapter: adapter.__name__)
async def empty(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[IndexBackend]:
    async with request.param(tmp_path) as backend:
        yield backend


@pytest.fixture(params=READABLE, ids=lambda adapter: adapter.__name__)
async def filled(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[IndexBackend]:
    async with request.param(tmp_path) as backend:
        yield backend


async def test_a_new_backend_has_no_embedder_no_coverage_and_no_snapshot(empty: IndexBackend) -> None:
    loader = loader_of(empty)

    assert await empty.read_embedder_id() is None
    assert await empty.load_coverage() == {}
    assert await loader.current() == ""
    with ExitStack() as stack, pytest.raises(NotFound):
        await loader.open(stack)


async def test_a_published_generation_becomes_the_current_snapshot(empty: IndexBackend, tmp_path: Path) -> None:
    loader = loader_of(empty)
    await publish(empty, tmp_path, lamp=LAMP)

    with ExitStack() as stack:
        snapshot = await loader.open(stack)
        assert await loader.current() == snapshot.name != ""
        assert await texts_of(snapshot) == [LAMP]


async def test_an_open_snapshot_does_not_change_when_a_generation_is_published(
    empty: IndexBackend, tmp_path: Path
) -> None:
    loader = loader_of(empty)
    await publish(empty, tmp_path, lamp=LAMP)
    with ExitStack() as stack:
        first = await loader.open(stack)
        await publish(empty, tmp_path, horn=HORN)
        second = await loader.open(stack)

        assert (await texts_of(first), first.chunk_count) == ([LAMP], 1)
        assert (await texts_of(second), second.chunk_count) == ([HORN, LAMP], 2)
        assert await loader.current() == second.name != first.name


async def test_an_ingest_without_changes_keeps_the_content(empty: IndexBackend, tmp_path: Path) -> None:
    await publish(empty, tmp_path, lamp=LAMP)
    before = await loader_of(empty).current()
    await publish(empty, tmp_path)

    with ExitStack() as stack:
        snapshot = await loader_of(empty).open(stack)
        assert await texts_of(snapshot) == [LAMP]
        assert snapshot.name >= before


async def test_coverage_has_an_entry_for_each_source(empty: IndexBackend, tmp_path: Path) -> None:
    await publish(empty, tmp_path, lamp=LAMP, horn=HORN)

    (coverage,) = (await empty.load_coverage()).values()

    assert (coverage.listed, coverage.skipped) == (2, [])


async def test_the_embedder_of_the_index_is_known(filled: IndexBackend) -> None:
    assert await filled.read_embedder_id() == EMBEDDER_ID


async def test_a_snapshot_can_be_searched(filled: IndexBackend) -> None:
    with ExitStack() as stack:
        snapshot = await loader_of(filled).open(stack)
        found = await snapshot.store.search(vector_of(HORN), HORN, limit=1, filters=NO_FILTERS)
        passages = await snapshot.store.fetch([candidate.chunk_id for candidate in found])

        assert [passage.chunk.text for passage in passages.values()] == [HORN]
        assert snapshot.chunk_count == snapshot.catalog.totals().chunks == 2


async def test_the_name_of_a_snapshot_is_the_current_one(filled: IndexBackend) -> None:
    loader = loader_of(filled)
    with ExitStack() as stack:
        assert (await loader.open(stack)).name == await loader.current() != ""


async def test_an_index_of_another_embedder_is_rejected(filled: IndexBackend) -> None:
    loader = filled.snapshot_loader(replace(EMBEDDER_ID, model="others"), count_words)
    with ExitStack() as stack, pytest.raises(ConfigurationError, match="was indexed with 'words'"):
        await loader.open(stack)


async def test_the_location_names_the_engine(filled: IndexBackend) -> None:
    location = filled.location

    assert location.engine in ("embedded", "qdrant")
    assert bool(location.url) == bool(location.collection) == (location.engine == "qdrant")


async def test_an_attached_collection_has_no_workspace(tmp_path: Path) -> None:
    async with attached(tmp_path) as backend:
        assert backend.location.attached
        with pytest.raises(ConfigurationError, match="nothing is written to it"):
            await backend.open_workspace(progress=unseen)
