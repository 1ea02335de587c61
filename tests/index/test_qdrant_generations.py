"""Generations on a Qdrant server: atomic publication, reading, sweeping, and copies in both directions."""

from __future__ import annotations

import asyncio
import json
import os
import warnings
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import qdrant_edge as edge
from qdrant_client import AsyncQdrantClient

from bythebook.answers import AgentRequest
from bythebook.errors import ConfigurationError, NotFound, QdrantConnectionError, Unavailable
from bythebook.index import NO_FILTERS
from bythebook.index.generations import Generations
from bythebook.index.provider import IndexProvider, IndexSnapshot
from bythebook.index.qdrant import catalog_sync
from bythebook.index.qdrant.catalog_sync import QdrantSnapshotLoader, fetch_catalog
from bythebook.index.qdrant.client import QdrantAddress, QdrantServer, open_server
from bythebook.index.qdrant.generations import CollectionParams, Manifest, ServerGenerations
from bythebook.index.qdrant.mirror import pull, push
from bythebook.index.qdrant.store import QdrantStore
from bythebook.llm.config import AgentConfig
from bythebook.qa.pipeline import AnswerPipeline
from bythebook.retrieval import RetrievalResult
from bythebook.retrieval.retriever import Retriever
from tests.conftest import LIGHTHOUSE
from tests.support.index_contents import contents
from tests.support.qdrant_book import MANIFEST, ServerBook, unseen
from tests.support.qdrant_server import Fault, QdrantHere, live_server, running_qdrant
from tests.support.word_embedder import WordBook, WordEmbedder

QUESTIONS = (
    "How is the lamp lit?",
    "Which oil burns longest?",
    "What does the horn say in fog?",
    "flag",
    "storm at night",
)


@pytest.fixture
def here() -> Iterator[QdrantHere]:
    with running_qdrant() as running:
        yield running


@pytest.fixture
async def server(here: QdrantHere) -> AsyncIterator[QdrantServer]:
    async with open_server(QdrantAddress(here.url), reading_seconds=60.0) as opened:
        yield opened


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    folder = tmp_path / "pages"
    folder.mkdir()
    write(folder, "lamp", "The lamp burns colza oil.")
    write(folder, "horn", "The horn warns ships in fog.")
    return folder


def write(folder: Path, name: str, text: str) -> None:
    (folder / f"{name}.md").write_text(f"# {name}\n\n{text}\n")


@pytest.fixture
def book(server: QdrantServer, tmp_path: Path) -> ServerBook:
    return ServerBook(server, tmp_path / "one machine")


@pytest.fixture
def elsewhere(server: QdrantServer, tmp_path: Path) -> ServerBook:
    """The same book on a machine that has only the address of the server."""
    return ServerBook(server, tmp_path / "another machine")


async def test_names_the_missing_collection_before_the_first_ingest(book: ServerBook) -> None:
    with pytest.raises(NotFound, match=r"no collection 'book' on http://127.* Run 'bythebook ingest FOLDER'"):
        await book.ask("lamp")


async def test_another_machine_answers_from_the_server_only(
    here: QdrantHere, book: ServerBook, elsewhere: ServerBook, pages: Path
) -> None:
    book.params = CollectionParams(shards=3, replicas=2, on_disk=True)
    name = await book.ingest(pages)

    (answer,) = await elsewhere.ask("What does the lamp burn?")

    assert name.startswith("g000001-")
    assert answer.metadata.index_generation == name
    assert "The lamp burns colza oil." in answer.answer
    assert answer.citations[0].url.startswith("file://")
    made = here.engine.collections[f"book-{name}"]
    assert (made.config["shard_number"], made.config["replication_factor"]) == (3, 2)
    assert made.config["vectors"]["dense"]["on_disk"] is True
    assert made.config["sparse_vectors"]["bm25"]["modifier"] == "idf"
    assert set(made.schema) == {"module_name", "chapter_id", "url"}
    assert made.schema["url"]["params"]["prefix"] is True

    before = len(here.requests)
    assert await book.ingest(pages) == ""
    assert not [request for request in here.requests[before:] if not request.startswith(("GET", "POST"))]


