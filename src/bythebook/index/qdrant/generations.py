"""The generations of a book on a Qdrant server: collections with a manifest, and an alias for the current one."""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from operator import methodcaller
from pathlib import Path
from typing import Any

from qdrant_client import models

from bythebook.errors import ConfigurationError, NotFound, QdrantConnectionError, Unavailable
from bythebook.index.edge_store import BM25, DENSE
from bythebook.index.qdrant import catalog_sync
from bythebook.index.qdrant.client import QdrantServer

GRACE_SECONDS = 60.0
"""The least time that a superseded generation stays on the server, for readers that still use it."""
ABANDONED_SECONDS = 600.0
"""A generation that is being written counts as abandoned after this time without a heartbeat."""
_MANIFEST_ID = 0
_CATALOG_SUFFIX = "-book"
_INDEXED: Mapping[str, models.KeywordIndexParams] = {
    "module_name": models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD),
    "chapter_id": models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD),
    "url": models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, prefix=True),
}
FORMAT = 1
"""The version of the format on the server. Increase it if older versions cannot read the new format."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The metadata of a generation that is needed before it is opened."""

    digest: str
    """The digest of the catalog: generations with the same digest have the same content."""
    size: int
    blocks: tuple[str, ...]
    """The digest of each block of the catalog, in order."""
    pages: int
    chunks: int
    model: str
    dimension: int
    average_length: float
    calibration: Mapping[str, float]
    chunking: Mapping[str, int]
    """The chunk sizes that were used, if they are known."""
    coverage: Mapping[str, Any] = field(default_factory=dict)
    """The coverage of each source in the ingest that wrote the generation."""
    state: str = "writing"
    written_at: str = ""
    """The time of the writer's last heartbeat."""
    published_at: str = ""
    superseded_at: str = ""
    format: int = FORMAT

    def as_payload(self) -> dict[str, Any]:
        return asdict(self) | {"blocks": list(self.blocks)}


def parse_manifest(payload: Mapping[str, Any], *, collection: str) -> Manifest:
    """The manifest in a payload. Raises ConfigurationError if a newer bythebook has written it."""
    if payload.get("format") != FORMAT:
        raise ConfigurationError(
            f"{collection!r} was written by a newer bythebook (format {payload.get('format')}, we read {FORMAT}). "
            "Update bythebook here."
        )
    values = {name: payload[name] for name in Manifest.__slots__}
    return Manifest(**values | {"blocks": tuple(payload["blocks"])})


@dataclass(frozen=True, slots=True)
class CollectionParams:
    """The parameters of new collections. Everything else is the default of the server."""

    shards: int = 1
    replicas: int = 1
    on_disk: bool = False


@dataclass(frozen=True, slots=True)
class ServerGeneration:
    """A generation on the server, as `bythebook index list` shows it."""

    name: str
    current: bool
    manifest: Manifest | None


