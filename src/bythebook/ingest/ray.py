"""Ray as the engine of an ingest: pages are read and cut, and texts embedded, by workers all over a cluster.

Both are pipelines of Ray Data over pools of actors, because a worker has a model to load. Which chunks are new is
decided between the two, here, where the book is; and everything is written here.
"""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import socket
import sys
from contextlib import ExitStack, aclosing, redirect_stdout
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bythebook.embeddings import arriving, as_they_come
from bythebook.embeddings.minilm.embedder import LocalEmbedder
from bythebook.errors import ConfigurationError, Unavailable
from bythebook.ingest.ray_workers import Embedding, Reading
from bythebook.sources import Listed, Unreadable
from bythebook.sources.folder import Folder
from bythebook.sources.projects.project import Project

# Before it is imported. Unless told not to, Ray sends figures on its use to its makers; and it logs a lot.
for _name, _value in (("RAY_USAGE_STATS_ENABLED", "0"), ("RAY_BACKEND_LOG_LEVEL", "fatal")):
    os.environ.setdefault(_name, _value)
try:
    import ray
    import ray.data
except ModuleNotFoundError as exc:
    raise ConfigurationError("Ray is not installed. Install it with: pip install 'bythebook[ray]'") from exc

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
    from pathlib import Path

    from bythebook.chunking import Chunk
    from bythebook.chunking.splitter import Sizes
    from bythebook.embeddings import Embedder, Identity, Texts, Vector
    from bythebook.ingest.pipeline import Unchanged
    from bythebook.sources import LeftOut, Page, PageSource, Skipped

FEW = 64
"""So many pages or texts are done here in less time than a cluster takes to begin."""
_PAGES_AT_ONCE, _TEXTS_AT_ONCE = 8, 16
_KNOCK_SECONDS = 5.0


