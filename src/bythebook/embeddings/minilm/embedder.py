"""Vectors made on this machine, by MiniLM in onnxruntime: no service, no key, and for one text always the same bits.

Another kind of processor may round the last bit differently; the products of bytes are exact everywhere.

The model in onnxruntime. All threads of a process share one session.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from bythebook.embeddings import Identity, arriving
from bythebook.embeddings.minilm import download
from bythebook.embeddings.minilm.wordpiece import Pieces
from bythebook.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator
    from concurrent.futures import Future
    from pathlib import Path

    from bythebook.embeddings import Texts, Vector

    Begun = Future[Any]
    """A session that a thread is already loading."""


IDENTITY = Identity(download.NAME, 384)
LONGEST = 256
FIRST, LAST = 101, 102
AHEAD = 4
_SPACES = re.compile(r"[ \t\r\n]+")
_WORDS_KNOWN = 1 << 14


class LocalEmbedder:
    """Embeds one text at a time on each core, reading its first 254 tokens.

    A batch would be quantised by a common scale, so that a vector would depend on what stands beside it. A text to a
    core is also faster than one text on all of them.
    """

    def __init__(self, session: Any, pieces: Pieces, *, pool: ThreadPoolExecutor, ahead: int) -> None:
        self._session = session
        self._pieces = pieces
        self._pool = pool
        self._ahead = ahead
        self._count_word = lru_cache(_WORDS_KNOWN)(lambda word: len(pieces(word)))

    @property
    def identity(self) -> Identity:
        return IDENTITY

    def count(self, text: str) -> int:
        # The tokens of a text are those of its words, and most words were seen before. Only what the tokenizer itself
        # takes for a space parts them.
        return sum(map(self._count_word, _SPACES.split(text)))

    async def documents(self, texts: Texts) -> AsyncGenerator[Vector]:
        loop = asyncio.get_running_loop()
        running: deque[asyncio.Future[Vector]] = deque()
        try:
            async for text in arriving(texts):
                running.append(loop.run_in_executor(self._pool, self._embed, text))
                if len(running) == self._ahead:
                    yield await running.popleft()
            while running:
                yield await running.popleft()
        finally:
            for unwanted in running:
                unwanted.cancel()

    async def query(self, text: str) -> Vector:
        # Not in the pool: a question must not queue behind the documents of an ingest.
        return await asyncio.to_thread(self._embed, text)

    def embed(self, text: str) -> Vector:
        """The vector of a text, made in this very thread."""
        return self._embed(text)

    def _embed(self, text: str) -> Vector:
        # Not above: it takes most of the time of a start, and everything else loads meanwhile.
        import numpy as np

        ids = [FIRST, *self._pieces(text)[: LONGEST - 2], LAST]
        (vectors,) = self._session.run(None, {"ids": np.array([ids], dtype=np.int64)})
        vector: Vector = vectors[0]
        return vector


@asynccontextmanager
async def local_embedder(cache: Path, *, begun: Begun | None = None) -> AsyncIterator[LocalEmbedder]:
    """The embedder whose weights `bythebook model download` put into `cache`. Its threads end with the block."""
    files = download.find(cache)
    loaded = asyncio.wrap_future(begun) if begun else asyncio.to_thread(load, files)
    pieces, session = await asyncio.gather(asyncio.to_thread(_pieces, files), loaded)
    workers = cores()
    pool = ThreadPoolExecutor(workers, thread_name_prefix="embed")
    try:
        yield LocalEmbedder(session, pieces, pool=pool, ahead=AHEAD * workers)
    finally:
        await asyncio.to_thread(pool.shutdown, cancel_futures=True)


def lone_embedder(cache: Path) -> LocalEmbedder:
    """The same for a process that has one core to itself."""
    files = download.find(cache)
    return LocalEmbedder(load(files), _pieces(files), pool=ThreadPoolExecutor(1), ahead=AHEAD)


def cores() -> int:
    """How many cores this process may use, which in a container is often fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _pieces(files: download.Installed) -> Pieces:
    try:
        return Pieces(files.folder / download.TOKENIZER)
    except (OSError, ValueError, KeyError, TypeError) as exc:
        raise download.damaged(files.folder) from exc


_ERRORS_ONLY = 3


def begin(cache: Path) -> Begun | None:
    """Begin to load the weights in `cache`, for a process that waits for little else. None where there are none yet.

    The import keeps the interpreter busy and comes first. Loading leaves it free, so whatever else is imported is
    imported meanwhile.
    """
    try:
        files = download.find(cache)
    except ConfigurationError:
        return None
    from concurrent.futures import ThreadPoolExecutor

    import onnxruntime  # type: ignore[import-untyped]  # noqa: F401 - for whoever loads

    return ThreadPoolExecutor(1, thread_name_prefix="model").submit(load, files)


def load(files: download.Installed) -> Any:
    """The session for these weights. Raises ConfigurationError where they cannot be used."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    # The graph was written in its final form and every text has its own length: there is nothing to gain from
    # looking for improvements, from planning memory ahead, or from keeping memory for the longest text seen.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.enable_mem_pattern = options.enable_cpu_mem_arena = False
    options.log_severity_level = _ERRORS_ONLY
    try:
        return onnxruntime.InferenceSession(files.folder / download.GRAPH, options, providers=["CPUExecutionProvider"])
    except Exception as exc:  # onnxruntime has a dozen unrelated classes for a file it cannot use
        raise download.damaged(files.folder) from exc
