"""A process that keeps reading the book, and fails when it once is not whole.

python reader.py INDEX MODEL DIMENSION    reads until its input is closed, then prints how often it read which one
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

from bythebook.embeddings import Identity
from bythebook.index import EVERYWHERE
from bythebook.index.generations import Generations
from bythebook.index.provider import DiskLibrary, Shelf, open_edition

if TYPE_CHECKING:
    from bythebook.index.provider import Edition


async def assert_whole(edition: Edition) -> None:
    """The catalogue and the store hold the same chunks, and every chunk is a piece of its page."""
    ids = edition.catalogue.all_chunk_ids()
    passages = await edition.store.fetch(ids)
    assert set(passages) == set(ids), "the store does not have the chunks of the catalogue"
    assert await edition.store.count(EVERYWHERE) == len(ids), "the store has chunks the catalogue does not know"
    for passage in passages.values():
        page = edition.catalogue.page(passage.chunk.url)
        assert page, f"there is a chunk of {passage.chunk.url}, but no such page"
        assert page.text[passage.chunk.start : passage.chunk.end] == passage.chunk.text, "a chunk is not in its page"
    first = passages[ids[0]]
    found = await edition.store.candidates(first.vector, first.chunk.text, limit=5, filters=EVERYWHERE)
    assert first.chunk.chunk_id in {candidate.chunk_id for candidate in found}, "a chunk is not found"


async def read(index: Path, identity: Identity) -> Counter[str]:
    """Each time once through the shelf that stays open, and once as a process that just started."""
    seen: Counter[str] = Counter()
    generations = Generations(index)
    with closing(Shelf(DiskLibrary(generations, identity))) as shelf:
        while not select.select([sys.stdin], [], [], 0.01)[0]:
            async with shelf.edition() as edition:
                await assert_whole(edition)
                seen[edition.name] += 1
            with ExitStack() as stack:
                await assert_whole(open_edition(generations, identity, stack))
    return seen


given = Identity(sys.argv[2], int(sys.argv[3]))
print(json.dumps(asyncio.run(read(Path(sys.argv[1]), given))))  # noqa: T201
