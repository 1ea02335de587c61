"""A local mirror of a Qdrant server's index, so that an ingest only reads and embeds what has changed.

    qdrant/web_documents-1a2b3c4d/
    ├── BASE          the generation of the server that the mirror equals or was changed from
    ├── catalogs/     cached catalogs of generations that were opened for reading
    └── CURRENT, g000003/, ...   as in an index on disk

`push` copies a generation from this disk to a server, `pull` from a server to this disk.
"""

import asyncio
import hashlib
import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, NamedTuple

from bythebook.embeddings import EmbedderId
from bythebook.embeddings.checkpoint import VectorCheckpoint
from bythebook.errors import QdrantConnectionError, RetrievalError
from bythebook.index import NO_FILTERS, PassageStore
from bythebook.index.catalog import Catalog
from bythebook.index.edge_store import EdgeStore
from bythebook.index.generations import Generations
from bythebook.index.provider import CATALOG_FILE, SHARD_FOLDER
from bythebook.index.qdrant.catalog_sync import combine_digests, fetch_catalog, split_blocks
from bythebook.index.qdrant.generations import CollectionParams, Manifest, ServerGenerations, build_manifest
from bythebook.index.qdrant.store import POINTS_PER_REQUEST, QdrantStore
from bythebook.index.terms import Bm25Terms
from bythebook.telemetry import Progress

_BASE = "BASE"
_CHUNKS_PER_READ = 256
HEARTBEAT_SECONDS = 30.0
_CHUNKS_COMPARED = 64
"""Chunks that are read back after a copy and compared byte by byte, spread over the book."""


class _Base(NamedTuple):
    name: str = ""
    digest: str = ""


