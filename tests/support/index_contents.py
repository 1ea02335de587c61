"""Everything an index holds, so that two of them can be compared."""

from __future__ import annotations

import sqlite3
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bythebook.index import EVERYWHERE
from bythebook.index.generations import Generations
from bythebook.index.provider import CATALOGUE, open_edition

if TYPE_CHECKING:
    from bythebook.embeddings import Identity
    from bythebook.index.provider import Edition


async def contents(folder: Path, identity: Identity) -> dict[str, Any]:
    """The chunks with their vectors to the bit, the catalogue, and what words find. Not when it was made."""
    with ExitStack() as stack:
        edition = open_edition(Generations(folder), identity, stack)
        catalogue = folder / edition.name / CATALOGUE
        return {
            "chunks": await _chunks(edition),
            "pages": _rows(catalogue, "SELECT * FROM pages ORDER BY url"),
            "order": _rows(catalogue, "SELECT * FROM contents ORDER BY url"),
            "records": _rows(catalogue, "SELECT * FROM chunks ORDER BY chunk_id"),
            "terms": _rows(catalogue, "SELECT * FROM terms ORDER BY term"),
            "average length": edition.words.average_length,
            "words": await _found_by_words(edition),
        }


async def _chunks(edition: Edition) -> dict[str, tuple[Any, bytes]]:
    ids = edition.catalogue.all_chunk_ids()
    passages = await edition.store.fetch(ids)
    assert set(passages) == set(ids)
    assert await edition.store.count(EVERYWHERE) == len(ids)
    return {
        # The time a page was last touched is no reason to write its chunks again.
        chunk_id: (replace(passage.chunk, created_at=""), passage.vector.tobytes())
        for chunk_id, passage in passages.items()
    }


async def _found_by_words(edition: Edition) -> list[dict[str, float]]:
    found = []
    for word in ("lamp", "horn", "keeper", "oil", "page"):
        candidates = await edition.store.candidates(None, word, limit=1000, filters=EVERYWHERE)
        found.append({candidate.chunk_id: round(candidate.score, 4) for candidate in candidates})
    return found


def _rows(path: Path, statement: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(statement).fetchall()
