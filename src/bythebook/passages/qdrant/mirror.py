"""The mirror: what the server has, on the disk of whoever ingests, so that only what changed is read and embedded.

qdrant/web_documents-1a2b3c4d/
├── BASE          which generation of the server the mirror was made from or sent as
├── catalogues/   the catalogues of generations that were opened for reading
└── CURRENT, g000003/, ...   as the index of a book on disk
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any, NamedTuple

from bythebook.passages.catalogue import Catalogue
from bythebook.passages.edge import EdgeStore
from bythebook.passages.generations import Generations
from bythebook.passages.qdrant.copying import digest_here, pull, push
from bythebook.passages.shelf import CATALOGUE, SHARD
from bythebook.passages.words import Words
from bythebook.vectors import Identity
from bythebook.vectors.journal import Journal

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from bythebook.passages.qdrant.copying import Progress
    from bythebook.passages.qdrant.generations import Making, ServerGenerations

_BASE = "BASE"
_AT_ONCE = 256


class _Base(NamedTuple):
    name: str = ""
    digest: str = ""


class Mirror:
    """A copy of the server's book that an ingest changes and sends back."""

    def __init__(self, there: ServerGenerations, folder: Path, making: Making) -> None:
        self._there = there
        self.making = making
        self.folder = folder
        self.generations = Generations(folder)

    @property
    def catalogues(self) -> Path:
        return self.folder / "catalogues"

    async def catch_up(self, *, progress: Progress) -> None:
        """Bring the mirror up to the server, unless it is already, or ahead by what could not be sent."""
        current = await self._there.current()
        if current == self._base().name:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        if current:
            await self._pull(current, progress)
        else:
            await self._forget()

    async def _pull(self, current: str, progress: Progress) -> None:
        manifest = await self._there.manifest(current)
        if manifest.digest != await asyncio.to_thread(digest_here, self.generations):
            with ExitStack() as stack:
                before = stack.enter_context(self.generations.reading()) if self.generations.current() else None
                await pull(self._there, current, manifest, self.generations, cache=self.catalogues, progress=progress)
                if before:
                    await self._keep_vectors(before)
        self._note(_Base(current, manifest.digest))

    async def _forget(self) -> None:
        """Begin from nothing, as the server has, but without paying for a vector twice."""
        with ExitStack() as stack:
            before = stack.enter_context(self.generations.reading()) if self.generations.current() else None
            (self.folder / "CURRENT").unlink(missing_ok=True)
            if before:
                await self._keep_vectors(before)
        self._note(_Base())

    async def publish(self, *, notes: Mapping[str, Any], progress: Progress) -> str:
        """Send what the server does not have yet. Returns the name of the generation, empty if there was nothing."""
        digest, base = await asyncio.to_thread(digest_here, self.generations), self._base()
        if not digest or digest == base.digest:
            return ""
        name, manifest = await push(
            self.generations, self._there, after=base.name, making=self.making, notes=notes, progress=progress
        )
        self._note(_Base(name, manifest.digest))
        return name

    async def _keep_vectors(self, before: Path) -> None:
        """Write down the vectors of what was read in here and is not in the book now."""
        with ExitStack() as stack:
            catalogue = stack.enter_context(closing(Catalogue.open(before / CATALOGUE)))
            identity, contents = Identity(**catalogue.fact("identity")), self._contents()
            lost = {
                hashed: chunk_id
                for hashed, chunk_id in catalogue.chunk_ids_by_content().items()
                if hashed not in contents
            }
            store = EdgeStore.open(before / SHARD, Words(catalogue.fact("average_length")))
            stack.enter_context(closing(store))
            journal = stack.enter_context(closing(Journal(self.folder, identity)))
            ids = [chunk_id for hashed, chunk_id in lost.items() if hashed not in journal.vectors]
            for first in range(0, len(ids), _AT_ONCE):
                for passage in (await store.fetch(ids[first : first + _AT_ONCE])).values():
                    journal.add(passage.chunk.content_hash, passage.vector)

    def _contents(self) -> set[str]:
        """The hashes of all that the mirror has now."""
        if not self.generations.current():
            return set()
        with self.generations.reading() as folder, closing(Catalogue.open(folder / CATALOGUE)) as catalogue:
            return set(catalogue.chunk_ids_by_content())

    def _base(self) -> _Base:
        try:
            return _Base(**json.loads((self.folder / _BASE).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return _Base()

    def _note(self, base: _Base) -> None:
        new = self.folder / f"{_BASE}.new"
        new.write_text(json.dumps(base._asdict()), encoding="utf-8")
        new.replace(self.folder / _BASE)


def mirror_folder(data_dir: Path, url: str, collection: str) -> Path:
    """Where the mirror of a book is kept: another one for each server and name."""
    key = hashlib.sha256(f"{url.rstrip('/')} {collection}".encode()).hexdigest()[:8]
    return data_dir / "qdrant" / f"{collection}-{key}"
