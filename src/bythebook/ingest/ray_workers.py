"""The actors of the Ray engine: one reads and splits pages, the other embeds texts.

Each instance runs in its own process, maybe on another machine, and receives batches. Items are pickled: both ends run
the same code.
"""

import asyncio
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bythebook.chunking.splitter import ChunkSizes, split_page
from bythebook.embeddings.local import ModelFolder
from bythebook.sources import ListedPage, PageSource, Unreadable

Batch = dict[str, NDArray[Any]]


class ReadWorker:
    """Reads pages and splits them into chunks."""

    def __init__(self, source: PageSource, sizes: ChunkSizes, model: ModelFolder | None) -> None:
        self._source = source
        self._sizes = sizes
        self._count = _load_counter(model)

    def __call__(self, batch: Batch) -> Batch:
        results = [pickle.dumps(self._read(pickle.loads(listed))) for listed in batch["listed"]]  # noqa: S301 - RayEngine wrote it
        return {"index": batch["index"], "result": np.array(results, dtype=object)}

    def _read(self, listed: ListedPage) -> object:
        """The page and its chunks, or the reason why it cannot be read."""
        try:
            page = asyncio.run(self._source.read(listed))
        except Unreadable as reason:
            return str(reason)
        return page, list(split_page(page, count=self._count, sizes=self._sizes))


class EmbedWorker:
    """Embeds texts with the local model, one at a time. There is one worker for each core."""

    def __init__(self, model: ModelFolder) -> None:
        self._embedder = model.open()

    def __call__(self, batch: Batch) -> Batch:
        vectors: NDArray[np.float32] = np.stack([self._embedder.embed(str(text)) for text in batch["text"]])
        return {"index": batch["index"], "vector": vectors}


def _load_counter(model: ModelFolder | None) -> Callable[[str], int]:
    if model is not None:
        return model.open().count_tokens
    from bythebook.embeddings.remote import count_tokens

    return count_tokens