class ServerGenerations:
    """The generations of a book, whose readers use an alias."""

    def __init__(self, server: QdrantServer, alias: str, *, grace_seconds: float = GRACE_SECONDS) -> None:
        self.server = server
        self.alias = alias
        self.switch_count = 0
        """How often this process has made another generation current."""
        self._grace = timedelta(seconds=grace_seconds)
        self._name = re.compile(rf"{re.escape(alias)}-(g\d{{6}}-[0-9a-f]{{8}})({_CATALOG_SUFFIX})?")

    def collection(self, name: str) -> str:
        """The collection that holds the chunks of a generation."""
        return f"{self.alias}-{name}"

    def _catalog_collection(self, name: str) -> str:
        return f"{self.alias}-{name}{_CATALOG_SUFFIX}"

    async def current(self) -> str:
        """The name of the current generation, empty when nothing has been published yet.

        Raises ConfigurationError if the alias is the name of a collection that we did not write.
        """
        found = await self.server.read("finding the book", lambda client: client.get_aliases())
        target = next((each.collection_name for each in found.aliases if each.alias_name == self.alias), "")
        matched = self._name.fullmatch(target)
        if matched and not matched[2]:
            return matched[1]
        if target or self.alias in await self._collections():
            raise ConfigurationError(
                f"{self.alias!r} on {self.server.address} is a collection that another program has filled. "
                f"'bythebook index attach {self.alias} --embedder NAME' uses it read-only; to store an index of your "
                "own there, set another collection_name."
            )
        return ""

    async def list_names(self) -> list[str]:
        """The names of all generations, also of incomplete ones, oldest first."""
        matched = (self._name.fullmatch(name) for name in await self._collections())
        return sorted({match[1] for match in matched if match})

    async def _collections(self) -> list[str]:
        listed = await self.server.read("finding the book", lambda client: client.get_collections())
        return [each.name for each in listed.collections]

    async def list_generations(self) -> list[ServerGeneration]:
        """Every generation with its manifest, if it has one."""
        current = await self.current()
        return [
            ServerGeneration(name, name == current, await self._find_manifest(name)) for name in await self.list_names()
        ]

    async def _find_manifest(self, name: str) -> Manifest | None:
        with suppress(NotFound, QdrantConnectionError):
            return await self.manifest(name)
        return None

    async def manifest(self, name: str) -> Manifest:
        """The manifest of a generation. Raises NotFound if the generation or its manifest does not exist."""
        collection = self._catalog_collection(name)
        if collection not in await self._collections():
            raise NotFound(f"there is no generation {name!r} of {self.alias!r} on {self.server.address}.")
        records = await self.server.read("opening the book", lambda client: client.retrieve(collection, [_MANIFEST_ID]))
        if not records:
            raise NotFound(f"the generation {name!r} of {self.alias!r} has no manifest: it is incomplete.")
        return parse_manifest(records[0].payload or {}, collection=collection)

    async def fetch_blocks(self, name: str, numbers: list[int]) -> dict[int, str]:
        """Blocks of the catalog, compressed as they are stored, by number."""
        ids: list[int | str] = [*numbers]
        records = await self.server.write(
            "reading the catalog", lambda client: client.retrieve(self._catalog_collection(name), ids)
        )
        return {int(record.id): str((record.payload or {}).get("data", "")) for record in records}

    async def begin(self, manifest: Manifest, params: CollectionParams) -> str:
        """Start or resume a generation. One that an earlier run has not finished is resumed."""
        await self.server.check_version()
        current, names = await self.current(), await self.list_names()
        suffix = manifest.digest[:8]
        name = next((each for each in reversed(names) if each.endswith(suffix) and each > current), "")
        if not name:
            number = max((int(each[1:7]) for each in names), default=0) + 1
            name = f"g{number:06d}-{suffix}"
        existing = await self._collections()
        if self._catalog_collection(name) not in existing:
            catalog = self._catalog_collection(name)
            await self._create(catalog, vectors_config={}, shard_number=1, replication_factor=params.replicas)
        payload = replace(manifest, state="writing", written_at=_now()).as_payload()
        await self._upsert(name, [models.PointStruct(id=_MANIFEST_ID, vector={}, payload=payload)])
        if self.collection(name) not in existing:
            await self._create_chunk_collection(name, manifest.dimension, params)
        for key, index in _INDEXED.items():
            work = methodcaller("create_payload_index", self.collection(name), key, index, wait=True)
            await self.server.write("creating a collection", work)
        return name

    async def _create_chunk_collection(self, name: str, dimension: int, params: CollectionParams) -> None:
        dense = models.VectorParams(
            size=dimension, distance=models.Distance.COSINE, on_disk=True if params.on_disk else None
        )
        await self._create(
            self.collection(name),
            vectors_config={DENSE: dense},
            sparse_vectors_config={BM25: models.SparseVectorParams(modifier=models.Modifier.IDF)},
            shard_number=params.shards,
            replication_factor=params.replicas,
        )

    async def _create(self, collection: str, **parameters: Any) -> None:
        try:
            work = methodcaller("create_collection", collection, **parameters)
            await self.server.write("creating a collection", work)
        except QdrantConnectionError:
            # The first attempt may have created it, and only its response was lost.
            if collection not in await self._collections():
                raise

    async def _upsert(self, name: str, points: list[models.PointStruct]) -> None:
        await self.server.write("writing", methodcaller("upsert", self._catalog_collection(name), points, wait=True))

    async def heartbeat(self, name: str) -> None:
        """Record that the generation is still being written."""
        await self._update_manifest(name, {"written_at": _now()})

    async def _update_manifest(self, name: str, changes: Mapping[str, str]) -> None:
        collection = self._catalog_collection(name)
        work = methodcaller("set_payload", collection, dict(changes), points=[_MANIFEST_ID], wait=True)
        await self.server.write("writing", work)

    async def send_catalog(self, name: str, path: Path) -> None:
        """Upload the catalog to its collection."""
        blocks = catalog_sync.split_blocks(path)
        while batch := list(islice(blocks, catalog_sync.BLOCKS_PER_REQUEST)):
            points = [models.PointStruct(id=block.number, vector={}, payload=block.as_payload()) for block in batch]
            await self._upsert(name, points)

    async def publish(self, name: str, *, after: str) -> None:
        """Point the alias at this generation, atomically.

        Raises Unavailable, and changes nothing, if the current generation is no longer the one it was made `after`.
        """
        await self._update_manifest(name, {"state": "published", "published_at": _now()})
        if (current := await self.current()) != after:
            raise self._conflict_error(current)
        drop = models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=self.alias))
        made = models.CreateAlias(collection_name=self.collection(name), alias_name=self.alias)
        create = models.CreateAliasOperation(create_alias=made)
        switch: list[models.DeleteAliasOperation | models.CreateAliasOperation] = [drop, create] if after else [create]
        await self.server.write("publishing", lambda client: client.update_collection_aliases(switch))
        self.switch_count += 1
        if (current := await self.current()) != name:
            raise self._conflict_error(current)
        if after:
            with suppress(QdrantConnectionError):
                await self._update_manifest(after, {"superseded_at": _now()})

    def _conflict_error(self, current: str) -> Unavailable:
        return Unavailable(
            f"another machine has published {current or 'nothing'} as {self.alias!r} in the meantime. Run the command "
            "again: the vectors that were computed here are not lost."
        )

    async def sweep(self) -> list[str]:
        """Remove generations that are neither read nor written any more. Returns their names."""
        current = await self.current()
        removed = [
            name for name in await self.list_names() if name != current and await self._is_obsolete(name, current)
        ]
        for name in removed:
            await self.remove(name)
        return removed

    async def _is_obsolete(self, name: str, current: str) -> bool:
        """True if a generation that is not current has no readers and no writer any more."""
        manifest = await self._find_manifest(name)
        if manifest is None:
            # Incomplete or half removed. If its number is above the current one, another process may have just begun.
            return name < current
        if manifest.state == "writing" or (name > current and not manifest.superseded_at):
            return _age(manifest.written_at) > timedelta(seconds=ABANDONED_SECONDS)
        if not manifest.superseded_at:
            await self._update_manifest(name, {"superseded_at": _now()})
            return False
        return _age(manifest.superseded_at) > self._grace

    async def remove(self, name: str) -> None:
        """Remove a generation that is not current. Raises NotFound if it does not exist."""
        existing = await self._collections()
        collections = [each for each in (self.collection(name), self._catalog_collection(name)) if each in existing]
        if not collections:
            raise NotFound(f"there is no generation {name!r} of {self.alias!r} on {self.server.address}.")
        if name == await self.current():
            raise ConfigurationError(f"{name!r} is the current generation, which readers need.")
        for collection in collections:
            await self.server.write("removing a collection", methodcaller("delete_collection", collection))


def build_manifest(path: Path, facts: Mapping[str, object]) -> Manifest:
    """The manifest of a generation with this catalog file."""
    digests = tuple(block.digest for block in catalog_sync.split_blocks(path))
    return Manifest(digest=catalog_sync.combine_digests(digests), size=path.stat().st_size, blocks=digests, **facts)  # type: ignore[arg-type]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _age(timestamp: str) -> timedelta:
    try:
        return datetime.now(UTC) - datetime.fromisoformat(timestamp)
    except ValueError:
        return timedelta.max
