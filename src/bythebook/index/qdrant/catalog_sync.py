"""Transfers the SQLite catalog of a generation to and from a Qdrant server in blocks, and opens it as a snapshot.

Successive generations share most of their blocks, so a reader with the previous catalog only fetches the new blocks.
Chunks stay on the server and are searched there.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
import zlib
from contextlib import ExitStack, closing, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from bythebook.errors import NotFound, QdrantConnectionError
from bythebook.index.catalog import Catalog
from bythebook.index.provider import IndexSnapshot, build_snapshot
from bythebook.index.qdrant.store import QdrantStore

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from bythebook.embeddings import EmbedderId
    from bythebook.index.qdrant.generations import Manifest, ServerGenerations
    from bythebook.index.terms import Bm25Terms

BLOCK_BYTES = 1 << 18
BLOCKS_PER_REQUEST = 16
REFRESH_SECONDS = 1.0
"""How long the name of the current generation is cached: reading it is a network request."""
_CATALOGS_KEPT = 2
"""Catalogs that stay on disk: the current one, and the previous one for its blocks."""


class CatalogBlock(NamedTuple):
    """A block of the file. `number` counts from 1."""

    number: int
    digest: str
    data: bytes

    def as_payload(self) -> dict[str, Any]:
        compressed = base64.b64encode(zlib.compress(self.data, 6)).decode("ascii")
        return {"digest": self.digest, "data": compressed}


def split_blocks(path: Path) -> Iterator[CatalogBlock]:
    """The blocks of a file, in order."""
    with path.open("rb") as file:
        number = 0
        while data := file.read(BLOCK_BYTES):
            number += 1
            yield CatalogBlock(number, hashlib.sha256(data).hexdigest(), data)


def combine_digests(blocks: Sequence[str]) -> str:
    """The digest of a file, computed from the digests of its blocks."""
    return hashlib.sha256("".join(blocks).encode("ascii")).hexdigest()


def unpack_block(data: str, *, digest: str) -> bytes:
    """The content of a block. Raises QdrantConnectionError if it does not match the digest."""
    try:
        content = zlib.decompress(base64.b64decode(data, validate=True))
    except (ValueError, zlib.error):
        content = b""
    if hashlib.sha256(content).hexdigest() != digest:
        raise QdrantConnectionError(
            "a block of the catalog on the Qdrant server is damaged. Run 'bythebook ingest --rebuild' to write the "
            "index again."
        )
    return content


class QdrantSnapshotLoader:
    """Opens generations on a server. Their catalogs are cached in `folder`, which may be deleted at any time."""

    def __init__(
        self,
        generations: ServerGenerations,
        identity: EmbedderId,
        folder: Path,
        *,
        exact: bool = False,
        refresh_seconds: float = REFRESH_SECONDS,
    ) -> None:
        self._generations = generations
        self._identity = identity
        self._folder = folder
        self._exact = exact
        self._refresh_seconds = refresh_seconds
        self._current = ""
        self._checked_at = float("-inf")
        self._switch_count = 0

    async def current(self) -> str:
        now, switch_count = asyncio.get_running_loop().time(), self._generations.switch_count
        # A generation that this process has just published must be visible at once.
        if now - self._checked_at >= self._refresh_seconds or switch_count != self._switch_count:
            self._current = await self._generations.current()
            self._checked_at, self._switch_count = now, switch_count
        return self._current

    async def open(self, stack: ExitStack) -> IndexSnapshot:
        name, manifest = await self._find_current()
        path = await fetch_catalog(self._generations, name, manifest, self._folder)
        catalog = stack.enter_context(closing(await asyncio.to_thread(Catalog.open, path)))
        server, collection = self._generations.server, self._generations.collection(name)

        def open_store(bm25: Bm25Terms) -> QdrantStore:
            return QdrantStore(server, collection, bm25, exact=self._exact)

        return build_snapshot(name, catalog, self._identity, open_store)

    async def _find_current(self) -> tuple[str, Manifest]:
        name = await self.current()
        if not name:
            raise NotFound(
                f"there is no collection {self._generations.alias!r} on {self._generations.server.address}. Run "
                "'bythebook ingest FOLDER' to make it, or set collection_name to the one you mean."
            )
        try:
            return name, await self._generations.manifest(name)
        except NotFound:
            # It was superseded and removed after its name was cached.
            self._checked_at = float("-inf")
            if await self.current() == name:
                raise
            return self._current, await self._generations.manifest(self._current)


async def fetch_catalog(generations: ServerGenerations, name: str, manifest: Manifest, folder: Path) -> Path:
    """The catalog of a generation as a file. Blocks of an older catalog on this disk are reused."""
    path = folder / f"{name}.db"
    if _is_complete(path, manifest):
        return path
    cached = await asyncio.to_thread(_CachedBlocks, folder)
    draft = folder / f"{name}.{os.getpid()}.part"
    try:
        with draft.open("wb") as file:
            for first in range(0, len(manifest.blocks), BLOCKS_PER_REQUEST):
                wanted = dict(enumerate(manifest.blocks[first : first + BLOCKS_PER_REQUEST], start=first + 1))
                missing = [number for number, digest in wanted.items() if not cached.has(digest)]
                blocks = await generations.fetch_blocks(name, missing) if missing else {}
                for number, digest in wanted.items():
                    is_new = number in missing
                    file.write(unpack_block(blocks.get(number, ""), digest=digest) if is_new else cached[digest])
        if not _is_complete(draft, manifest):
            raise QdrantConnectionError(f"the catalog of {name!r} was not transferred completely. Try again.")
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    _remove_old(folder)
    return path


def _is_complete(path: Path, manifest: Manifest) -> bool:
    return path.exists() and path.stat().st_size == manifest.size


class _CachedBlocks:
    """The blocks of the newest catalog on this disk."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = max(folder.glob("g*.db"), default=None)
        blocks = split_blocks(self._path) if self._path else ()
        self._numbers = {block.digest: block.number for block in blocks}

    def has(self, digest: str) -> bool:
        return digest in self._numbers

    def __getitem__(self, digest: str) -> bytes:
        if self._path is None:
            raise KeyError(digest)
        with self._path.open("rb") as file:
            file.seek((self._numbers[digest] - 1) * BLOCK_BYTES)
            return file.read(BLOCK_BYTES)


def _remove_old(folder: Path) -> None:
    """Delete older catalogs. A process that has one open can still read it."""
    for path in sorted(folder.glob("g*.db"))[:-_CATALOGS_KEPT]:
        with suppress(OSError):
            path.unlink()
