"""The local embedder: MiniLM in onnxruntime. It needs no service and no key, and its vectors are deterministic.

Another type of processor may round the last bit differently; the integer products are exact everywhere.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from bythebook.embeddings import EmbedderId, iterate_texts
from bythebook.embeddings.minilm import download
from bythebook.embeddings.minilm.wordpiece import WordPieceTokenizer
from bythebook.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator
    from pathlib import Path

    from bythebook.embeddings import Texts, Vector

    PendingSession = Future[Any]
    """An onnxruntime session that a thread is loading."""


EMBEDDER_ID = EmbedderId(download.NAME, 384)
MAX_TOKENS = 256
FIRST, LAST = 101, 102
"""The ids of the special tokens before and after a text."""
TASKS_PER_CORE = 4
_WHITESPACE = re.compile(r"[ \t\r\n]+")
_CACHED_WORDS = 1 << 14
_LOG_ERRORS_ONLY = 3


class LocalEmbedder:
    """Embeds one text per core at a time, and only its first 254 tokens.

    A batch would be quantised by a common scale, so a vector would depend on the other texts of the batch. One text
    per core is also faster than one text on all cores.
    """

    def __init__(
        self, session: Any, tokenizer: WordPieceTokenizer, *, pool: ThreadPoolExecutor, max_tasks: int
    ) -> None:
        self._session = session
        self._tokenizer = tokenizer
        self._pool = pool
        self._max_tasks = max_tasks
        self._count_word = lru_cache(_CACHED_WORDS)(lambda word: len(tokenizer(word)))

    @property
    def identity(self) -> EmbedderId:
        return EMBEDDER_ID

    def count_tokens(self, text: str) -> int:
        # The sum over the words is cheap, because most words are in the cache. Only characters that the tokenizer
        # treats as whitespace separate them.
        return sum(map(self._count_word, _WHITESPACE.split(text)))

    async def embed_documents(self, texts: Texts) -> AsyncGenerator[Vector]:
        loop = asyncio.get_running_loop()
        running: deque[asyncio.Future[Vector]] = deque()
        try:
            async for text in iterate_texts(texts):
                running.append(loop.run_in_executor(self._pool, self.embed, text))
                if len(running) == self._max_tasks:
                    yield await running.popleft()
            while running:
                yield await running.popleft()
        finally:
            for task in running:
                task.cancel()

    async def embed_query(self, text: str) -> Vector:
        # Not in the pool: a question must not queue behind the documents of an ingest.
        return await asyncio.to_thread(self.embed, text)

    def embed(self, text: str) -> Vector:
        """The vector of a text, computed in the calling thread."""
        # Imported here because it takes most of the start-up time, and other modules load in the meantime.
        import numpy as np

        ids = [FIRST, *self._tokenizer(text)[: MAX_TOKENS - 2], LAST]
        (vectors,) = self._session.run(None, {"ids": np.array([ids], dtype=np.int64)})
        vector: Vector = vectors[0]
        return vector


@asynccontextmanager
async def local_embedder(cache: Path, *, pending: PendingSession | None = None) -> AsyncIterator[LocalEmbedder]:
    """The embedder with the model in `cache`, where `bythebook model download` puts it. Its threads end on exit."""
    model = download.find(cache)
    loading = asyncio.wrap_future(pending) if pending else asyncio.to_thread(load_session, model)
    tokenizer, session = await asyncio.gather(asyncio.to_thread(_load_tokenizer, model), loading)
    workers = available_cores()
    pool = ThreadPoolExecutor(workers, thread_name_prefix="embed")
    try:
        yield LocalEmbedder(session, tokenizer, pool=pool, max_tasks=TASKS_PER_CORE * workers)
    finally:
        await asyncio.to_thread(pool.shutdown, cancel_futures=True)


def single_core_embedder(cache: Path) -> LocalEmbedder:
    """An embedder with one thread, for a process that runs on one core."""
    model = download.find(cache)
    pool = ThreadPoolExecutor(1)
    return LocalEmbedder(load_session(model), _load_tokenizer(model), pool=pool, max_tasks=TASKS_PER_CORE)


def available_cores() -> int:
    """The cores that this process may use. In a container these are often fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _load_tokenizer(model: download.InstalledModel) -> WordPieceTokenizer:
    try:
        return WordPieceTokenizer(model.folder / download.TOKENIZER)
    except (OSError, ValueError, KeyError, TypeError) as exc:
        raise download.damage_error(model.folder) from exc


def start_loading(cache: Path) -> PendingSession | None:
    """Start loading the model in `cache` in a thread, for commands that need it at once. None if there is no model.

    Importing onnxruntime holds the interpreter lock and comes first. Loading the session releases it, so other
    modules are imported at the same time.
    """
    try:
        model = download.find(cache)
    except ConfigurationError:
        return None
    import onnxruntime  # type: ignore[import-untyped]  # noqa: F401 - imported here for load_session

    return ThreadPoolExecutor(1, thread_name_prefix="model").submit(load_session, model)


def load_session(model: download.InstalledModel) -> Any:
    """The onnxruntime session of this model. Raises ConfigurationError if the files cannot be used."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    # The graph is exported in its final form and every text has its own length. Graph optimisation, memory planning
    # and a memory arena sized for the longest text have no benefit.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.enable_mem_pattern = options.enable_cpu_mem_arena = False
    options.log_severity_level = _LOG_ERRORS_ONLY
    try:
        return onnxruntime.InferenceSession(model.folder / download.GRAPH, options, providers=["CPUExecutionProvider"])
    except Exception as exc:  # onnxruntime raises a dozen unrelated classes for an invalid file
        raise download.damage_error(model.folder) from exc
