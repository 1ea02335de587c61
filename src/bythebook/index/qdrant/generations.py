"""The generations of a book on a server: collections, of which an alias names the current one.

The manifest of a generation on a server: what it is, how it was made, and how far it has come.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from qdrant_client import models

from bythebook.errors import ConfigurationError, NotFound, QdrantConnectionError, Unavailable
from bythebook.index.edge_store import BM25, DENSE
from bythebook.index.qdrant import catalog_sync

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping
    from pathlib import Path

    from qdrant_client import AsyncQdrantClient

    from bythebook.index.qdrant.client import QdrantServer


GRACE_SECONDS = 60.0
"""How long a generation that is no longer current is kept at least, for those who are still reading it."""
ABANDONED_SECONDS = 600.0
"""After how long without a sign of life a generation that is being written counts as given up."""
_MANIFEST = 0
_BOOK = "-book"
_INDEXED: Mapping[str, models.KeywordIndexParams] = {
    "module_name": models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD),
    "chapter_id": models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD),
    "url": models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, prefix=True),
}


@dataclass(frozen=True, slots=True)
class Making:
    """How collections are made. What is not said is left to the server."""

    shards: int = 1
    replicas: int = 1
    on_disk: bool = False


@dataclass(frozen=True, slots=True)
class Kept:
    """A generation on the server, as `bythebook index list` shows it."""

    name: str
    current: bool
    manifest: Manifest | None


class ServerGenerations:
    """The generations of the book that readers find under one name."""

    def __init__(self, server: QdrantServer, alias: str, *, grace_seconds: float = GRACE_SECONDS) -> None:
        self.server = server
        self.alias = alias
        self.switched = 0
        """How often another generation was made current from here."""
        self._grace = timedelta(seconds=grace_seconds)
        self._name = re.compile(rf"{re.escape(alias)}-(g\d{{6}}-[0-9a-f]{{8}})({_BOOK})?")

    def collection(self, name: str) -> str:
        """The collection that holds the chunks of a generation."""
        return f"{self.alias}-{name}"

    def _book(self, name: str) -> str:
        return f"{self.alias}-{name}{_BOOK}"

    async def current(self) -> str:
        """The name of the current generation, empty when nothing has been published yet.

        Raises ConfigurationError where the name stands for something that is not a book of ours.
        """
        found = await self.server.read("finding the book", lambda client: client.get_aliases())
        target = next((each.collection_name for each in found.aliases if each.alias_name == self.alias), "")
        matched = self._name.fullmatch(target)
        if matched and not matched[2]:
            return matched[1]
        if target or self.alias in await self._collections():
            raise ConfigurationError(
                f"{self.alias!r} on {self.server.address} is a collection that another program has filled. "
                f"'bythebook index attach {self.alias} --embedder NAME' serves it as it is; to keep a book of your own "
                "there, choose another collection_name."
            )
        return ""

    async def names(self) -> list[str]:
        """Every generation there is anything of, oldest first."""
        matched = (self._name.fullmatch(name) for name in await self._collections())
        return sorted({match[1] for match in matched if match})

    async def _collections(self) -> list[str]:
        listed = await self.server.read("finding the book", lambda client: client.get_collections())
        return [each.name for each in listed.collections]

    async def kept(self) -> list[Kept]:
        """Every generation, with what is known of it."""
        current = await self.current()
        return [Kept(name, name == current, await self._known(name)) for name in await self.names()]

    async def _known(self, name: str) -> Manifest | None:
        with suppress(NotFound, QdrantConnectionError):
            return await self.manifest(name)
        return None

    async def manifest(self, name: str) -> Manifest:
        """What there is to know of a generation. Raises NotFound for one that is gone or was hardly begun."""
        book = self._book(name)
        if book not in await self._collections():
            raise NotFound(f"there is no generation {name!r} of {self.alias!r} on {self.server.address}.")
        records = await self.server.read("opening the book", lambda client: client.retrieve(book, [_MANIFEST]))
        if not records:
            raise NotFound(f"the generation {name!r} of {self.alias!r} has no manifest: it was hardly begun.")
        return read_manifest(records[0].payload or {}, collection=book)

    async def blocks(self, name: str, numbers: list[int]) -> dict[int, str]:
        """Some blocks of the catalogue, packed as they are kept, by their numbers."""
        wanted: list[int | str] = [*numbers]
        records = await self.server.write(
            "reading the catalogue", lambda client: client.retrieve(self._book(name), wanted)
        )
        return {int(record.id): str((record.payload or {}).get("data", "")) for record in records}

    async def begin(self, manifest: Manifest, making: Making) -> str:
        """A generation to be filled: a new one, or the same that an earlier run could not finish."""
        await self.server.check_version()
        current, names = await self.current(), await self.names()
        suffix = manifest.digest[:8]
        name = next((each for each in reversed(names) if each.endswith(suffix) and each > current), "")
        if not name:
            number = max((int(each[1:7]) for each in names), default=0) + 1
            name = f"g{number:06d}-{suffix}"
        there = await self._collections()
        if self._book(name) not in there:
            await self._create_book(name, making)
        await self._state(name, replace(manifest, state="writing", written_at=_now()))
        if self.collection(name) not in there:
            await self._create_chunks(name, manifest.dimension, making)
        for key, params in _INDEXED.items():
            await self._index(name, key, params)
        return name

    async def _create_book(self, name: str, making: Making) -> None:
        await self._create(
            self._book(name),
            lambda client: client.create_collection(
                self._book(name), vectors_config={}, shard_number=1, replication_factor=making.replicas
            ),
        )

    async def _create_chunks(self, name: str, dimension: int, making: Making) -> None:
        dense = models.VectorParams(
            size=dimension, distance=models.Distance.COSINE, on_disk=True if making.on_disk else None
        )
        await self._create(
            self.collection(name),
            lambda client: client.create_collection(
                self.collection(name),
                vectors_config={DENSE: dense},
                sparse_vectors_config={BM25: models.SparseVectorParams(modifier=models.Modifier.IDF)},
                shard_number=making.shards,
                replication_factor=making.replicas,
            ),
        )

    async def _create(self, collection: str, work: Callable[[AsyncQdrantClient], Awaitable[bool]]) -> None:
        try:
            await self.server.write("making a collection", work)
        except QdrantConnectionError:
            # The first attempt may have made it, and only its answer was lost.
            if collection not in await self._collections():
                raise

    async def _index(self, name: str, key: str, params: models.KeywordIndexParams) -> None:
        await self.server.write(
            "making a collection",
            lambda client: client.create_payload_index(self.collection(name), key, params, wait=True),
        )

    async def _state(self, name: str, manifest: Manifest) -> None:
        point = models.PointStruct(id=_MANIFEST, vector={}, payload=manifest.as_payload())
        await self._put(name, [point])

    async def _put(self, name: str, points: list[models.PointStruct]) -> None:
        await self.server.write("writing", lambda client: client.upsert(self._book(name), points, wait=True))

    async def alive(self, name: str) -> None:
        """Say that the generation is still being written."""
        await self._note(name, {"written_at": _now()})

    async def _note(self, name: str, news: Mapping[str, str]) -> None:
        await self.server.write(
            "writing",
            lambda client: client.set_payload(self._book(name), dict(news), points=[_MANIFEST], wait=True),
        )

    async def send_catalogue(self, name: str, path: Path) -> None:
        """Put the catalogue beside the chunks."""
        batch: list[models.PointStruct] = []
        for block in catalog_sync.cut(path):
            batch.append(models.PointStruct(id=block.number, vector={}, payload=dict(block.as_payload())))
            if len(batch) == catalog_sync.AT_ONCE:
                await self._put(name, batch)
                batch = []
        if batch:
            await self._put(name, batch)

    async def publish(self, name: str, *, after: str) -> None:
        """Let readers find this generation, in one step.

        Raises Unavailable, and changes nothing, when the current one is no longer the one it was made `after`.
        """
        await self._note(name, {"state": "published", "published_at": _now()})
        if (current := await self.current()) != after:
            raise self._overtaken(current)
        drop = models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=self.alias))
        made = models.CreateAlias(collection_name=self.collection(name), alias_name=self.alias)
        create = models.CreateAliasOperation(create_alias=made)
        switch: list[models.DeleteAliasOperation | models.CreateAliasOperation] = [drop, create] if after else [create]
        await self.server.write("publishing", lambda client: client.update_collection_aliases(switch))
        self.switched += 1
        if (current := await self.current()) != name:
            raise self._overtaken(current)
        if after:
            with suppress(QdrantConnectionError):
                await self._note(after, {"superseded_at": _now()})

    def _overtaken(self, current: str) -> Unavailable:
        return Unavailable(
            f"another machine has published {current or 'nothing'} as {self.alias!r} in the meantime. Run the command "
            "again: what was embedded here is not lost."
        )

    async def sweep(self) -> list[str]:
        """Remove what nobody reads or writes any more. Returns what was removed."""
        current = await self.current()
        gone = [name for name in await self.names() if name != current and await self._is_over(name, current)]
        for name in gone:
            await self.remove(name)
        return gone

    async def _is_over(self, name: str, current: str) -> bool:
        """Whether a generation that is not current is needed by nobody."""
        manifest = await self._known(name)
        if manifest is None:
            # Hardly begun, or half removed. A number above the current one may be someone's who begins just now.
            return name < current
        if manifest.state == "writing" or (name > current and not manifest.superseded_at):
            return _age(manifest.written_at) > timedelta(seconds=ABANDONED_SECONDS)
        if not manifest.superseded_at:
            await self._note(name, {"superseded_at": _now()})
            return False
        return _age(manifest.superseded_at) > self._grace

    async def remove(self, name: str) -> None:
        """Remove a generation that is not current. Raises NotFound where there is none of this name."""
        there = await self._collections()
        ours = [each for each in (self.collection(name), self._book(name)) if each in there]
        if not ours:
            raise NotFound(f"there is no generation {name!r} of {self.alias!r} on {self.server.address}.")
        if name == await self.current():
            raise ConfigurationError(f"{name!r} is the current generation: readers would have no book.")
        await self._delete(ours)

    async def _delete(self, collections: Iterable[str]) -> None:
        for each in collections:
            await self._delete_one(each)

    async def _delete_one(self, collection: str) -> None:
        await self.server.write("removing a collection", lambda client: client.delete_collection(collection))


def with_digest(path: Path, facts: Mapping[str, object]) -> Manifest:
    """The manifest of a generation whose catalogue is this file."""
    digests = tuple(block.digest for block in catalog_sync.cut(path))
    return Manifest(digest=catalog_sync.digest_of(digests), size=path.stat().st_size, blocks=digests, **facts)  # type: ignore[arg-type]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _age(moment: str) -> timedelta:
    try:
        return datetime.now(UTC) - datetime.fromisoformat(moment)
    except ValueError:
        return timedelta.max


FORMAT = 1
"""Raised when what is on a server can no longer be read by an older bythebook."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything about a generation that must be known before it is opened."""

    digest: str
    """Of the catalogue: two generations with the same digest are the same book."""
    size: int
    blocks: tuple[str, ...]
    """The digest of each block of the catalogue, in order."""
    pages: int
    chunks: int
    model: str
    dimension: int
    average_length: float
    calibration: Mapping[str, float]
    chunking: Mapping[str, int]
    """How pages were cut, where whoever wrote the generation knows it."""
    coverage: Mapping[str, Any] = field(default_factory=dict)
    """What could not be read of each source, as the ingest that wrote the generation saw it."""
    state: str = "writing"
    written_at: str = ""
    """When whoever writes it was last seen."""
    published_at: str = ""
    superseded_at: str = ""
    format: int = FORMAT

    def as_payload(self) -> dict[str, Any]:
        return asdict(self) | {"blocks": list(self.blocks)}


def read_manifest(payload: Mapping[str, Any], *, collection: str) -> Manifest:
    """The manifest in a payload. Raises ConfigurationError for one that a newer bythebook has written."""
    if payload.get("format") != FORMAT:
        raise ConfigurationError(
            f"{collection!r} was written by a newer bythebook (format {payload.get('format')}, we read {FORMAT}). "
            "Update bythebook here."
        )
    known = {name: payload[name] for name in Manifest.__slots__}
    return Manifest(**known | {"blocks": tuple(payload["blocks"])})