async def test_a_book_survives_a_round_trip_to_the_server(book: ServerBook, tmp_path: Path) -> None:
    """Both run the same engine: passages and order are equal, scores almost."""
    disk = WordBook(tmp_path / "index")
    await disk.ingest(LIGHTHOUSE)
    generations = book.there
    loader = QdrantSnapshotLoader(generations, disk.embedder.identity, tmp_path / "cache", refresh_seconds=3600.0)
    assert await loader.current() == ""
    name, _ = await push(
        disk.generations, generations, after="", params=CollectionParams(), metadata={}, progress=unseen
    )
    assert await loader.current() == name  # The publishing process sees it at once.
    with disk.index_provider() as one, book.index_provider() as other:
        async with one.snapshot() as here, other.snapshot() as there:
            assert here.calibration == there.calibration
            for question in QUESTIONS:
                retriever = Retriever(WordEmbedder())
                ours = await retriever.retrieve(here, question, top_k=10, filters=NO_FILTERS)
                theirs = await retriever.retrieve(there, question, top_k=10, filters=NO_FILTERS)
                assert_same(theirs.context.results, ours.context.results)
            await assert_found_by_another_implementation(here, await book.there.manifest(there.name))

    await copy_from_server(book, Generations(tmp_path / "back"))

    identity = disk.embedder.identity
    assert await contents(tmp_path / "back", identity) == await contents(disk.folder, identity)


def assert_same(theirs: Sequence[RetrievalResult], ours: Sequence[RetrievalResult]) -> None:
    assert [replace(each, score=0.0, rerank_score=0.0) for each in theirs] == [
        replace(each, score=0.0, rerank_score=0.0) for each in ours
    ]
    for one, other in zip(theirs, ours, strict=True):
        assert (one.score, one.rerank_score) == pytest.approx((other.score, other.rerank_score), abs=1e-4)


