"""What the workers of a cluster make is what this process would have made."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bythebook.chunking.splitter import Sizes, split
from bythebook.embeddings.minilm.embedder import local_embedder
from bythebook.embeddings.tokens import count
from bythebook.ingest.ray_workers import Embedding, Reading
from bythebook.sources import Listed, PageSource
from bythebook.sources.folder import Folder
from bythebook.sources.projects.project import Project

BOOKS = Path(__file__).parents[1] / "books"


async def listed_in(folder: PageSource) -> list[Listed]:
    return [entry async for entry in folder.listing() if isinstance(entry, Listed)]


def made(worker: Reading, listed: list[Listed]) -> list[object]:
    batch = {"place": np.arange(len(listed)), "listed": np.array([pickle.dumps(each) for each in listed], dtype=object)}
    return [pickle.loads(made) for made in worker(batch)["made"]]  # noqa: S301


async def test_pages_are_read_and_cut_alike(model_folder: Path, lighthouse: Path) -> None:
    folder, sizes = Folder(lighthouse), Sizes()
    listed = await listed_in(folder)
    # A worker gets its source over the network.
    worker = Reading(pickle.loads(pickle.dumps(folder)), sizes, model_folder)  # noqa: S301
    pages = [await folder.read(each) for each in listed]
    async with local_embedder(model_folder) as embedder:
        cut = [list(split(page, count=embedder.count, sizes=sizes)) for page in pages]
    assert await in_a_thread(worker, listed) == list(zip(pages, cut, strict=True))


@pytest.mark.parametrize("project", ["orchard", "kiln", "tidepool"])
async def test_pages_of_a_project_are_read_alike(project: str) -> None:
    source = Project(BOOKS / project)
    listed = await listed_in(source)
    worker = Reading(pickle.loads(pickle.dumps(source)), Sizes(), None)  # noqa: S301
    pages = [await source.read(each) for each in listed]
    cut = [list(split(page, count=count, sizes=Sizes())) for page in pages]
    assert await in_a_thread(worker, listed) == list(zip(pages, cut, strict=True))


async def test_for_a_service_they_are_cut_by_its_tokens(lighthouse: Path) -> None:
    folder, sizes = Folder(lighthouse), Sizes(limit=512, overlap=50)
    listed = await listed_in(folder)
    pages = [await folder.read(each) for each in listed]
    cut = [list(split(page, count=count, sizes=sizes)) for page in pages]
    assert await in_a_thread(Reading(folder, sizes, None), listed) == list(zip(pages, cut, strict=True))


async def test_a_page_that_cannot_be_read_says_why(lighthouse: Path) -> None:
    folder = Folder(lighthouse)
    listed = await listed_in(folder)
    (lighthouse / listed[0].path).unlink()
    first, second, *_ = await in_a_thread(Reading(folder, Sizes(), None), listed)
    assert first == "it is gone; it was there when the folder was listed"
    assert isinstance(second, tuple)


async def test_texts_are_embedded_alike(model_folder: Path) -> None:
    texts = ["The lamp turns.", "The horn sounds in fog.", ""]
    batch = {"place": np.arange(3), "text": np.array(texts, dtype=object)}
    made = Embedding(model_folder)(batch)
    async with local_embedder(model_folder) as embedder:
        alone = [vector.tobytes() async for vector in embedder.documents(texts)]
    assert [vector.tobytes() for vector in made["vector"]] == alone
    assert made["place"].tolist() == [0, 1, 2]


async def in_a_thread(worker: Reading, listed: list[Listed]) -> list[object]:
    """A worker has no event loop of its own running."""
    import asyncio

    return await asyncio.to_thread(made, worker, listed)


def test_without_ray_the_way_to_it_is_said() -> None:
    script = (
        "import sys; sys.modules['ray'] = None\n"
        "from bythebook.errors import ConfigurationError\n"
        "try:\n    import bythebook.ingest.ray\nexcept ConfigurationError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "pip install 'bythebook[ray]'" in done.stdout
