"""The contract of every embedder."""

from __future__ import annotations

import asyncio
import os
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from bythebook.embeddings.config import EmbedderConfig, EmbedderLimits
from bythebook.embeddings.local import local_embedder
from bythebook.embeddings.remote import hosted_embedder
from bythebook.errors import ConfigurationError
from bythebook.models import GRANITE, install
from tests.support.embedding_server import ScriptedEmbeddings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from contextlib import AbstractAsyncContextManager

    from bythebook.embeddings import Embedder, Vector


def cache_folder() -> Path:
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bythebook" / "models"
    folder = Path(os.environ.get("BYTHEBOOK_MODEL_FOLDER") or default)
    try:
        install.find(folder, GRANITE)
    except ConfigurationError as exc:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(exc))
    return folder


@asynccontextmanager
async def local() -> AsyncIterator[Embedder]:
    async with local_embedder(cache_folder()) as embedder:
        yield embedder


@asynccontextmanager
async def cohere() -> AsyncIterator[Embedder]:
    async with ScriptedEmbeddings(dimension=1024, key="k") as server:
        choice = EmbedderConfig("cohere:embed-english-v3.0", url=server.cohere_url, api_key="k", limits=UNHURRIED)
        async with hosted_embedder(choice, embedder_id=None) as embedder:
            yield embedder


@asynccontextmanager
async def openai() -> AsyncIterator[Embedder]:
    async with ScriptedEmbeddings(key="k") as server:
        choice = EmbedderConfig("openai:text-embedding-3-small", url=server.openai_url, api_key="k", limits=UNHURRIED)
        async with hosted_embedder(choice, embedder_id=None) as embedder:
            yield embedder


UNHURRIED = EmbedderLimits(question_seconds=60.0)
"""Timeouts that a slow machine does not reach."""
ADAPTERS: list[Callable[[], AbstractAsyncContextManager[Embedder]]] = [local, cohere, openai]

STRANGE = {
    "nothing": "",
    "blank": " \n\t ",
    "long": "The quick brown fox jumps over the lazy dog. " * 4000,
    "one endless word": "a" * 100_000,
    "other alphabets": "Ελληνικά, русский, 中文, العربية, हिन्दी, 日本語",
    "emoji": "👩‍👩‍👧‍👦 🏳️‍🌈 e\u0301",
    "control characters": "a\x00b\x1b[31m\u202e",
    "half a character": "a lone \ud800 surrogate",
    "the model's own marks": "[CLS] [SEP] [PAD] [MASK]",
}
TEXTS = [
    "Robots see with cameras.",
    "Bread is baked in an oven.",
    *STRANGE.values(),
    "Short.",
    "Robots see with cameras.",
]


@pytest.fixture(params=ADAPTERS, ids=lambda adapter: adapter.__name__)
async def embedder(request: pytest.FixtureRequest) -> AsyncIterator[Embedder]:
    async with request.param() as embedder:
        yield embedder


async def vectors(embedder: Embedder, texts: Sequence[str]) -> list[Vector]:
    return [vector async for vector in embedder.embed_documents(texts)]


@pytest.mark.parametrize("text", STRANGE.values(), ids=STRANGE)
async def test_any_text_has_a_unit_vector(embedder: Embedder, text: str) -> None:
    (document,) = await vectors(embedder, [text])

    for vector in (document, await embedder.embed_query(text)):
        assert (vector.shape, vector.dtype.name) == ((embedder.identity.dimension,), "float32")
        assert abs(float(np.linalg.norm(vector)) - 1) < 1e-5


async def test_a_vector_does_not_depend_on_the_other_texts(embedder: Embedder) -> None:
    alone = [(await vectors(embedder, [text]))[0] for text in TEXTS]
    together = await vectors(embedder, TEXTS)
    reversed_order = await vectors(embedder, TEXTS[::-1])

    assert [v.tobytes() for v in together] == [v.tobytes() for v in alone]
    assert [v.tobytes() for v in reversed_order[::-1]] == [v.tobytes() for v in alone]


async def test_vectors_are_in_the_order_of_their_texts(embedder: Embedder) -> None:
    texts = [f"Chapter {number} " + "and so on " * (40 - number) for number in range(40)]

    expected = [(await vectors(embedder, [text]))[0].tobytes() for text in texts]

    assert [v.tobytes() for v in await vectors(embedder, texts)] == expected


async def test_no_texts_give_no_vectors(embedder: Embedder) -> None:
    assert await vectors(embedder, []) == []


async def test_concurrent_streams_and_queries_are_independent(embedder: Embedder) -> None:
    alone = [v.tobytes() for v in await vectors(embedder, TEXTS)]
    question = (await embedder.embed_query("What do robots see with?")).tobytes()

    async with asyncio.TaskGroup() as group:
        streams = [group.create_task(vectors(embedder, TEXTS)) for _ in range(3)]
        questions = [group.create_task(embedder.embed_query("What do robots see with?")) for _ in range(5)]

    assert [[v.tobytes() for v in stream.result()] for stream in streams] == [alone] * 3
    assert [task.result().tobytes() for task in questions] == [question] * 5


async def test_the_embedder_works_after_a_stream_is_closed_early(embedder: Embedder) -> None:
    many = [f"Sentence number {number} of a very long book." for number in range(100_000)]

    async with aclosing(embedder.embed_documents(many)) as stream:
        first = await anext(stream)

    assert first.tobytes() == (await vectors(embedder, many[:1]))[0].tobytes()


async def test_a_cancelled_stream_stops(embedder: Embedder) -> None:
    started = asyncio.Event()

    async def read() -> None:
        async with aclosing(embedder.embed_documents(["One sentence of many."] * 100_000)) as stream:
            async for _ in stream:
                started.set()

    reading = asyncio.create_task(read())
    await started.wait()
    reading.cancel()

    with pytest.raises(asyncio.CancelledError):
        await reading
    assert len(await vectors(embedder, TEXTS)) == len(TEXTS)


async def test_a_question_is_nearest_to_the_text_that_answers_it(embedder: Embedder) -> None:
    answers = await vectors(embedder, ["Bread is baked for forty minutes.", "The robot charges at its dock."])
    question = await embedder.embed_query("How many minutes is bread baked for?")

    assert question @ answers[0] > question @ answers[1]


async def test_counts_tokens_beyond_the_window_and_without_special_tokens(embedder: Embedder) -> None:
    assert embedder.count_tokens("") == 0
    assert 0 < embedder.count_tokens("one") < embedder.count_tokens("one two three")
    assert embedder.count_tokens("word " * 5000) >= 5000
    assert embedder.count_tokens("a lone \ud800 surrogate") > 0


async def test_accepts_an_async_iterator_of_texts(embedder: Embedder) -> None:
    async def made() -> AsyncIterator[str]:
        for text in TEXTS[:2]:
            await asyncio.sleep(0)
            yield text

    arrived = [vector.tobytes() async for vector in embedder.embed_documents(made())]
    assert arrived == [vector.tobytes() for vector in await vectors(embedder, TEXTS[:2])]
