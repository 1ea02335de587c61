"""The local embedder, in onnxruntime. It needs no service and no key, and its vectors are deterministic.

Another type of processor may round the last bit differently; the integer products are exact everywhere.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bythebook.embeddings import EmbedderId, iterate_texts
from bythebook.errors import ConfigurationError
from bythebook.models import GRANITE, MINILM, ModelSpec, install
from bythebook.models.runtime import BytePairTokenizer, PendingSession, available_cores, open_session
from bythebook.models.wordpiece import WordPieceTokenizer

if TYPE_CHECKING:
    from bythebook.embeddings import Texts, Vector

TASKS_PER_CORE = 4
Tokenizer = BytePairTokenizer | WordPieceTokenizer


@dataclass(frozen=True, slots=True)
class LocalModel:
    """How a local embedding model is used."""

    spec: ModelSpec
    tokenizer: type[BytePairTokenizer] | type[WordPieceTokenizer]
    first: int
    last: int
    """The ids of the special tokens before and after a text."""
    max_tokens: int
    dimension: int = 384

    @property
    def identity(self) -> EmbedderId:
        return EmbedderId(self.spec.name, self.dimension)


LOCAL_MODELS: Mapping[str, LocalModel] = {
    model.spec.name: model
    for model in (
        LocalModel(GRANITE, BytePairTokenizer, first=0, last=2, max_tokens=512),
        LocalModel(MINILM, WordPieceTokenizer, first=101, last=102, max_tokens=256),
    )
}
"""By the name in the identity of an index. The first one is the default; books made with another stay readable."""
DEFAULT_MODEL = LOCAL_MODELS[GRANITE.name]
EMBEDDER_ID = DEFAULT_MODEL.identity


class LocalEmbedder:
    """Embeds one text per core at a time, and only as many tokens of it as the model reads.

    A batch would be quantised by a common scale, so a vector would depend on the other texts of the batch. One text
    per core is also faster than one text on all cores.
    """

    def __init__(
        self, model: LocalModel, session: Any, tokenizer: Tokenizer, *, pool: ThreadPoolExecutor, max_tasks: int
    ) -> None:
        self._model = model
        self._session = session
        self._tokenizer = tokenizer
        self._pool = pool
        self._max_tasks = max_tasks

    @property
    def identity(self) -> EmbedderId:
        return self._model.identity

    def count_tokens(self, text: str) -> int:
        return self._tokenizer.count(text)

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

        model = self._model
        ids = [model.first, *self._tokenizer(text)[: model.max_tokens - 2], model.last]
        (vectors,) = self._session.run(None, {"ids": np.array([ids], dtype=np.int64)})
        vector: Vector = vectors[0]
        return vector


class ModelFolder(NamedTuple):
    """Where a local model is: for processes that open it again."""

    cache: Path
    model: str

    def open(self) -> LocalEmbedder:
        """An embedder with one thread. Its model is downloaded if this machine does not have it."""
        model = LOCAL_MODELS[self.model]
        try:
            installed = install.find(self.cache, model.spec)
        except ConfigurationError:
            installed = install.download(self.cache, model.spec, say=lambda _: None)
        tokenizer = _load_tokenizer(model, installed)
        pool = ThreadPoolExecutor(1)
        return LocalEmbedder(model, open_session(installed), tokenizer, pool=pool, max_tasks=TASKS_PER_CORE)


@asynccontextmanager
async def local_embedder(
    cache: Path, model: LocalModel = DEFAULT_MODEL, *, pending: PendingSession | None = None
) -> AsyncIterator[LocalEmbedder]:
    """The embedder with the model in `cache`, where `bythebook model download` puts it. Its threads end on exit."""
    installed = install.find(cache, model.spec)
    loading = asyncio.wrap_future(pending) if pending else asyncio.to_thread(open_session, installed)
    tokenizer, session = await asyncio.gather(asyncio.to_thread(_load_tokenizer, model, installed), loading)
    workers = available_cores()
    pool = ThreadPoolExecutor(workers, thread_name_prefix="embed")
    try:
        yield LocalEmbedder(model, session, tokenizer, pool=pool, max_tasks=TASKS_PER_CORE * workers)
    finally:
        await asyncio.to_thread(pool.shutdown, cancel_futures=True)


@asynccontextmanager
async def installed_embedder(
    cache: Path, model: LocalModel, *, say: Callable[[str], None], pending: PendingSession | None
) -> AsyncIterator[LocalEmbedder]:
    """The local embedder. Its model is downloaded into `cache` if it is not there yet."""
    try:
        install.find(cache, model.spec)
    except ConfigurationError:
        await asyncio.to_thread(install.download, cache, model.spec, say=say)
    async with local_embedder(cache, model, pending=pending) as embedder:
        yield embedder


def _load_tokenizer(model: LocalModel, installed: install.InstalledModel) -> Tokenizer:
    try:
        tokenizer = model.tokenizer(installed.folder / install.TOKENIZER)
        tokenizer("words")
    except Exception as exc:  # the tokenizers library raises bare exceptions for an invalid file
        raise install.damage_error(model.spec, installed.folder) from exc
    return tokenizer
