"""Attached collections, which another program has filled."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from qdrant_client import models

from bythebook.answers import AgentRequest, Outcome
from bythebook.errors import ConfigurationError, InputError, NotFound
from bythebook.index import NO_FILTERS, Filters
from bythebook.index.provider import IndexProvider
from bythebook.index.qdrant.attached import AttachedSnapshotLoader, Attachment, detect_fields, remove_attachment
from bythebook.index.qdrant.client import QdrantAddress, QdrantServer, open_server
from bythebook.ingest.attach import AttachReport, RetrievalModels, attach
from bythebook.llm.config import AgentConfig
from bythebook.qa.pipeline import AnswerPipeline
from bythebook.retrieval.retriever import Retriever
from tests.support.qdrant_book import unseen
from tests.support.qdrant_server import QdrantHere, running_qdrant
from tests.support.word_embedder import DIMENSION, WordEmbedder, count_words, vector_of

SENTENCES = (
    "The lamp of the lighthouse burns colza oil through the whole night.",
    "The horn warns every ship that comes too near in thick fog.",
    "A red flag on the mast means that there is danger in the harbour.",
    "The keeper writes the hours of each watch into the big log book.",
)


@pytest.fixture
def here() -> Iterator[QdrantHere]:
    with running_qdrant() as running:
        yield running


@pytest.fixture
async def server(here: QdrantHere) -> AsyncIterator[QdrantServer]:
    async with open_server(QdrantAddress(here.url), reading_seconds=60.0) as opened:
        yield opened


def as_004(number: int, text: str) -> dict[str, Any]:
    return {
        "content": text,
        "url": f"https://book.example/page-{number // 2}",
        "chunk_id": f"page_chunk_{number}",
        "document_id": f"doc-{number // 2}",
        "title": f"Page {number // 2}",
        "chunk_index": number % 2,
        "created_at": "2025-12-23T18:30:20Z",
    }


def as_003(number: int, text: str) -> dict[str, Any]:
    return {
        "chunk_text": text,
        "source_url": f"https://book.example/docs/ch{number}",
        "chapter_id": f"module-1/ch{number}",
        "module_name": "Module 1",
        "heading_hierarchy": [f"Chapter {number}", "Basics"],
        "token_count": 42,
        "chunk_index": 0,
    }


def as_001(number: int, text: str) -> dict[str, Any]:
    return {"text": text, "url": f"https://book.example/{number}", "title": f"Page {number}", "chunk_index": number}


def nested(number: int, text: str) -> dict[str, Any]:
    return {"page_content": text, "metadata": {"source": f"ch{number}.md", "title": f"Chapter {number}"}}


async def fill(
    server: QdrantServer,
    payloads: list[dict[str, Any]],
    *,
    vectors: Any = None,
    texts: tuple[str, ...] = SENTENCES,
    name: str = "theirs",
) -> None:
    params = vectors or models.VectorParams(size=DIMENSION, distance=models.Distance.COSINE)
    await server.write("filling", lambda client: client.create_collection(name, vectors_config=params))
    made = [vector_of(text).tolist() for text in texts]
    points = [
        models.PointStruct(
            id=number if number % 2 else f"00000000-0000-4000-8000-{number:012d}",
            vector=vector if not isinstance(params, dict) else {next(iter(params)): vector},
            payload=payload,
        )
        for number, (payload, vector) in enumerate(zip(payloads, made, strict=True))
    ]
    await server.write("filling", lambda client: client.upsert(name, points, wait=True))


async def attached(
    server: QdrantServer, folder: Path, *, site_url: str = "", vector: str | None = None
) -> AttachReport:
    embedder = WordEmbedder()
    wanted = Attachment(
        server.address, "theirs", vector, {}, site_url, {"model": "words", "dimension": DIMENSION}, snapshot=""
    )
    return await attach(server, wanted, RetrievalModels(embedder), data_dir=folder, progress=unseen)


@contextmanager
def index_provider(server: QdrantServer, folder: Path) -> Iterator[IndexProvider]:
    opened = IndexProvider(AttachedSnapshotLoader(server, folder, WordEmbedder().identity, count_tokens=count_words))
    try:
        yield opened
    finally:
        opened.close()


@pytest.mark.parametrize(
    ("payload", "url", "title", "headings"),
    [
        pytest.param(as_004, "https://book.example/page-0", "Page 0", ("Page 0",), id="content, url"),
        pytest.param(
            as_003, "https://book.example/docs/ch0", "Chapter 0", ("Chapter 0", "Basics"), id="chunk_text, source_url"
        ),
        pytest.param(as_001, "https://book.example/0", "Page 0", ("Page 0",), id="text, url"),
        pytest.param(nested, "https://site.example/ch0.md", "Chapter 0", ("Chapter 0",), id="page_content, metadata"),
    ],
)
async def test_answers_with_quotes_whatever_the_field_names_are(
    server: QdrantServer, tmp_path: Path, payload: Any, url: str, title: str, headings: tuple[str, ...]
) -> None:
    await fill(server, [payload(number, text) for number, text in enumerate(SENTENCES)])
    found = await attached(server, tmp_path, site_url="https://site.example/")
    assert (found.points, found.chunks) == (4, 4)
    assert found.agreement == pytest.approx(1.0, abs=1e-3)

    embedder = WordEmbedder()
    with index_provider(server, tmp_path) as opened:
        asker = AnswerPipeline(opened, embedder, Retriever(embedder), AgentConfig(retrieval_threshold=0.2))
        answer = await asker.ask(AgentRequest("What does the lamp of the lighthouse burn through the night?"))

    assert answer.outcome is Outcome.ANSWERED
    first, source = answer.citations[0], answer.sources[0]
    assert (first.quote, first.url.partition("#")[0], first.title) == (SENTENCES[0], url, title)
    assert source.text[first.start : first.end] == first.quote
    assert source.heading_hierarchy == headings
    assert source.chunk_id == "00000000-0000-4000-8000-000000000000"
    assert source.token_count == (42 if payload is as_003 else count_words(SENTENCES[0]))


async def test_refuses_uncovered_questions_with_the_default_rule(server: QdrantServer, tmp_path: Path) -> None:
    await fill(server, [as_004(number, text) for number, text in enumerate(SENTENCES)])
    await attached(server, tmp_path)
    embedder = WordEmbedder()
    with index_provider(server, tmp_path) as opened:
        async with opened.snapshot() as snapshot:
            idf_weights = snapshot.idf_weights(snapshot.bm25.terms("lamp zebra the"))
            assert len(set(idf_weights.values())) == 2  # Document frequencies are known.
        asker = AnswerPipeline(opened, embedder, Retriever(embedder), AgentConfig())
        answer = await asker.ask(AgentRequest("Quantum chromodynamics zebra?"))
    assert answer.outcome is Outcome.REFUSED


async def test_reports_found_and_missing_fields(server: QdrantServer, tmp_path: Path) -> None:
    payloads = [{"chunk_text": text} for text in SENTENCES[:3]] + [{"chunk_text": " "}]
    await fill(server, payloads)
    found = await attached(server, tmp_path)
    assert found.fields == {"text": "chunk_text"}
    assert (found.points, found.chunks) == (4, 3)
    said = "\n".join(found.lacks)
    for lacking in (
        "an index of words",
        "text in 1 of 4 points",
        "an absolute address in 3 points",
        "titles",
        "headings",
    ):
        assert lacking in said


async def test_filters_use_the_field_names_of_the_collection(server: QdrantServer, tmp_path: Path) -> None:
    await fill(server, [as_003(number, text) for number, text in enumerate(SENTENCES)])
    await attached(server, tmp_path)
    with index_provider(server, tmp_path) as opened:
        async with opened.snapshot() as snapshot:
            store = snapshot.store
            assert await store.count(NO_FILTERS) == 4
            assert await store.count(Filters(chapter="module-1/ch2")) == 1
            assert await store.count(Filters(module="Module 1", url_prefix="https://book.example/docs/ch1")) == 1
            found = await store.search(vector_of(SENTENCES[1]), "horn", limit=5, filters=Filters(module="None"))
            assert found == []


async def test_searches_named_vectors(server: QdrantServer, tmp_path: Path) -> None:
    params = models.VectorParams(size=DIMENSION, distance=models.Distance.COSINE)
    await fill(server, [as_004(number, text) for number, text in enumerate(SENTENCES)], vectors={"text": params})
    with pytest.raises(InputError, match=r"has no vector 'title'\. It has text"):
        await attached(server, tmp_path, vector="title")
    assert (await attached(server, tmp_path)).chunks == 4


@pytest.mark.parametrize(
    ("size", "distance", "said"),
    [
        pytest.param(7, models.Distance.COSINE, "vectors of 7 dimensions, but 'words' makes 32", id="dimension"),
        pytest.param(DIMENSION, models.Distance.EUCLID, "the distance Euclid", id="distance"),
    ],
)
async def test_rejects_vectors_of_another_dimension_or_distance(
    server: QdrantServer, tmp_path: Path, size: int, distance: models.Distance, said: str
) -> None:
    params = models.VectorParams(size=size, distance=distance)
    await server.write("filling", lambda client: client.create_collection("theirs", vectors_config=params))
    with pytest.raises(ConfigurationError, match=said):
        await attached(server, tmp_path)


async def test_rejects_an_embedder_that_did_not_make_the_vectors(server: QdrantServer, tmp_path: Path) -> None:
    others = ("zebra", "quartz onyx", "violin", "glacier moraine")
    await fill(server, [as_004(number, text) for number, text in enumerate(SENTENCES)], texts=others)
    with pytest.raises(ConfigurationError, match="were not made by 'words'"):
        await attached(server, tmp_path)
    assert not (tmp_path / "attached.json").exists()


async def test_explains_why_a_collection_cannot_be_attached(
    here: QdrantHere, server: QdrantServer, tmp_path: Path
) -> None:
    with pytest.raises(NotFound, match=r"no collection 'theirs' on .* There are: none at all"):
        await attached(server, tmp_path)
    await fill(server, [{"words": text} for text in SENTENCES])
    with pytest.raises(ConfigurationError, match=r"no text in a field with a known name .* It has words\."):
        await attached(server, tmp_path)
    here.engine.answer("PUT", ["collections", "theirs-book"], {"vectors": {}})
    with pytest.raises(InputError, match="is a book that bythebook manages"):
        await attached(server, tmp_path)


async def test_attaching_and_detaching_take_effect_at_once(server: QdrantServer, tmp_path: Path) -> None:
    await fill(server, [as_004(number, text) for number, text in enumerate(SENTENCES)])
    await attached(server, tmp_path)
    with index_provider(server, tmp_path) as opened:
        async with opened.snapshot() as before:
            pass
        more = models.PointStruct(id=77, vector=vector_of("oar").tolist(), payload=as_004(8, "An oar lies here."))
        await server.write("filling", lambda client: client.upsert("theirs", [more], wait=True))
        await attached(server, tmp_path)
        async with opened.snapshot() as after:
            assert (before.chunk_count, after.chunk_count) == (4, 5)
            assert before.name != after.name
        remove_attachment(tmp_path)
        with pytest.raises(NotFound, match="was detached"):
            async with opened.snapshot():
                pass


def test_joins_wrapped_lines() -> None:
    attachment = Attachment("http://x", "theirs", None, {"text": "text"}, "", {}, "")
    text = "It warns ships\nin fog.\n- one\n- two,\nand more\nSecond line"
    chunk = attachment.layout(count_words).to_chunk(1, {"text": text})
    assert chunk is not None
    assert chunk.text == "It warns ships in fog.\n- one\n- two, and more\nSecond line"
    code = "```py\nx = (1,\ny)\n```"
    fenced = attachment.layout(count_words).to_chunk(1, {"text": code})
    assert fenced is not None
    assert fenced.text == code


def test_prefers_the_field_name_of_most_payloads() -> None:
    payloads: list[dict[str, Any]] = [
        {"text": "a", "content": ""},
        {"text": "b", "metadata": {"title": "T"}},
        {"content": "c", "text": "d"},
    ]
    assert detect_fields(payloads) == {"text": "text", "title": "metadata.title"}


@pytest.mark.parametrize("url", ["javascript:alert(1)", " JavaScript:alert(1)", "data:text/html,x", "vbscript:x"])
@pytest.mark.parametrize("site_url", ["", "https://book.example"])
def test_an_unsafe_url_of_a_payload_is_replaced_by_a_urn(url: str, site_url: str) -> None:
    """001, 003, 004: only valid URLs reach a reader."""
    attachment = Attachment("http://x", "theirs", None, {"text": "text", "url": "url"}, site_url, {}, "")
    chunk = attachment.layout(count_words).to_chunk(1, {"text": "The lamp burns.", "url": url})
    assert chunk is not None
    assert chunk.url.startswith("urn:qdrant:theirs:")
