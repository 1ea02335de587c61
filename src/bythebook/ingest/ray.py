"""The Ray engine of an ingest: workers of a cluster read and split pages, and embed texts.

Both are Ray Data pipelines over pools of actors, because a worker loads a model. This process decides between the two
which chunks are new, and writes the index.
"""

import asyncio
import logging
import os
import pickle
import socket
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, aclosing, redirect_stdout
from dataclasses import dataclass, field
from typing import Any

from bythebook.chunking import Chunk
from bythebook.chunking.splitter import ChunkSizes, split_page
from bythebook.embeddings import Embedder, EmbedderId, Texts, Vector, embed_in_any_order, iterate_texts
from bythebook.embeddings.local import LocalEmbedder, ModelFolder
from bythebook.errors import ConfigurationError, Unavailable
from bythebook.ingest.pipeline import UnchangedTest
from bythebook.ingest.ray_workers import EmbedWorker, ReadWorker
from bythebook.sources import ExcludedPage, ListedPage, Page, PageSource, SkippedPage, Unreadable
from bythebook.sources.folder import Folder
from bythebook.sources.projects.project import Project

# These must be set before Ray is imported. By default Ray sends usage statistics to its vendor and logs a lot.
for _name, _value in (("RAY_USAGE_STATS_ENABLED", "0"), ("RAY_BACKEND_LOG_LEVEL", "fatal")):
    os.environ.setdefault(_name, _value)
try:
    import ray
    import ray.data
except ModuleNotFoundError as exc:
    raise ConfigurationError("Ray is not installed. Install it with: pip install 'bythebook[ray]'") from exc


MIN_BATCH = 64
"""Fewer pages or texts are processed here, in less time than a cluster takes to start."""
_PAGE_BATCH, _TEXT_BATCH = 8, 16
_PROBE_SECONDS = 5.0


