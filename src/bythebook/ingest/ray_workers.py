"""What the workers of a cluster do: read and cut pages, or embed texts.

Each is made once in a process of its own, maybe on another machine, and then given batches. What goes in and comes out
is pickled, because both ends are ours.
"""

from __future__ import annotations

import asyncio
import pickle
from typing import TYPE_CHECKING, Any

from bythebook.chunking.splitter import split
from bythebook.sources import Unreadable

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from bythebook.chunking.splitter import Sizes
    from bythebook.embeddings.minilm.embedder import LocalEmbedder
    from bythebook.sources import Listed, PageSource

    Batch = dict[str, NDArray[Any]]


class Reading:
    """Reads pages and cuts them into chunks."""

    def __init__(self, source: PageSource, sizes: Sizes, models: Path | None) -> None:
        self._source = source
        self._sizes = sizes
        self._count = _count(models)

    def __call__(self, batch: Batch) -> Batch:
        import numpy as np

        made = [pickle.dumps(self._read(pickle.loads(listed))) for listed in batch["listed"]]  # noqa: S301 - ours too
        return {"place": batch["place"], "made": np.array(made, dtype=object)}

    def _read(self, listed: Listed) -> object:
        """The page and its chunks, or why it cannot be read."""
        try:
            page = asyncio.run(self._source.read(listed))
        except Unreadable as reason:
            return str(reason)
        return page, list(split(page, count=self._count, sizes=self._sizes))


class Embedding:
    """Embeds texts with the local model, one after the other: there is a worker for each core."""

    def __init__(self, models: Path) -> None:
        self._embedder = _local(models)

    def __call__(self, batch: Batch) -> Batch:
        import numpy as np

        vectors: NDArray[np.float32] = np.stack([self._embedder.embed(str(text)) for text in batch["text"]])
        return {"place": batch["place"], "vector": vectors}


def _count(models: Path | None) -> Callable[[str], int]:
    if models is not None:
        return _local(models).count
    from bythebook.embeddings.tokens import count

    return count


def _local(models: Path) -> LocalEmbedder:
    """The local model, which is fetched where this machine has never had it."""
    from bythebook.embeddings.minilm import download
    from bythebook.embeddings.minilm.embedder import lone_embedder
    from bythebook.errors import ConfigurationError

    try:
        download.find(models)
    except ConfigurationError:
        download.download(models, say=lambda _: None)
    return lone_embedder(models)
