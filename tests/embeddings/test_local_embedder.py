from __future__ import annotations

import asyncio
import hashlib
import os
import random
import shutil
import subprocess
import sys
import threading
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

from bythebook.embeddings import EmbedderId
from bythebook.embeddings.local import EMBEDDER_ID, LocalEmbedder, local_embedder
from bythebook.errors import ConfigurationError
from bythebook.models import GRANITE, install
from bythebook.models.runtime import available_cores, start_loading
from tests.support.model_weights import cache_folder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path


@pytest.fixture
async def embedder() -> AsyncIterator[LocalEmbedder]:
    async with local_embedder(cache_folder()) as embedder:
        yield embedder


def embedding_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("embed")}


async def test_the_embedder_id_names_the_weights_and_the_conversion(embedder: LocalEmbedder) -> None:
    assert embedder.identity == EmbedderId("granite-embedding-30m-english-int8.1", 384)


@pytest.mark.parametrize(
    ("one", "other", "likeness"),
    [
        # The cosines that the graph in 32-bit floats gives for the published weights.
        pytest.param("A man is eating food.", "A man is eating a piece of bread.", 0.9215, id="nearly the same"),
        pytest.param("A man is eating food.", "The girl is carrying a baby.", 0.7052, id="something else"),
        pytest.param("How do I reset my password?", "Steps to change a forgotten password", 0.8334, id="a question"),
    ],
)
async def test_known_pairs_have_the_expected_cosines(
    embedder: LocalEmbedder, one: str, other: str, likeness: float
) -> None:
    assert float(await embedder.embed_query(one) @ await embedder.embed_query(other)) == pytest.approx(
        likeness, abs=0.04
    )


async def test_a_query_is_nearest_to_its_paraphrase(embedder: LocalEmbedder) -> None:
    texts = ["Bread is baked for forty minutes.", "The robot charges at its dock."]
    bread, robot = [vector async for vector in embedder.embed_documents(texts)]
    question = await embedder.embed_query("How long does a loaf stay in the oven?")
    assert question @ bread > question @ robot


async def test_ignores_tokens_after_the_first_510(embedder: LocalEmbedder) -> None:
    words = ["word"] * 510

    whole = await embedder.embed_query(" ".join(words))

    assert embedder.count_tokens(" ".join(words)) == 510
    assert whole.tobytes() == (await embedder.embed_query(" ".join([*words, "more"]))).tobytes()
    assert whole.tobytes() != (await embedder.embed_query(" ".join([*words[1:], "more"]))).tobytes()


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("hello world", 2), ("Hello, World!", 4), ("tokenization", 2), ("x" * 101, 14), ("naïve café", 3)],
)
async def test_counts_the_tokens_of_the_model(embedder: LocalEmbedder, text: str, tokens: int) -> None:
    assert embedder.count_tokens(text) == tokens


async def test_the_token_count_of_a_text_is_the_sum_over_its_words(embedder: LocalEmbedder) -> None:
    """Words are counted once. Not every Unicode space separates words for the model."""
    chance = random.Random(3)  # noqa: S311 - the same every time
    alphabet = [*" \t\n\r\x0b\x0c\x1c\x1f\x85\xa0\u2003\u3000\u200b\ud800aeé中.,-_#'0", "[SEP]", "lighthouse", "##ing"]
    for _ in range(400):
        text = "".join(chance.choices(alphabet, k=chance.randint(0, 30)))
        whole = text.encode("utf-8", "replace").decode("utf-8")
        assert embedder.count_tokens(text) == len(embedder._tokenizer(whole)), repr(text)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cores cannot be taken away on this system")
async def test_another_process_on_one_core_gives_the_same_bits_silently(embedder: LocalEmbedder) -> None:
    script = (
        "import asyncio, hashlib, os, pathlib, sys\n"
        "from bythebook.embeddings.local import local_embedder\n"
        "from bythebook.models.runtime import available_cores\n"
        "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "async def main():\n"
        "    async with local_embedder(pathlib.Path(sys.argv[1])) as embedder:\n"
        "        vectors = [v.tobytes() async for v in embedder.embed_documents(sys.argv[2:])]\n"
        "    print(available_cores(), hashlib.sha256(b''.join(vectors)).hexdigest())\n"
        "asyncio.run(main())\n"
    )
    texts = ["A short one.", "A longer one, " * 60, "Ελληνικά"]
    here = hashlib.sha256(b"".join([v.tobytes() async for v in embedder.embed_documents(texts)])).hexdigest()

    command = [sys.executable, "-c", script, str(cache_folder()), *texts]
    there = await asyncio.to_thread(subprocess.run, command, capture_output=True, check=True)

    assert (there.stdout.decode(), there.stderr) == (f"1 {here}\n", b"")


async def test_reads_only_a_few_texts_ahead_of_the_consumer(embedder: LocalEmbedder) -> None:
    taken: list[str] = []

    class Book(list[str]):
        def __iter__(self) -> Iterator[str]:
            for text in super().__iter__():
                taken.append(text)
                yield text

    async with aclosing(embedder.embed_documents(Book(["A sentence."] * 1000))) as stream:
        await anext(stream)

    assert len(taken) == 4 * available_cores()


async def test_no_thread_outlives_the_embedder() -> None:
    of_others = embedding_threads()
    async with local_embedder(cache_folder()) as embedder, aclosing(embedder.embed_documents(["text"] * 500)) as stream:
        await anext(stream)
        assert embedding_threads() > of_others

    assert embedding_threads() <= of_others


async def test_explains_how_to_download_missing_weights(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="bythebook model download"):
        async with local_embedder(tmp_path):
            pass


async def test_a_pending_session_is_not_loaded_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = start_loading(cache_folder(), GRANITE)
    assert begun
    monkeypatch.setattr("bythebook.embeddings.local.open_session", lambda _files: pytest.fail("it is loaded again"))
    async with local_embedder(cache_folder(), pending=begun) as embedder:
        assert (await embedder.embed_query("A lamp.")).shape == (EMBEDDER_ID.dimension,)


def test_a_missing_model_does_not_start_loading(tmp_path: Path) -> None:
    assert start_loading(tmp_path, GRANITE) is None


@pytest.mark.parametrize("early", [False, True], ids=["when it is needed", "before"])
@pytest.mark.parametrize("name", [install.GRAPH, install.TOKENIZER])
async def test_reports_a_damaged_file_of_the_right_size(tmp_path: Path, name: str, early: bool) -> None:
    shutil.copytree(cache_folder() / GRANITE.name, tmp_path / GRANITE.name)
    path = tmp_path / GRANITE.name / name
    path.write_bytes(bytes(path.stat().st_size))

    with pytest.raises(ConfigurationError, match="is damaged"):
        async with local_embedder(tmp_path, pending=start_loading(tmp_path, GRANITE) if early else None):
            pass
