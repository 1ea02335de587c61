"""A process that reads the book repeatedly and fails if it is ever inconsistent.

python index_reader.py INDEX MODEL DIMENSION    reads until its input is closed, then prints the reads by generation
"""

from __future__ import annotations

import asyncio
import json
import select
import sys
from collections import Counter
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

from bythebook.embeddings import EmbedderId
from bythebook.index import NO_FILTERS
from bythebook.index.generations import Generations
from bythebook.index.provider import IndexProvider, LocalSnapshotLoader, open_snapshot

if TYPE_CHECKING:
    from bythebook.index.provider import IndexSnapshot


async def assert_whole(snapshot: IndexSnapshot) -> None:
    """The catalog and the store have the same chunks, and every chunk is a slice of its page."""
    ids = snapshot.catalog.all_chunk_ids()
    passages = await snapshot.store.fetch(ids)
    assert set(passages) == set(ids), "the store does not have the chunks of the catalogue"
    assert await snapshot.store.count(NO_FILTERS) == len(ids), "the store has chunks the catalogue does not know"
    for passage in passages.values():
        page = snapshot.catalog.get_page(passage.chunk.url)
        assert page, f"there is a chunk of {passage.chunk.url}, but no such page"
        assert page.text[passage.chunk.start : passage.chunk.end] == passage.chunk.text, "a chunk is not in its page"
    first = passages[ids[0]]
    found = await snapshot.store.search(first.vector, first.chunk.text, limit=5, filters=NO_FILTERS)
    assert first.chunk.chunk_id in {candidate.chunk_id for candidate in found}, "a chunk is not found"


async def read(index: Path, identity: EmbedderId) -> Counter[str]:
    """Read alternately with a long-lived provider and with a newly opened snapshot."""
    seen: Counter[str] = Counter()
    generations = Generations(index)
    with closing(IndexProvider(LocalSnapshotLoader(generations, identity))) as index_provider:
        while not select.select([sys.stdin], [], [], 0.01)[0]:
            async with index_provider.snapshot() as snapshot:
                await assert_whole(snapshot)
                seen[snapshot.name] += 1
            with ExitStack() as stack:
                await assert_whole(open_snapshot(generations, identity, stack))
    return seen


given = EmbedderId(sys.argv[2], int(sys.argv[3]))
print(json.dumps(asyncio.run(read(Path(sys.argv[1]), given))))  # noqa: T201
