"""The workers of a cluster produce the same results as the local engine."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bythebook.chunking.splitter import ChunkSizes, split_page
from bythebook.embeddings.local import EMBEDDER_ID, ModelFolder, local_embedder
from bythebook.embeddings.remote import count_tokens
from bythebook.ingest.ray_workers import EmbedWorker, ReadWorker
from bythebook.sources import ListedPage, PageSource
from bythebook.sources.folder import Folder
from bythebook.sources.projects.project import Project

BOOKS = Path(__file__).parents[1] / "books"


async def listed_in(folder: PageSource) -> list[ListedPage]:
    return [entry async for entry in folder.listing() if isinstance(entry, ListedPage)]


def made(worker: ReadWorker, listed: list[ListedPage]) -> list[object]:
    batch = {"index": np.arange(len(listed)), "listed": np.array([pickle.dumps(each) for each in listed], dtype=object)}
    return [pickle.loads(made) for made in worker(batch)["result"]]  # noqa: S301


async def test_reads_and_splits_pages_like_the_local_engine(model_folder: Path, lighthouse: Path) -> None:
    folder, sizes = Folder(lighthouse), ChunkSizes()
    listed = await listed_in(folder)
    # A worker gets its source over the network.
    worker = ReadWorker(pickle.loads(pickle.dumps(folder)), sizes, ModelFolder(model_folder, EMBEDDER_ID.model))  # noqa: S301
    pages = [await folder.read(each) for each in listed]
    async with local_embedder(model_folder) as embedder:
        cut = [list(split_page(page, count=embedder.count_tokens, sizes=sizes)) for page in pages]
    assert await in_a_thread(worker, listed) == list(zip(pages, cut, strict=True))


@pytest.mark.parametrize("project", ["orchard", "kiln", "tidepool"])
async def test_reads_the_pages_of_a_project_like_the_local_engine(project: str) -> None:
    source = Project(BOOKS / project)
    listed = await listed_in(source)
    worker = ReadWorker(pickle.loads(pickle.dumps(source)), ChunkSizes(), None)  # noqa: S301
    pages = [await source.read(each) for each in listed]
    cut = [list(split_page(page, count=count_tokens, sizes=ChunkSizes())) for page in pages]
    assert await in_a_thread(worker, listed) == list(zip(pages, cut, strict=True))


async def test_splits_by_the_tokens_of_a_hosted_service(lighthouse: Path) -> None:
    folder, sizes = Folder(lighthouse), ChunkSizes(limit=512, overlap=50)
    listed = await listed_in(folder)
    pages = [await folder.read(each) for each in listed]
    cut = [list(split_page(page, count=count_tokens, sizes=sizes)) for page in pages]
    assert await in_a_thread(ReadWorker(folder, sizes, None), listed) == list(zip(pages, cut, strict=True))


async def test_returns_the_reason_for_an_unreadable_page(lighthouse: Path) -> None:
    folder = Folder(lighthouse)
    listed = await listed_in(folder)
    (lighthouse / listed[0].path).unlink()
    first, second, *_ = await in_a_thread(ReadWorker(folder, ChunkSizes(), None), listed)
    assert first == "it is gone; it was there when the folder was listed"
    assert isinstance(second, tuple)


async def test_embeds_texts_like_the_local_engine(model_folder: Path) -> None:
    texts = ["The lamp turns.", "The horn sounds in fog.", ""]
    batch = {"index": np.arange(3), "text": np.array(texts, dtype=object)}
    made = EmbedWorker(ModelFolder(model_folder, EMBEDDER_ID.model))(batch)
    async with local_embedder(model_folder) as embedder:
        alone = [vector.tobytes() async for vector in embedder.embed_documents(texts)]
    assert [vector.tobytes() for vector in made["vector"]] == alone
    assert made["index"].tolist() == [0, 1, 2]


async def in_a_thread(worker: ReadWorker, listed: list[ListedPage]) -> list[object]:
    """Workers run without an event loop."""
    import asyncio

    return await asyncio.to_thread(made, worker, listed)


def test_the_error_without_ray_names_the_extra() -> None:
    script = (
        "import sys; sys.modules['ray'] = None\n"
        "from bythebook.errors import ConfigurationError\n"
        "try:\n    import bythebook.ingest.ray\nexcept ConfigurationError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "pip install 'bythebook[ray]'" in done.stdout