@dataclass
class RayEngine:
    """A Ray cluster. It is joined when there are enough pages or texts."""

    sizes: ChunkSizes
    model: ModelFolder | None
    """The local model. None if a hosted service embeds: this process then calls it within its limits, and the cluster
    only reads."""
    address: str = ""
    """Empty: the cluster in RAY_ADDRESS, or a local one."""
    workers: int = 0
    """0: one for each core of the cluster."""
    _chunks: dict[str, list[Chunk]] = field(default_factory=dict)
    _joined: bool = False
    _open: ExitStack = field(default_factory=ExitStack)

    def source(self, source: PageSource, is_unchanged: UnchangedTest) -> PageSource:
        # A site is crawled by one process only, to respect its rate limits.
        return _RaySource(source, self, is_unchanged) if isinstance(source, Folder | Project) else source

    def split(self, page: Page, *, count: Callable[[str], int], sizes: ChunkSizes) -> list[Chunk]:
        return self._chunks.pop(page.url, None) or list(split_page(page, count=count, sizes=sizes))

    def embedder(self, embedder: Embedder) -> Embedder:
        return _RayEmbedder(embedder, self) if isinstance(embedder, LocalEmbedder) else embedder

    def store_chunks(self, page: Page, chunks: list[Chunk]) -> None:
        """Store the chunks that a worker made, until `split` returns them."""
        self._chunks[page.url] = chunks

    async def read(self, source: PageSource, listed: Sequence[ListedPage]) -> AsyncGenerator[tuple[int, Any]]:
        """The index of page page, and the page with its chunks or the reason why not, in any order."""
        rows = [{"index": index, "listed": pickle.dumps(page)} for index, page in enumerate(listed)]
        arguments = (source, self.sizes, self.model)
        async with aclosing(self._run(rows, ReadWorker, arguments, _PAGE_BATCH)) as batches:
            async for batch in batches:
                for index, result in zip(batch["index"], batch["result"], strict=True):
                    yield int(index), pickle.loads(result)  # noqa: S301 - our own workers wrote it

    async def embed(self, texts: Sequence[str]) -> AsyncGenerator[tuple[int, Vector]]:
        rows = [{"index": index, "text": text} for index, text in enumerate(texts)]
        async with aclosing(self._run(rows, EmbedWorker, (self.model,), _TEXT_BATCH)) as batches:
            async for batch in batches:
                for index, vector in zip(batch["index"], batch["vector"], strict=True):
                    yield int(index), vector

    async def _run(
        self, rows: list[dict[str, Any]], worker: type, arguments: tuple[Any, ...], size: int
    ) -> AsyncGenerator[Any]:
        """The results of the workers for these rows, in batches."""
        batches = await asyncio.to_thread(self._start, rows, worker, arguments, size)
        end = object()
        while (batch := await asyncio.to_thread(_next_batch, batches, end)) is not end:
            yield batch

    def _start(self, rows: list[dict[str, Any]], worker: type, arguments: tuple[Any, ...], size: int) -> Iterator[Any]:
        self._join()
        workers = self.workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        dataset = ray.data.from_items(rows, override_num_blocks=max(1, min(len(rows) // size, 16 * workers)))
        results = dataset.map_batches(
            worker,
            fn_constructor_args=arguments,
            batch_size=size,
            batch_format="numpy",
            compute=ray.data.ActorPoolStrategy(size=workers),
            num_cpus=1,
        )
        return iter(results.iter_batches(batch_size=None, batch_format="numpy"))

    def _join(self) -> None:
        if self._joined:
            return
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        _probe(self.address or os.environ.get("RAY_ADDRESS", ""))
        # Ray reports crashed workers on standard output, which must contain only results.
        self._open.enter_context(redirect_stdout(sys.stderr))
        try:
            ray.init(
                address=self.address or None,
                ignore_reinit_error=True,
                include_dashboard=False,
                log_to_driver=False,
                logging_level=logging.ERROR,
            )
        except (ConnectionError, OSError, RuntimeError, ValueError) as exc:
            raise _join_error(self.address or "on this machine", exc) from exc
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = context.print_on_execution_start = False
        self._open.callback(ray.shutdown)
        self._joined = True

    def close(self) -> None:
        """Leave the cluster. A local cluster is shut down."""
        self._joined = False
        self._open.close()


def _probe(address: str) -> None:
    """Raise Unavailable if nothing listens at the address. Ray itself would wait for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        try:
            socket.create_connection((host, int(port)), timeout=_PROBE_SECONDS).close()
        except (OSError, OverflowError) as exc:
            raise _join_error(address, exc) from exc


def _join_error(address: str, reason: Exception) -> Unavailable:
    return Unavailable(
        f"the Ray cluster {address!r} could not be joined: {reason}. "
        "Check that it is running and can be reached from this machine."
    )


def _next_batch(batches: Iterator[Any], end: object) -> Any:
    try:
        return next(batches, end)
    except ray.exceptions.RayError as exc:
        raise Unavailable(f"the Ray cluster failed: {str(exc).splitlines()[0]}") from exc


class _RaySource:
    """A folder or project whose changed pages the cluster reads, all at once and in any order."""

    def __init__(self, source: PageSource, engine: RayEngine, is_unchanged: UnchangedTest) -> None:
        self._source = source
        self._engine = engine
        self._is_unchanged = is_unchanged
        self._changed: list[ListedPage] = []
        self._changed_urls: set[str] = set()
        self._results: AsyncGenerator[tuple[int, Any]] | None = None
        self._pending: dict[str, Any] = {}

    @property
    def name(self) -> str:
        return self._source.name

    async def listing(self) -> AsyncIterator[ListedPage | SkippedPage | ExcludedPage]:
        async for entry in self._source.listing():
            if isinstance(entry, ListedPage) and not self._is_unchanged(self._source, entry):
                self._changed.append(entry)
                self._changed_urls.add(entry.url)
            yield entry

    async def read(self, listed: ListedPage) -> Page:
        if len(self._changed) < MIN_BATCH or listed.url not in self._changed_urls:
            return await self._source.read(listed)
        if self._results is None:
            self._results = self._engine.read(self._source, self._changed)
        while listed.url not in self._pending:
            index, result = await anext(self._results)
            self._pending[self._changed[index].url] = result
        result = self._pending.pop(listed.url)
        if isinstance(result, str):
            raise Unreadable(result)
        page: Page = result[0]
        self._engine.store_chunks(*result)
        return page


class _RayEmbedder:
    """The local embedder, with a cluster for the texts of an ingest."""

    def __init__(self, embedder: Embedder, engine: RayEngine) -> None:
        self._embedder = embedder
        self._engine = engine

    @property
    def identity(self) -> EmbedderId:
        return self._embedder.identity

    def count_tokens(self, text: str) -> int:
        return self._embedder.count_tokens(text)

    def embed_documents(self, texts: Texts) -> AsyncGenerator[Vector]:
        return self._embedder.embed_documents(texts)

    async def embed_query(self, text: str) -> Vector:
        return await self._embedder.embed_query(text)

    async def embed_in_any_order(self, texts: Texts) -> AsyncGenerator[tuple[int, Vector]]:
        all_texts = [text async for text in iterate_texts(texts)]
        vectors = (
            self._engine.embed(all_texts)
            if len(all_texts) >= MIN_BATCH
            else embed_in_any_order(self._embedder, all_texts)
        )
        async with aclosing(vectors) as results:
            async for result in results:
                yield result
