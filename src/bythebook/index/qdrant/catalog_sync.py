"""A catalogue in blocks: how the SQLite file of a generation travels to a server and back.

Two generations share most of their blocks, so that a reader who has the last one fetches only what is new.

A book on a server, opened for reading: its catalogue fetched once, its chunks searched where they are.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
import zlib
from contextlib import closing, suppress
from typing import TYPE_CHECKING, NamedTuple

from bythebook.errors import NotFound, QdrantConnectionError
from bythebook.index import Calibration
from bythebook.index.catalog import Catalogue
from bythebook.index.provider import Edition, check_identity
from bythebook.index.qdrant.store import QdrantStore
from bythebook.index.terms import Words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import ExitStack
    from pathlib import Path

    from bythebook.embeddings import Identity
    from bythebook.index.qdrant.generations import Manifest, ServerGenerations


BLOCK = 1 << 18
AT_ONCE = 16


class Block(NamedTuple):
    """A piece of the file. `number` counts from 1."""

    number: int
    digest: str
    data: bytes

    def as_payload(self) -> dict[str, str]:
        packed = base64.b64encode(zlib.compress(self.data, 6)).decode("ascii")
        return {"digest": self.digest, "data": packed}


def cut(path: Path) -> Iterator[Block]:
    """The blocks of a file, in order."""
    with path.open("rb") as file:
        number = 0
        while data := file.read(BLOCK):
            number += 1
            yield Block(number, hashlib.sha256(data).hexdigest(), data)


def digest_of(blocks: Sequence[str]) -> str:
    """Of a whole file, from the digests of its blocks."""
    return hashlib.sha256("".join(blocks).encode("ascii")).hexdigest()


def unpacked(data: str, *, digest: str) -> bytes:
    """The bytes of a block, which must be what they were."""
    try:
        read = zlib.decompress(base64.b64decode(data, validate=True))
    except (ValueError, zlib.error):
        read = b""
    if hashlib.sha256(read).hexdigest() != digest:
        raise QdrantConnectionError(
            "a block of the catalogue on the Qdrant server is damaged. Run 'bythebook ingest --rebuild' to write the "
            "book anew."
        )
    return read


FRESH_SECONDS = 1.0
"""How long the current generation is taken to be still current: a look goes over the network."""
_KEPT = 2
"""How many catalogues stay on disk: the current one, and the one the next is made from."""


class QdrantLibrary:
    """The generations of a book on a server. Catalogues are kept in `folder`, which may be lost at any time."""

    def __init__(
        self,
        generations: ServerGenerations,
        identity: Identity,
        folder: Path,
        *,
        exact: bool = False,
        fresh_seconds: float = FRESH_SECONDS,
    ) -> None:
        self._generations = generations
        self._identity = identity
        self._folder = folder
        self._exact = exact
        self._fresh_seconds = fresh_seconds
        self._current = ""
        self._seen = float("-inf")
        self._switched = 0

    async def current(self) -> str:
        now, switched = asyncio.get_running_loop().time(), self._generations.switched
        # Whoever has just published here must not wait to read it.
        if now - self._seen >= self._fresh_seconds or switched != self._switched:
            self._current = await self._generations.current()
            self._seen, self._switched = now, switched
        return self._current

    async def open(self, stack: ExitStack) -> Edition:
        name, manifest = await self._found()
        path = await fetch_catalogue(self._generations, name, manifest, self._folder)
        catalogue = stack.enter_context(closing(await asyncio.to_thread(Catalogue.open, path)))
        check_identity(catalogue, self._identity)
        words = Words(catalogue.fact("average_length"))
        store = QdrantStore(self._generations.server, self._generations.collection(name), words, exact=self._exact)
        calibration = Calibration(**catalogue.fact("calibration"))
        return Edition(name, store, catalogue, words, catalogue.chunk_count(), calibration)

    async def _found(self) -> tuple[str, Manifest]:
        name = await self.current()
        if not name:
            raise NotFound(
                f"there is no collection {self._generations.alias!r} on {self._generations.server.address}. Run "
                "'bythebook ingest FOLDER' to make it, or set collection_name to the one you mean."
            )
        try:
            return name, await self._generations.manifest(name)
        except NotFound:
            # It was superseded and removed since the last look.
            self._seen = float("-inf")
            if await self.current() == name:
                raise
            return self._current, await self._generations.manifest(self._current)


async def fetch_catalogue(generations: ServerGenerations, name: str, manifest: Manifest, folder: Path) -> Path:
    """The catalogue of a generation as a file. What an older one on this disk has in common with it is not sent."""
    path = folder / f"{name}.db"
    if _is_whole(path, manifest):
        return path
    older = await asyncio.to_thread(_Older, folder)
    draft = folder / f"{name}.{os.getpid()}.part"
    try:
        with draft.open("wb") as file:
            for first in range(0, len(manifest.blocks), AT_ONCE):
                wanted = dict(enumerate(manifest.blocks[first : first + AT_ONCE], start=first + 1))
                new = [number for number, digest in wanted.items() if not older.has(digest)]
                packed = await generations.blocks(name, new) if new else {}
                for number, digest in wanted.items():
                    arrived = number in new
                    file.write(unpacked(packed.get(number, ""), digest=digest) if arrived else older[digest])
        if not _is_whole(draft, manifest):
            raise QdrantConnectionError(f"the catalogue of {name!r} is not as long as it should be. Try again.")
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    _forget_old(folder)
    return path


def _is_whole(path: Path, manifest: Manifest) -> bool:
    return path.exists() and path.stat().st_size == manifest.size


class _Older:
    """The blocks of the newest catalogue that is on this disk already."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = max(folder.glob("g*.db"), default=None)
        found = cut(self._path) if self._path else ()
        self._numbers = {block.digest: block.number for block in found}

    def has(self, digest: str) -> bool:
        return digest in self._numbers

    def __getitem__(self, digest: str) -> bytes:
        if self._path is None:
            raise KeyError(digest)
        with self._path.open("rb") as file:
            file.seek((self._numbers[digest] - 1) * BLOCK)
            return file.read(BLOCK)


def _forget_old(folder: Path) -> None:
    """Whoever has one of them open keeps what is in it."""
    for path in sorted(folder.glob("g*.db"))[:-_KEPT]:
        with suppress(OSError):
            path.unlink()
