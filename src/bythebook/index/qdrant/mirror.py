"""The mirror: what the server has, on the disk of whoever ingests, so that only what changed is read and embedded.

qdrant/web_documents-1a2b3c4d/
├── BASE          which generation of the server the mirror was made from or sent as
├── catalogues/   the catalogues of generations that were opened for reading
└── CURRENT, g000003/, ...   as the index of a book on disk

Copying a generation: from this disk to a server, and from a server to this disk.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any, NamedTuple

from bythebook.embeddings import Identity
from bythebook.embeddings.checkpoint import Journal
from bythebook.errors import QdrantConnectionError, RetrievalError
from bythebook.index import EVERYWHERE
from bythebook.index.catalog import Catalogue
from bythebook.index.edge_store import EdgeStore
from bythebook.index.generations import Generations
from bythebook.index.provider import CATALOGUE, SHARD
from bythebook.index.qdrant.catalog_sync import cut, digest_of, fetch_catalogue
from bythebook.index.qdrant.generations import with_digest
from bythebook.index.qdrant.store import AT_ONCE, QdrantStore
from bythebook.index.terms import Words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from bythebook.index import PassageStore
    from bythebook.index.qdrant.generations import Making, Manifest, ServerGenerations

    Progress = Callable[[str, int, int], None]
    """How far a stage has come: its name, how much is done, of how much."""


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


SIGN_OF_LIFE_SECONDS = 30.0
_COMPARED = 64
"""How many chunks are read back after copying and compared to the bit, spread over the book."""


def manifest_of(path: Path, *, chunking: Mapping[str, int], coverage: Mapping[str, Any]) -> Manifest:
    """What there is to say of a generation whose catalogue is this file."""
    with closing(Catalogue.open(path)) as catalogue:
        totals, identity = catalogue.totals(), catalogue.fact("identity")
        facts = {
            "pages": totals.pages,
            "chunks": totals.chunks,
            "model": identity["model"],
            "dimension": identity["dimension"],
            "average_length": catalogue.fact("average_length"),
            "calibration": catalogue.fact("calibration"),
            "chunking": dict(chunking),
            "coverage": dict(coverage),
        }
    return with_digest(path, facts)


def digest_here(here: Generations) -> str:
    """Of what is current on this disk, empty where there is nothing."""
    if not here.current():
        return ""
    with here.reading() as folder:
        return digest_of([block.digest for block in cut(folder / CATALOGUE)])


async def push(
    here: Generations,
    there: ServerGenerations,
    *,
    after: str,
    making: Making,
    notes: Mapping[str, Any],
    progress: Progress,
) -> tuple[str, Manifest]:
    """Make what is current here current there, in place of what is current there now. Returns its name there.

    Killed at any moment it has changed nothing for readers, and goes on where it was when it is run again.
    """
    with here.reading() as folder:
        made = await asyncio.to_thread(
            manifest_of, folder / CATALOGUE, chunking=notes.get("chunking", {}), coverage=notes.get("coverage", {})
        )
        name = await there.begin(made, making)
        with closing(Catalogue.open(folder / CATALOGUE)) as catalogue:
            words = Words(made.average_length)
            target = QdrantStore(there.server, there.collection(name), words)
            ids = catalogue.all_chunk_ids()
            with closing(EdgeStore.open(folder / SHARD, words)) as source:
                await _send(source, target, ids, alive=lambda: there.alive(name), progress=progress)
                await _compare(source, target, ids)
        await there.send_catalogue(name, folder / CATALOGUE)
        await there.publish(name, after=after)
    return name, made


async def _send(
    source: PassageStore,
    target: QdrantStore,
    ids: Sequence[str],
    *,
    alive: Callable[[], Any],
    progress: Progress,
) -> None:
    seen = time.monotonic()
    begun = await target.count(EVERYWHERE) > 0
    for first in range(0, len(ids), AT_ONCE):
        batch = ids[first : first + AT_ONCE]
        there = await target.present(batch) if begun else set()
        missing = [each for each in batch if each not in there]
        if missing:
            await target.change(put=list((await source.fetch(missing)).values()), drop=[])
        progress("sending", first + len(batch), len(ids))
        if time.monotonic() - seen > SIGN_OF_LIFE_SECONDS:
            await alive()
            seen = time.monotonic()


async def pull(
    there: ServerGenerations, name: str, manifest: Manifest, here: Generations, *, cache: Path, progress: Progress
) -> None:
    """Make a generation of the server current here. Killed at any moment it has changed nothing for readers."""
    catalogue_file = await fetch_catalogue(there, name, manifest, cache)
    with here.writing():
        here.sweep()
        draft = here.empty_draft()
        await asyncio.to_thread(_copy, catalogue_file, draft / CATALOGUE)
        words = Words(manifest.average_length)
        source = QdrantStore(there.server, there.collection(name), words)
        with closing(Catalogue.open(draft / CATALOGUE)) as catalogue:
            ids = catalogue.all_chunk_ids()
        with closing(EdgeStore.create(draft / SHARD, words, dimension=manifest.dimension)) as target:
            for first in range(0, len(ids), AT_ONCE):
                batch = ids[first : first + AT_ONCE]
                await target.change(put=list((await source.fetch(batch)).values()), drop=[])
                progress("fetching", first + len(batch), len(ids))
            await _compare(source, target, ids)
        # The engine clears journals away when it first opens what was written. Once published, nothing may go away.
        EdgeStore.open(draft / SHARD, words).close()
        here.publish()
        here.sweep()


def _copy(source: Path, target: Path) -> None:
    import shutil

    shutil.copyfile(source, target)


async def _compare(source: PassageStore, target: PassageStore, ids: Sequence[str]) -> None:
    """Raises RetrievalError unless the copy has every chunk, and some of them, read back, are the same to the bit."""
    there = await target.count(EVERYWHERE)
    if there != len(ids):
        raise QdrantConnectionError(
            f"the copy has {there} chunks, and the book {len(ids)}. It was not published. Run the command again."
        )
    some = ids[:: max(len(ids) // _COMPARED, 1)]
    ours, theirs = await source.fetch(some), await target.fetch(some)
    for chunk_id, passage in ours.items():
        copied = theirs.get(chunk_id)
        if copied is None or copied.chunk != passage.chunk or copied.vector.tobytes() != passage.vector.tobytes():
            raise RetrievalError(
                f"the chunk {chunk_id} came back from the copy other than it was sent. It was not published. Does "
                "something between here and the Qdrant server change what is sent?"
            )
