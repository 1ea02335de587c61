"""Vectors made on this machine, by MiniLM in onnxruntime: no service, no key, the same bits every time."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from bythebook.vectors import Identity, installed

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Sequence
    from pathlib import Path

    from tokenizers import Tokenizer

    from bythebook.vectors import Vector

IDENTITY = Identity(installed.NAME, 384)
LONGEST = 256
FIRST, LAST = 101, 102
AHEAD = 4


class LocalEmbedder:
    """Embeds one text at a time on each core.

    A batch would quantise its texts by a common scale, so that a vector would depend on what stands beside it. Two
    texts on a core each are also faster than one text on two cores.
    """

    def __init__(self, session: Any, tokenizer: Tokenizer, *, pool: ThreadPoolExecutor, ahead: int) -> None:
        self._session = session
        self._tokenizer = tokenizer
        self._pool = pool
        self._ahead = ahead

    @property
    def identity(self) -> Identity:
        return IDENTITY

    def count(self, text: str) -> int:
        return len(self._encoded(text))

    def counts(self, texts: Sequence[str]) -> list[int]:
        """`count` of each text, in half the time."""
        encoded = self._tokenizer.encode_batch_fast([_clean(text) for text in texts], add_special_tokens=False)
        return [len(each) for each in encoded]

    async def documents(self, texts: Sequence[str]) -> AsyncGenerator[Vector]:
        loop = asyncio.get_running_loop()
        running: deque[asyncio.Future[Vector]] = deque()
        try:
            for text in texts:
                running.append(loop.run_in_executor(self._pool, self._vector, text))
                if len(running) >= self._ahead:
                    yield await running.popleft()
            while running:
                yield await running.popleft()
        finally:
            for unwanted in running:
                unwanted.cancel()

    async def query(self, text: str) -> Vector:
        # Not in the pool: a question must not queue behind the documents of an ingest.
        return await asyncio.to_thread(self._vector, text)

    def _vector(self, text: str) -> Vector:
        ids = [FIRST, *self._encoded(text).ids[: LONGEST - 2], LAST]
        (vectors,) = self._session.run(None, {"ids": np.array([ids], dtype=np.int64)})
        vector: Vector = vectors[0]
        return vector

    def _encoded(self, text: str) -> Any:
        return self._tokenizer.encode(_clean(text), add_special_tokens=False)


@asynccontextmanager
async def local_embedder(cache: Path, *, workers: int = 0) -> AsyncIterator[LocalEmbedder]:
    """The embedder whose weights `bythebook model download` put into `cache`; its threads end with the block."""
    files = installed.find(cache)
    workers = workers or cores()
    session, tokenizer = await asyncio.gather(asyncio.to_thread(_session, files), asyncio.to_thread(_tokenizer, files))
    pool = ThreadPoolExecutor(workers, thread_name_prefix="embed")
    try:
        yield LocalEmbedder(session, tokenizer, pool=pool, ahead=AHEAD * workers)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def cores() -> int:
    """How many cores this process may use, which in a container is often fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _session(files: installed.Installed) -> Any:
    import onnxruntime  # type: ignore[import-untyped]  # noqa: PLC0415

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    # The graph was written in its final form; looking for improvements would double the time to open it.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        return onnxruntime.InferenceSession(files.folder / installed.GRAPH, options, providers=["CPUExecutionProvider"])
    except Exception as exc:  # onnxruntime raises a dozen unrelated classes for a file it cannot use
        raise installed.damaged(files.folder) from exc


def _tokenizer(files: installed.Installed) -> Tokenizer:
    from tokenizers import Tokenizer  # noqa: PLC0415

    try:
        tokenizer: Tokenizer = Tokenizer.from_file(str(files.folder / installed.TOKENIZER))
    except Exception as exc:  # tokenizers raises a bare Exception
        raise installed.damaged(files.folder) from exc
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _clean(text: str) -> str:
    """`text` without lone surrogates, which no tokenizer accepts."""
    return text.encode("utf-8", "replace").decode()