async def assert_found_by_another_implementation(snapshot: IndexSnapshot, manifest: Manifest) -> None:
    """The local mode of the Qdrant client is an independent implementation."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Payload indexes have no effect in the local Qdrant")
        client = AsyncQdrantClient(":memory:")
        there = ServerGenerations(QdrantServer(client, ":memory:", reading_seconds=60.0), "book")
        name = await there.begin(manifest, CollectionParams())
    double = QdrantStore(there.server, there.collection(name), snapshot.bm25)
    passages = await snapshot.store.fetch(snapshot.catalog.all_chunk_ids())
    await double.update(put=list(passages.values()), drop=[])
    for question in QUESTIONS:
        vector = await WordEmbedder().embed_query(question)
        ours = await snapshot.store.search(vector, question, limit=20, filters=NO_FILTERS)
        theirs = dict(await double.search(vector, question, limit=200, filters=NO_FILTERS))
        assert ours
        for key, score in ours:
            assert theirs[key] == pytest.approx(score, abs=1e-3)
    await client.close()


async def test_readers_keep_a_superseded_generation_for_the_grace_period(
    here: QdrantHere, book: ServerBook, elsewhere: ServerBook, pages: Path
) -> None:
    first = await book.ingest(pages)
    with elsewhere.index_provider() as index_provider:
        async with index_provider.snapshot() as old:
            write(pages, "flag", "A red flag means danger.")
            second = await book.ingest(pages)
            async with index_provider.snapshot() as new:
                assert (old.name, new.name) == (first, second)
                assert await new.store.count(NO_FILTERS) == await old.store.count(NO_FILTERS) + 1
                assert len(new.catalog.table_of_contents()) == len(old.catalog.table_of_contents()) + 1
    assert await book.there.list_names() == [first, second]

    book.grace_seconds = -1.0
    write(pages, "oar", "An oar lies in the boat.")
    third = await book.ingest(pages)

    assert await book.there.list_names() == [third]
    assert set(here.engine.collections) == {f"book-{third}", f"book-{third}-book"}
    with pytest.raises(ConfigurationError, match="is the current generation"):
        await book.there.remove(third)
    with pytest.raises(NotFound, match="there is no generation 'g000009"):
        await book.there.remove("g000009-00000000")


async def test_fetches_only_changed_blocks(here: QdrantHere, book: ServerBook, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    data = np.random.default_rng(7).bytes(5 * catalog_sync.BLOCK_BYTES + 99)
    first.write_bytes(data)
    second.write_bytes(data[:-1] + b"!" + data[:7])
    cache, asked = tmp_path / "cache", []
    for path in (first, second):
        cut = tuple(block.digest for block in catalog_sync.split_blocks(path))
        made = replace(MANIFEST, blocks=cut, digest=catalog_sync.combine_digests(cut), size=path.stat().st_size)
        name = await book.there.begin(made, CollectionParams())
        await book.there.send_catalog(name, path)
        before = len(here.bodies)
        fetched = await fetch_catalog(book.there, name, made, cache)
        assert fetched.read_bytes() == path.read_bytes()
        asked.append([json.loads(body)["ids"] for body in here.bodies[before:]])
    assert asked == [[[1, 2, 3, 4, 5, 6]], [[6]]]


async def test_rejects_blocks_that_do_not_match_the_manifest(
    here: QdrantHere, book: ServerBook, elsewhere: ServerBook, pages: Path
) -> None:
    name = await book.ingest(pages)
    points = here.engine.collections[f"book-{name}-book"].shard.points
    stranger = replace(elsewhere, folder=elsewhere.folder / "stranger", embedder=WordEmbedder("other words"))
    with pytest.raises(ConfigurationError, match="was indexed with 'words'"):
        await stranger.ask("lamp")
    with pytest.raises(ConfigurationError, match="was indexed with 'words'"):
        await stranger.ingest(pages)

    points[1]["data"] = "AAAA"
    with pytest.raises(QdrantConnectionError, match="a block of the catalog on the Qdrant server is damaged"):
        await elsewhere.ask("lamp")
    assert not list((elsewhere.folder / "read").glob("*"))

    points[0]["format"] = 2
    with pytest.raises(ConfigurationError, match="written by a newer bythebook"):
        await elsewhere.ask("lamp")


async def test_a_failed_ingest_changes_nothing_and_is_resumed(here: QdrantHere, book: ServerBook, pages: Path) -> None:
    before = await book.ingest(pages)
    write(pages, "long", "\n\n".join(f"## Part {number}\n\nIt is about matter{number}." for number in range(300)))

    here.judge = failing_after(sends=2)
    with pytest.raises(QdrantConnectionError, match="HTTP 500"):
        await book.ingest(pages)
    here.judge = lambda _request: None
    assert await book.there.current() == before
    embedded = len(book.embedder.embedded)
    held = sum(name.endswith("-book") for name in here.engine.collections)

    sent = len(here.requests)
    after = await book.ingest(pages)

    assert after.startswith("g000002-")
    assert len(book.embedder.embedded) == embedded
    assert held == sum(name.endswith("-book") for name in here.engine.collections) == 2
    upserts = [each for each in here.requests[sent:] if each == f"PUT /collections/book-{after}/points"]
    assert len(upserts) == 1  # Two of three batches existed already.
    clean = WordBook(book.folder / "clean")
    await clean.ingest(pages)
    await copy_from_server(book, Generations(book.folder / "copy"))
    assert await contents(book.folder / "copy", clean.embedder.identity) == await contents(
        clean.folder, clean.embedder.identity
    )


def failing_after(*, sends: int) -> Callable[[str], Fault | None]:
    """Let every batch of chunks after this many fail."""
    seen = 0

    def judge(request: str) -> Fault | None:
        nonlocal seen
        if not request.startswith("PUT ") or not request.endswith("/points") or "-book/" in request:
            return None
        seen += 1
        return Fault(500) if seen > sends else None

    return judge


def chunks_embedded(book: ServerBook) -> int:
    """The number of embedded texts with headings, which only chunks have."""
    return sum("\n" in text for text in book.embedder.embedded)


async def copy_from_server(book: ServerBook, here: Generations) -> None:
    name = await book.there.current()
    manifest = await book.there.manifest(name)
    await pull(book.there, name, manifest, here, cache=book.folder / "cache", progress=unseen)


async def test_an_incomplete_copy_is_not_published(
    here: QdrantHere, book: ServerBook, pages: Path, tmp_path: Path
) -> None:
    name = await book.ingest(pages)
    there = here.engine.collections[f"book-{name}"].shard
    lost = str(there.scroll(edge.ScrollRequest(limit=1))[0][0].id)
    there.update(edge.UpdateOperation.delete_points([lost]))

    with pytest.raises(QdrantConnectionError, match=r"the copy has 1 chunks, and the book 2\. It was not published"):
        await copy_from_server(book, Generations(tmp_path / "copy"))

    assert Generations(tmp_path / "copy").current() == ""


async def test_two_machines_ingest_into_the_same_book(book: ServerBook, elsewhere: ServerBook, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write(tmp_path / name, name, f"This is page {name}.")
    await book.ingest(tmp_path / "one")
    await elsewhere.ingest(tmp_path / "two")
    assert elsewhere.embedder.embedded == ["two\nThis is page two."]

    with book.index_provider() as index_provider:
        async with index_provider.snapshot() as snapshot:
            assert [page.title for page in snapshot.catalog.table_of_contents()] == ["one", "two"]
    assert await book.ingest(tmp_path / "one") == ""


async def test_a_conflicting_publication_is_reported_and_loses_no_vectors(
    book: ServerBook, elsewhere: ServerBook, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write(tmp_path / name, name, f"This is page {name}.")
    mirror = elsewhere.mirror
    await mirror.catch_up(progress=unseen)
    overtaking = await book.ingest(tmp_path / "one")
    work = WordBook(mirror.folder, embedder=elsewhere.embedder)
    await work.ingest(tmp_path / "two")
    with pytest.raises(Unavailable, match=f"another machine has published {overtaking} as 'book'"):
        await mirror.publish(metadata={}, progress=unseen)
    assert await book.there.current() == overtaking
    embedded = list(elsewhere.embedder.embedded)

    await elsewhere.ingest(tmp_path / "two")

    assert elsewhere.embedder.embedded == embedded
    answers = await book.ask("This is page one.", "This is page two.")
    assert ["page one" in answers[0].answer, "page two" in answers[1].answer] == [True, True]


async def test_recreates_a_collection_that_was_deleted_by_hand(
    here: QdrantHere, book: ServerBook, elsewhere: ServerBook, pages: Path
) -> None:
    first = await book.ingest(pages)
    with elsewhere.index_provider() as index_provider:
        async with index_provider.snapshot():
            pass
        for name in list(here.engine.collections):
            here.engine.answer("DELETE", ["collections", name], {})
        embedded = chunks_embedded(book)
        write(pages, "flag", "A red flag means danger.")

        second = await book.ingest(pages)

        assert (first[:7], second[:7]) == ("g000001", "g000001")
        assert chunks_embedded(book) == embedded + 1
        async with index_provider.snapshot() as snapshot:
            assert (snapshot.name, snapshot.chunk_count) == (second, 3)


async def test_rejects_a_collection_of_another_program(here: QdrantHere, book: ServerBook, pages: Path) -> None:
    here.engine.answer("PUT", ["collections", "book"], {"vectors": {"size": 32, "distance": "Cosine"}})
    for work in (book.ask("lamp"), book.ingest(pages)):
        with pytest.raises(ConfigurationError, match="'bythebook index attach book --embedder NAME' uses it"):
            await work
    assert list(here.engine.collections) == ["book"]


async def test_readers_never_fail_during_an_ingest(
    request: pytest.FixtureRequest, book: ServerBook, elsewhere: ServerBook, pages: Path
) -> None:
    """Every citation resolves in the generation that answered (HARDENING R12)."""
    readers, rounds = (50, 20) if request.config.getoption("--full-size") else (3, 2)
    await book.ingest(pages)
    done = asyncio.Event()
    config = AgentConfig(retrieval_threshold=0.0, first_token_seconds=60.0, answer_seconds=60.0)
    seen: set[str] = set()

    async def read(index_provider: IndexProvider) -> int:
        asker, answered = AnswerPipeline(index_provider, elsewhere.embedder, Retriever(elsewhere.embedder), config), 0
        while not done.is_set() or not answered:
            async with index_provider.snapshot() as snapshot:
                answer = await asker.ask(AgentRequest(f"What does the lamp burn, asks {answered}?"))
                seen.add(answer.metadata.index_generation)
                if answer.metadata.index_generation == snapshot.name:
                    cited = [citation.chunk_id for citation in answer.citations]
                    assert set(await snapshot.store.fetch(cited)) == set(cited)
            assert answer.citations
            answered += 1
        return answered

    async def write_on() -> None:
        for number in range(rounds):
            write(pages, "lamp", f"The lamp burns colza oil. It was filled {number} times.")
            await book.ingest(pages)
        done.set()

    with elsewhere.index_provider() as index_provider:
        async with asyncio.TaskGroup() as group:
            reading = [group.create_task(read(index_provider)) for _ in range(readers)]
            group.create_task(write_on())
    assert all(task.result() for task in reading)
    assert len(seen) > 1


async def test_a_real_server_stores_a_book(tmp_path: Path) -> None:
    """Runs if QDRANT_URL is set. Its collections are removed at the end."""
    async with live_server() as server:
        book = ServerBook(server, tmp_path / "one", alias=f"bythebook-live-{os.getpid()}", grace_seconds=-1.0)
        try:
            await book.ingest(LIGHTHOUSE)
            disk = WordBook(tmp_path / "index")
            await disk.ingest(LIGHTHOUSE)
            ours, theirs = await disk.ask(*QUESTIONS), await book.ask(*QUESTIONS)
            assert [answer.answer for answer in theirs] == [answer.answer for answer in ours]
            await copy_from_server(book, Generations(tmp_path / "back"))
            identity = disk.embedder.identity
            assert await contents(tmp_path / "back", identity) == await contents(disk.folder, identity)
        finally:
            for each in (await server.read("cleaning", lambda client: client.get_collections())).collections:
                if each.name.startswith(book.alias):
                    await _removed(server, each.name)


async def _removed(server: QdrantServer, name: str) -> None:
    await server.write("cleaning", lambda client: client.delete_collection(name))