@dataclass
class RayEngine:
    """A cluster of workers, joined when there is enough to do."""

    models: Path
    sizes: Sizes
    address: str = ""
    """Empty: the one in RAY_ADDRESS, or one on this machine alone."""
    workers: int = 0
    """0: as many as the cluster has cores."""
    hosted: bool = False
    """Whether a service makes the vectors: then its limits are kept here, in one place, and the cluster only reads."""
    _cut: dict[str, list[Chunk]] = field(default_factory=dict)
    _joined: bool = False
    _open: ExitStack = field(default_factory=ExitStack)

    def source(self, source: PageSource, unchanged: Unchanged) -> PageSource:
        # Files can be read from anywhere that has them. A site is fetched politely, by one.
        return _ReadElsewhere(source, self, unchanged) if isinstance(source, Folder | Project) else source

    def cut(self, page: Page) -> list[Chunk] | None:
        return self._cut.pop(page.url, None)

    def embedder(self, embedder: Embedder) -> Embedder:
        return _EmbeddingElsewhere(embedder, self) if isinstance(embedder, LocalEmbedder) else embedder

    def keep(self, page: Page, chunks: list[Chunk]) -> None:
        """Remember how the page was cut, until it is asked for."""
        self._cut[page.url] = chunks

    async def read(self, source: PageSource, listed: Sequence[Listed]) -> AsyncGenerator[tuple[int, Any]]:
        """The place of each page, and the page with its chunks or the reason why not, in any order."""
        rows = [{"place": place, "listed": pickle.dumps(each)} for place, each in enumerate(listed)]
        arguments = (source, self.sizes, None if self.hosted else self.models)
        async with aclosing(self._run(rows, Reading, arguments, _PAGES_AT_ONCE)) as batches:
            async for batch in batches:
                for place, made in zip(batch["place"], batch["made"], strict=True):
                    yield int(place), pickle.loads(made)  # noqa: S301 - both ends are ours

    async def embed(self, texts: Sequence[str]) -> AsyncGenerator[tuple[int, Vector]]:
        rows = [{"place": place, "text": text} for place, text in enumerate(texts)]
        async with aclosing(self._run(rows, Embedding, (self.models,), _TEXTS_AT_ONCE)) as batches:
            async for batch in batches:
                for place, vector in zip(batch["place"], batch["vector"], strict=True):
                    yield int(place), vector

    async def _run(
        self, rows: list[dict[str, Any]], worker: type, arguments: tuple[Any, ...], size: int
    ) -> AsyncGenerator[Any]:
        """What the workers make of the rows, batch by batch."""
        batches = await asyncio.to_thread(self._begin, rows, worker, arguments, size)
        end = object()
        while (batch := await asyncio.to_thread(_following, batches, end)) is not end:
            yield batch

    def _begin(self, rows: list[dict[str, Any]], worker: type, arguments: tuple[Any, ...], size: int) -> Iterator[Any]:
        self._join()
        workers = self.workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        pieces = ray.data.from_items(rows, override_num_blocks=max(1, min(len(rows) // size, 16 * workers)))
        made = pieces.map_batches(
            worker,
            fn_constructor_args=arguments,
            batch_size=size,
            batch_format="numpy",
            compute=ray.data.ActorPoolStrategy(size=workers),
            num_cpus=1,
        )
        return iter(made.iter_batches(batch_size=None, batch_format="numpy"))

    def _join(self) -> None:
        if self._joined:
            return
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        _knock(self.address or os.environ.get("RAY_ADDRESS", ""))
        # Of workers that die, Ray tells on standard output, where only answers may stand.
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
            raise _not_joined(self.address or "on this machine", exc) from exc
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = context.print_on_execution_start = False
        self._open.callback(ray.shutdown)
        self._joined = True

    def close(self) -> None:
        """Leave the cluster; one on this machine ends."""
        self._joined = False
        self._open.close()


def _knock(address: str) -> None:
    """Raise Unavailable where nobody is: Ray itself would wait for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        try:
            socket.create_connection((host, int(port)), timeout=_KNOCK_SECONDS).close()
        except (OSError, OverflowError) as exc:
            raise _not_joined(address, exc) from exc


def _not_joined(address: str, reason: Exception) -> Unavailable:
    return Unavailable(
        f"the Ray cluster {address!r} could not be joined: {reason}. Is it running, and reached from here?"
    )


def _following(batches: Iterator[Any], end: object) -> Any:
    try:
        return next(batches, end)
    except ray.exceptions.RayError as exc:
        raise Unavailable(f"the Ray cluster failed: {str(exc).splitlines()[0]}") from exc


class _ReadElsewhere:
    """A folder or project whose pages the cluster reads: all that will be asked for, in whatever order they come."""

    def __init__(self, source: PageSource, engine: RayEngine, unchanged: Unchanged) -> None:
        self._source = source
        self._engine = engine
        self._unchanged = unchanged
        self._wanted: list[Listed] = []
        self._addresses: set[str] = set()
        self._coming: AsyncGenerator[tuple[int, Any]] | None = None
        self._read: dict[str, Any] = {}

    @property
    def name(self) -> str:
        return self._source.name

    async def listing(self) -> AsyncIterator[Listed | Skipped | LeftOut]:
        async for entry in self._source.listing():
            if isinstance(entry, Listed) and not self._unchanged(self._source, entry):
                self._wanted.append(entry)
                self._addresses.add(entry.url)
            yield entry

    async def read(self, listed: Listed) -> Page:
        if len(self._wanted) < FEW or listed.url not in self._addresses:
            return await self._source.read(listed)
        if self._coming is None:
            self._coming = self._engine.read(self._source, self._wanted)
        while listed.url not in self._read:
            place, made = await anext(self._coming)
            self._read[self._wanted[place].url] = made
        made = self._read.pop(listed.url)
        if isinstance(made, str):
            raise Unreadable(made)
        page: Page = made[0]
        self._engine.keep(*made)
        return page


class _EmbeddingElsewhere:
    """The local embedder with a cluster behind it, for the many texts of an ingest."""

    def __init__(self, embedder: Embedder, engine: RayEngine) -> None:
        self._embedder = embedder
        self._engine = engine

    @property
    def identity(self) -> Identity:
        return self._embedder.identity

    def count(self, text: str) -> int:
        return self._embedder.count(text)

    def documents(self, texts: Texts) -> AsyncGenerator[Vector]:
        return self._embedder.documents(texts)

    async def query(self, text: str) -> Vector:
        return await self._embedder.query(text)

    async def as_they_come(self, texts: Texts) -> AsyncGenerator[tuple[int, Vector]]:
        every = [text async for text in arriving(texts)]
        vectors = self._engine.embed(every) if len(every) >= FEW else as_they_come(self._embedder, every)
        async with aclosing(vectors) as coming:
            async for placed in coming:
                yield placed
