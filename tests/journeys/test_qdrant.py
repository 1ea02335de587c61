"""A book on a Qdrant server, through the command line and the HTTP server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from bythebook import Book, Settings
from bythebook.admin import attach_collection
from bythebook.cli.app import app
from bythebook.errors import BookError, QdrantConnectionError, Unavailable
from bythebook.server.maintenance import ReadinessProbe
from tests.conftest import Run, copied
from tests.support.embedding_server import ScriptedEmbeddings
from tests.support.qdrant_book import unseen
from tests.support.qdrant_server import Fault, QdrantHere, running_qdrant

KEY = "the-key-of-the-server"
QUESTION = "How long does the lamp burn?"


@pytest.fixture
def here() -> Iterator[QdrantHere]:
    with running_qdrant(api_key=KEY) as running:
        yield running


@pytest.fixture
def command(here: QdrantHere, model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run a command in this process with the Qdrant server in its settings. Returns its JSON output."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("QDRANT_URL", here.url)
    monkeypatch.setenv("QDRANT_API_KEY", KEY)
    monkeypatch.setenv("BYTHEBOOK_MODEL_FOLDER", str(model_folder))

    def run(*arguments: str | Path) -> Any:
        done = CliRunner().invoke(app, [*map(str, arguments), "--json"], catch_exceptions=True)
        if isinstance(done.exception, BookError):
            raise done.exception
        assert done.exit_code == 0, done.output
        assert KEY not in done.output
        return json.loads(done.stdout)

    return run


def test_a_book_is_copied_to_the_server_used_elsewhere_and_copied_back(
    here: QdrantHere, command: Any, bythebook: Run, shelved: Path, tmp_path: Path
) -> None:
    disk = copied(shelved, tmp_path / "disk")
    sent = command("index", "copy", "embedded", "qdrant", "--data-dir", disk)
    assert (sent["source"], sent["target"]) == ("embedded", "qdrant")
    assert command("index", "copy", "embedded", "qdrant", "--data-dir", disk)["generation"] == ""

    answer = json.loads(bythebook("ask", QUESTION, "--json", QDRANT_URL=here.url, QDRANT_API_KEY=KEY).stdout)
    assert answer["outcome"] == "answered"
    assert answer["metadata"]["index_generation"] == sent["generation"]

    status = command("status", "--data-dir", tmp_path / "elsewhere")
    assert status["location"] == {"engine": "qdrant", "url": here.url, "collection": "web_documents", "attached": False}
    assert status["chunks"] == sent["chunks"]
    _other_book(tmp_path / "other")
    with pytest.raises(BookError, match=r"another book in this data folder already\. Add --replace"):
        command("index", "copy", "qdrant", "embedded", "--data-dir", tmp_path / "other")

    back = command("index", "copy", "qdrant", "embedded", "--data-dir", tmp_path / "back")
    assert (back["generation"], back["chunks"]) == ("g000001", sent["chunks"])
    listed = command("index", "list", "--data-dir", tmp_path / "back")["generations"]
    assert [(each["engine"], each["state"]) for each in listed] == [("embedded", "current"), ("qdrant", "current")]


def _other_book(folder: Path) -> None:
    (folder / "index").mkdir(parents=True)
    (folder / "index" / "CURRENT").write_text("g000001")
    (folder / "index" / "g000001").mkdir()
    (folder / "index" / "g000001" / "LOCK").touch()
    (folder / "index" / "g000001" / "book.db").write_bytes(b"another book")


def test_an_attached_collection_is_read_only(
    here: QdrantHere, command: Any, shelved: Path, tmp_path: Path, lighthouse: Path
) -> None:
    sent = command("index", "copy", "embedded", "qdrant", "--collection", "theirs", "--data-dir", shelved)
    name = f"theirs-{sent['generation']}"
    # Without our catalog and under another name, it is a foreign collection.
    here.engine.collections = {"filled": here.engine.collections[name]}
    here.engine.aliases = {}

    found = command("index", "attach", "filled", "--embedder", "local")
    assert (found["chunks"], found["agreement"] > 0.6) == (sent["chunks"], True)
    assert found["fields"]["text"] == "content"
    assert command("search", QUESTION)["results"]
    assert command("status")["location"]["attached"] is True
    before = here.engine.collections["filled"].schema.copy()
    writes = len([request for request in here.requests if request.startswith(("PUT", "DELETE"))])
    with pytest.raises(BookError, match="another program fills: nothing is written to it"):
        command("ingest", lighthouse)
    assert here.engine.collections["filled"].schema == before
    assert len([request for request in here.requests if request.startswith(("PUT", "DELETE"))]) == writes
    assert command("index", "detach") == {"detached": "filled"}
    with pytest.raises(BookError, match="no collection is attached here"):
        command("index", "detach")


async def test_a_server_that_is_down_makes_the_book_not_ready(
    here: QdrantHere, model_folder: Path, shelved: Path, tmp_path: Path
) -> None:
    given = {"data_dir": tmp_path / "data", "model_folder": model_folder, "qdrant_url": here.url, "qdrant_api_key": KEY}
    settings = Settings.load(given, folder=tmp_path)
    here.always = Fault(503)
    async with Book.open(settings) as book:
        with pytest.raises(QdrantConnectionError, match="HTTP 503"):
            await book.ask(QUESTION)
        with pytest.raises(Unavailable, match="not ready"):
            await ReadinessProbe(book).check()
        here.always = None
        with pytest.raises(BookError, match="there is no collection 'web_documents'"):
            await book.ask(QUESTION)


async def test_the_embedder_is_taken_from_the_book_or_named_for_an_attached_collection(
    here: QdrantHere, model_folder: Path, tmp_path: Path
) -> None:
    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "lamp.md").write_text("# Lamp\n\nThe lamp of the lighthouse burns colza oil through the whole night.\n")

    def settings(folder: str, **more: str) -> Settings:
        given: dict[str, Any] = {"data_dir": tmp_path / folder, "model_folder": model_folder}
        given |= {"embedder_api_key": "canary"}
        given |= {"qdrant_url": here.url, "qdrant_api_key": KEY, "embedder_url": service.openai_url}
        return Settings.load(given | more, folder=tmp_path)

    async with ScriptedEmbeddings(key="canary") as service:
        async with Book.open(settings("one", embedder="openai:tiny")) as book:
            report = await book.ingest(pages)
            assert (await book.search("lamp")).results
        async with Book.open(settings("two")) as book:
            assert book.embedder.identity.model == "openai:tiny"
            assert (await book.ask("What does the lamp burn?")).metadata.index_generation == report.generation
        here.engine.collections = {"filled": here.engine.collections[f"web_documents-{report.generation}"]}
        here.engine.aliases = {}
        chosen = settings("three", embedder="openai:tiny")
        found = await attach_collection(chosen, "filled", vector="", progress=unseen, say=lambda _text: None)
        assert (found.model, found.chunks) == ("openai:tiny", 1)
        async with Book.open(settings("three")) as book:
            assert "colza oil" in (await book.ask("What does the lamp of the lighthouse burn?")).answer


def test_settings_of_the_server_are_validated_early(tmp_path: Path) -> None:
    with pytest.raises(BookError, match=r"qdrant_url cannot be 'localhost'.*use a URL such as http://localhost:6333"):
        Settings.load({"qdrant_url": "localhost"}, folder=tmp_path)
    with pytest.raises(BookError, match="collection_name cannot be 'a/b'"):
        Settings.load({"collection_name": "a/b"}, folder=tmp_path)
    shown = {name: value for name, value, *_ in Settings.load({"qdrant_api_key": KEY}, folder=tmp_path).describe()}
    assert shown["qdrant_api_key"] == "********"
