"""The texts an ingest embeds: `python -m bench.chunk_texts FOLDER FILE` writes them as a JSON list."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from bythebook.book import Book
from bythebook.chunking.splitter import ChunkSizes, split_page
from bythebook.settings import Settings
from bythebook.sources import ListedPage, Unreadable
from bythebook.sources.folder import Folder


async def texts(folder: Path) -> list[str]:
    found: dict[str, str] = {}
    async with Book.open(Settings.load({"data_dir": folder.parent / "nothing"})) as book:
        source = Folder(folder)
        async for listed in source.listing():
            if not isinstance(listed, ListedPage):
                continue
            try:
                page = await source.read(listed)
            except Unreadable:
                continue
            for chunk in split_page(page, count=book.embedder.count_tokens, sizes=ChunkSizes()):
                found[chunk.content_hash] = chunk.embedded
    return list(found.values())


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps(asyncio.run(texts(Path(sys.argv[1])))), encoding="utf-8")
