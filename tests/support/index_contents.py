"""The complete content of an index, to compare two of them."""

from __future__ import annotations

import sqlite3
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bythebook.index import NO_FILTERS
from bythebook.index.generations import Generations
from bythebook.index.provider import CATALOG_FILE, open_snapshot

if TYPE_CHECKING:
    from bythebook.embeddings import EmbedderId
    from bythebook.index.provider import IndexSnapshot


async def contents(folder: Path, identity: EmbedderId) -> dict[str, Any]:
    """The chunks with their vectors, the catalog, and the results of searches, without timestamps."""
    with ExitStack() as stack:
        snapshot = open_snapshot(Generations(folder), identity, stack)
        catalog = folder / snapshot.name / CATALOG_FILE
        return {
            "chunks": await _chunks(snapshot),
            "pages": _rows(catalog, "SELECT * FROM pages ORDER BY url"),
            "order": _rows(catalog, "SELECT * FROM contents ORDER BY url"),
            "records": _rows(catalog, "SELECT * FROM chunks ORDER BY chunk_id"),
            "terms": _rows(catalog, "SELECT * FROM terms ORDER BY term"),
            "average length": snapshot.bm25.average_length,
            "words": await _found_by_words(snapshot),
        }


async def _chunks(snapshot: IndexSnapshot) -> dict[str, tuple[Any, bytes]]:
    ids = snapshot.catalog.all_chunk_ids()
    passages = await snapshot.store.fetch(ids)
    assert set(passages) == set(ids)
    assert await snapshot.store.count(NO_FILTERS) == len(ids)
    return {
        # A changed modification time alone does not rewrite the chunks of a page.
        chunk_id: (replace(passage.chunk, created_at=""), passage.vector.tobytes())
        for chunk_id, passage in passages.items()
    }


async def _found_by_words(snapshot: IndexSnapshot) -> list[dict[str, float]]:
    found = []
    for word in ("lamp", "horn", "keeper", "oil", "page"):
        candidates = await snapshot.store.search(None, word, limit=1000, filters=NO_FILTERS)
        found.append({candidate.chunk_id: round(candidate.score, 4) for candidate in candidates})
    return found


def _rows(path: Path, statement: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(statement).fetchall()
