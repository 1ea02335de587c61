"""Copying a generation: from this disk to a server, and from a server to this disk."""

from __future__ import annotations

import asyncio
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

from bythebook.errors import QdrantConnectionError, RetrievalError
from bythebook.passages import EVERYWHERE
from bythebook.passages.catalogue import Catalogue
from bythebook.passages.edge import EdgeStore
from bythebook.passages.qdrant.blocks import cut, digest_of
from bythebook.passages.qdrant.generations import with_digest
from bythebook.passages.qdrant.library import fetch_catalogue
from bythebook.passages.qdrant.store import AT_ONCE, QdrantStore
from bythebook.passages.shelf import CATALOGUE, SHARD
from bythebook.passages.words import Words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from bythebook.passages import PassageStore
    from bythebook.passages.generations import Generations
    from bythebook.passages.qdrant.generations import Making, ServerGenerations
    from bythebook.passages.qdrant.manifest import Manifest

    Progress = Callable[[str, int, int], None]
    """How far a stage has come: its name, how much is done, of how much."""

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