class Mirror:
    """A copy of the server's index that an ingest changes and pushes back."""

    def __init__(self, server_generations: ServerGenerations, folder: Path, params: CollectionParams) -> None:
        self._server_generations = server_generations
        self.params = params
        self.folder = folder
        self.generations = Generations(folder)

    @property
    def catalogs(self) -> Path:
        return self.folder / "catalogs"

    async def catch_up(self, *, progress: Progress) -> None:
        """Pull the current generation of the server, unless the mirror equals it or is based on it."""
        current = await self._server_generations.current()
        if current == self._read_base().name:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        manifest = await self._server_generations.manifest(current) if current else None
        if manifest is None or manifest.digest != await asyncio.to_thread(local_digest, self.generations):
            await self._replace(current, manifest, progress)
        self._write_base(_Base(current, manifest.digest if manifest else ""))

    async def _replace(self, current: str, manifest: Manifest | None, progress: Progress) -> None:
        """Take over the generation of the server, or become empty like it. Vectors are saved, not paid for twice."""
        server, own = self._server_generations, self.generations
        with ExitStack() as stack:
            before = stack.enter_context(own.reading()) if own.current() else None
            if manifest:
                await pull(server, current, manifest, own, cache=self.catalogs, progress=progress)
            else:
                (self.folder / "CURRENT").unlink(missing_ok=True)
            if before:
                await self._save_vectors(before)

    async def publish(self, *, metadata: Mapping[str, Any], progress: Progress) -> str:
        """Push the mirror if it differs from the server. Returns the name of the generation, empty if it does not."""
        digest, base = await asyncio.to_thread(local_digest, self.generations), self._read_base()
        if not digest or digest == base.digest:
            return ""
        name, manifest = await push(
            self.generations,
            self._server_generations,
            after=base.name,
            params=self.params,
            metadata=metadata,
            progress=progress,
        )
        self._write_base(_Base(name, manifest.digest))
        return name

    async def _save_vectors(self, before: Path) -> None:
        """Save the vectors of chunks that the mirror no longer has to the checkpoint."""
        with ExitStack() as stack:
            catalog = stack.enter_context(closing(Catalog.open(before / CATALOG_FILE)))
            identity, current = EmbedderId(**catalog.get_fact("identity")), self._content_hashes()
            removed = {
                content_hash: chunk_id
                for content_hash, chunk_id in catalog.chunk_ids_by_content().items()
                if content_hash not in current
            }
            store = EdgeStore.open(before / SHARD_FOLDER, Bm25Terms(catalog.get_fact("average_length")))
            stack.enter_context(closing(store))
            checkpoint = stack.enter_context(closing(VectorCheckpoint(self.folder, identity)))
            ids = [chunk_id for content_hash, chunk_id in removed.items() if content_hash not in checkpoint.vectors]
            for first in range(0, len(ids), _CHUNKS_PER_READ):
                for passage in (await store.fetch(ids[first : first + _CHUNKS_PER_READ])).values():
                    checkpoint.add(passage.chunk.content_hash, passage.vector)

    def _content_hashes(self) -> set[str]:
        """The content hashes of the mirror's current generation."""
        if not self.generations.current():
            return set()
        with self.generations.reading() as folder, closing(Catalog.open(folder / CATALOG_FILE)) as catalog:
            return set(catalog.chunk_ids_by_content())

    def _read_base(self) -> _Base:
        try:
            return _Base(**json.loads((self.folder / _BASE).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return _Base()

    def _write_base(self, base: _Base) -> None:
        new = self.folder / f"{_BASE}.new"
        new.write_text(json.dumps(base._asdict()), encoding="utf-8")
        new.replace(self.folder / _BASE)


def mirror_folder(data_dir: Path, url: str, collection: str) -> Path:
    """The folder of the mirror: a separate one for each server and collection."""
    key = hashlib.sha256(f"{url.rstrip('/')} {collection}".encode()).hexdigest()[:8]
    return data_dir / "qdrant" / f"{collection}-{key}"


def read_manifest(path: Path, *, chunking: Mapping[str, int], coverage: Mapping[str, Any]) -> Manifest:
    """Build the manifest of a generation from its catalog file."""
    with closing(Catalog.open(path)) as catalog:
        totals, identity = catalog.totals(), catalog.get_fact("identity")
        facts = {
            "pages": totals.pages,
            "chunks": totals.chunks,
            "model": identity["model"],
            "dimension": identity["dimension"],
            "average_length": catalog.get_fact("average_length"),
            "calibration": catalog.get_fact("calibration"),
            "chunking": dict(chunking),
            "coverage": dict(coverage),
        }
    return build_manifest(path, facts)


def local_digest(local: Generations) -> str:
    """The digest of the current generation on this disk, empty if there is none."""
    if not local.current():
        return ""
    with local.reading() as folder:
        return combine_digests([block.digest for block in split_blocks(folder / CATALOG_FILE)])


async def push(
    local: Generations,
    remote: ServerGenerations,
    *,
    after: str,
    params: CollectionParams,
    metadata: Mapping[str, Any],
    progress: Progress,
) -> tuple[str, Manifest]:
    """Publish the current local generation on the server, as the successor of `after`. Returns its name there.

    If it is killed, readers still see the old generation, and the next run resumes it.
    """
    with local.reading() as folder:
        manifest = await asyncio.to_thread(
            read_manifest,
            folder / CATALOG_FILE,
            chunking=metadata.get("chunking", {}),
            coverage=metadata.get("coverage", {}),
        )
        name = await remote.begin(manifest, params)
        with closing(Catalog.open(folder / CATALOG_FILE)) as catalog:
            bm25 = Bm25Terms(manifest.average_length)
            target = QdrantStore(remote.server, remote.collection(name), bm25)
            ids = catalog.all_chunk_ids()
            with closing(EdgeStore.open(folder / SHARD_FOLDER, bm25)) as source:
                await _send_chunks(source, target, ids, heartbeat=lambda: remote.heartbeat(name), progress=progress)
                await _verify_copy(source, target, ids)
        await remote.send_catalog(name, folder / CATALOG_FILE)
        await remote.publish(name, after=after)
    return name, manifest


async def _send_chunks(
    source: PassageStore,
    target: QdrantStore,
    ids: Sequence[str],
    *,
    heartbeat: Callable[[], Any],
    progress: Progress,
) -> None:
    last_heartbeat = time.monotonic()
    resumed = await target.count(NO_FILTERS) > 0
    for first in range(0, len(ids), POINTS_PER_REQUEST):
        batch = ids[first : first + POINTS_PER_REQUEST]
        present = await target.find_existing(batch) if resumed else set()
        missing = [each for each in batch if each not in present]
        if missing:
            await target.update(put=list((await source.fetch(missing)).values()), drop=[])
        progress("sending", first + len(batch), len(ids))
        if time.monotonic() - last_heartbeat > HEARTBEAT_SECONDS:
            await heartbeat()
            last_heartbeat = time.monotonic()


async def pull(
    remote: ServerGenerations, name: str, manifest: Manifest, local: Generations, *, cache: Path, progress: Progress
) -> None:
    """Publish a generation of the server on this disk. If it is killed, readers still see the old generation."""
    catalog_file = await fetch_catalog(remote, name, manifest, cache)
    with local.writing():
        local.sweep()
        draft = local.empty_draft()
        await asyncio.to_thread(shutil.copyfile, catalog_file, draft / CATALOG_FILE)
        bm25 = Bm25Terms(manifest.average_length)
        source = QdrantStore(remote.server, remote.collection(name), bm25)
        with closing(Catalog.open(draft / CATALOG_FILE)) as catalog:
            ids = catalog.all_chunk_ids()
        with closing(EdgeStore.create(draft / SHARD_FOLDER, bm25, dimension=manifest.dimension)) as target:
            for first in range(0, len(ids), POINTS_PER_REQUEST):
                batch = ids[first : first + POINTS_PER_REQUEST]
                await target.update(put=list((await source.fetch(batch)).values()), drop=[])
                progress("fetching", first + len(batch), len(ids))
            await _verify_copy(source, target, ids)
        # The engine deletes its write-ahead files on the first open. A published generation must not change any more.
        EdgeStore.open(draft / SHARD_FOLDER, bm25).close()
        local.publish()
        local.sweep()


async def _verify_copy(source: PassageStore, target: PassageStore, ids: Sequence[str]) -> None:
    """Raises RetrievalError unless the copy has every chunk and a sample of them is identical byte by byte."""
    count = await target.count(NO_FILTERS)
    if count != len(ids):
        raise QdrantConnectionError(
            f"the copy has {count} chunks, and the book {len(ids)}. It was not published. Run the command again."
        )
    sample = ids[:: max(len(ids) // _CHUNKS_COMPARED, 1)]
    expected, copies = await source.fetch(sample), await target.fetch(sample)
    for chunk_id, passage in expected.items():
        copied = copies.get(chunk_id)
        if copied is None or copied.chunk != passage.chunk or copied.vector.tobytes() != passage.vector.tobytes():
            raise RetrievalError(
                f"the chunk {chunk_id} differs between the book and the copy. It was not published. Does a proxy "
                "between this machine and the Qdrant server change the data?"
            )
