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

from bythebook.embeddings import Identity
from bythebook.embeddings.minilm import download
from bythebook.embeddings.minilm.embedder import IDENTITY, LocalEmbedder, begin, cores, local_embedder
from bythebook.errors import ConfigurationError
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


async def test_its_identity_names_the_weights_and_how_they_were_converted(embedder: LocalEmbedder) -> None:
    assert embedder.identity == Identity("all-MiniLM-L6-v2-int8.1", 384)


@pytest.mark.parametrize(
    ("one", "other", "likeness"),
    [
        # What `full_graph` of the published weights gives for each pair.
        pytest.param("A man is eating food.", "A man is eating a piece of bread.", 0.7553, id="nearly the same"),
        pytest.param("A man is eating food.", "The girl is carrying a baby.", -0.1050, id="something else"),
        pytest.param("How do I reset my password?", "Steps to change a forgotten password", 0.8095, id="a question"),
    ],
)
async def test_known_pairs_are_as_alike_as_they_should_be(
    embedder: LocalEmbedder, one: str, other: str, likeness: float
) -> None:
    assert float(await embedder.query(one) @ await embedder.query(other)) == pytest.approx(likeness, abs=0.04)


async def test_a_question_finds_what_says_it_in_other_words(embedder: LocalEmbedder) -> None:
    texts = ["Bread is baked for forty minutes.", "The robot charges at its dock."]
    bread, robot = [vector async for vector in embedder.documents(texts)]
    question = await embedder.query("How long does a loaf stay in the oven?")
    assert question @ bread > question @ robot


async def test_only_the_first_254_tokens_are_read(embedder: LocalEmbedder) -> None:
    words = ["word"] * 254

    whole = await embedder.query(" ".join(words))

    assert embedder.count(" ".join(words)) == 254
    assert whole.tobytes() == (await embedder.query(" ".join([*words, "more"]))).tobytes()
    assert whole.tobytes() != (await embedder.query(" ".join([*words[1:], "more"]))).tobytes()


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("hello world", 2), ("Hello, World!", 4), ("tokenization", 2), ("x" * 101, 1), ("naïve café", 2)],
)
async def test_tokens_are_the_models_own(embedder: LocalEmbedder, text: str, tokens: int) -> None:
    assert embedder.count(text) == tokens


async def test_a_text_has_as_many_tokens_as_its_words(embedder: LocalEmbedder) -> None:
    """Which are counted once. Not everything that looks like a space parts words for the model."""
    chance = random.Random(3)  # noqa: S311 - the same every time
    alphabet = [*" \t\n\r\x0b\x0c\x1c\x1f\x85\xa0\u2003\u3000\u200b\ud800aeé中.,-_#'0", "[SEP]", "lighthouse", "##ing"]
    for _ in range(400):
        text = "".join(chance.choices(alphabet, k=chance.randint(0, 30)))
        whole = text.encode("utf-8", "replace").decode("utf-8")
        assert embedder.count(text) == len(embedder._pieces(whole)), repr(text)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cores cannot be taken away on this system")
async def test_another_process_on_one_core_gives_the_same_bits_and_says_nothing(embedder: LocalEmbedder) -> None:
    script = (
        "import asyncio, hashlib, os, pathlib, sys\n"
        "from bythebook.embeddings.minilm.embedder import cores, local_embedder\n"
        "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "async def main():\n"
        "    async with local_embedder(pathlib.Path(sys.argv[1])) as embedder:\n"
        "        vectors = [v.tobytes() async for v in embedder.documents(sys.argv[2:])]\n"
        "    print(cores(), hashlib.sha256(b''.join(vectors)).hexdigest())\n"
        "asyncio.run(main())\n"
    )
    texts = ["A short one.", "A longer one, " * 60, "Ελληνικά"]
    here = hashlib.sha256(b"".join([v.tobytes() async for v in embedder.documents(texts)])).hexdigest()

    command = [sys.executable, "-c", script, str(cache_folder()), *texts]
    there = await asyncio.to_thread(subprocess.run, command, capture_output=True, check=True)

    assert (there.stdout.decode(), there.stderr) == (f"1 {here}\n", b"")


async def test_only_a_few_texts_are_taken_on_ahead_of_the_reader(embedder: LocalEmbedder) -> None:
    taken: list[str] = []

    class Book(list[str]):
        def __iter__(self) -> Iterator[str]:
            for text in super().__iter__():
                taken.append(text)
                yield text

    async with aclosing(embedder.documents(Book(["A sentence."] * 1000))) as stream:
        await anext(stream)

    assert len(taken) == 4 * cores()


async def test_no_thread_outlives_the_embedder() -> None:
    of_others = embedding_threads()
    async with local_embedder(cache_folder()) as embedder, aclosing(embedder.documents(["text"] * 500)) as stream:
        await anext(stream)
        assert embedding_threads() > of_others

    assert embedding_threads() <= of_others


async def test_where_there_are_no_weights_the_message_says_how_to_get_them(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="bythebook model download"):
        async with local_embedder(tmp_path):
            pass


async def test_a_model_that_was_begun_to_load_before_is_not_loaded_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = begin(cache_folder())
    assert begun
    monkeypatch.setattr("bythebook.embeddings.minilm.embedder.load", lambda _files: pytest.fail("it is loaded again"))
    async with local_embedder(cache_folder(), begun=begun) as embedder:
        assert (await embedder.query("A lamp.")).shape == (IDENTITY.dimension,)


def test_what_is_not_there_is_not_begun_to_load(tmp_path: Path) -> None:
    assert begin(tmp_path) is None


@pytest.mark.parametrize("early", [False, True], ids=["when it is needed", "before"])
@pytest.mark.parametrize("name", [download.GRAPH, download.TOKENIZER])
async def test_a_damaged_file_of_the_right_size_is_named_as_damaged(tmp_path: Path, name: str, early: bool) -> None:
    shutil.copytree(cache_folder() / download.NAME, tmp_path / download.NAME)
    path = tmp_path / download.NAME / name
    path.write_bytes(bytes(path.stat().st_size))

    with pytest.raises(ConfigurationError, match="is damaged"):
        async with local_embedder(tmp_path, begun=begin(tmp_path) if early else None):
            pass
