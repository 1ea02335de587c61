"""Attaches a collection that another program fills: scans every point once before it is served.

The scan computes what the evidence check needs to know about the whole book: term frequencies and the cutoff between
covered and not covered questions. The collection itself is not changed.
"""

import asyncio
import hashlib
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import numpy as np
from qdrant_client import models

from bythebook.chunking import Chunk
from bythebook.embeddings import Embedder, EmbedderId
from bythebook.errors import ConfigurationError, InputError, NotFound
from bythebook.index import Calibration
from bythebook.index.catalog import Catalog, ChunkRecord, PageRecord
from bythebook.index.provider import IndexSnapshot
from bythebook.index.qdrant import attached
from bythebook.index.qdrant.client import QdrantServer
from bythebook.index.qdrant.store import QdrantStore
from bythebook.index.terms import Bm25Terms, VocabularyDelta, quantize_length
from bythebook.retrieval.calibration import UNCALIBRATED, calibrate
from bythebook.retrieval.reranker import Reranker
from bythebook.retrieval.retriever import Retriever
from bythebook.telemetry import Progress


class CollectionScan:
    """The result of one pass over all points."""

    def __init__(self, attachment: attached.Attachment, count: Callable[[str], int]) -> None:
        self.attachment = attachment
        self.points = 0
        self.records: list[ChunkRecord] = []
        self.delta = VocabularyDelta()
        self.missing: Counter[str] = Counter()
        self._layout = attachment.layout(count)
        self._pages: dict[str, list[tuple[int, str, str, str]]] = defaultdict(list)
        self._digest = hashlib.sha256(repr(attachment).encode())

    def add(self, points: Sequence[models.Record]) -> None:
        for point in points:
            self.points += 1
            chunk = self._layout.to_chunk(point.id if isinstance(point.id, int) else str(point.id), point.payload or {})
            if chunk is None:
                self.missing["text"] += 1
            else:
                self._add_chunk(chunk)

    def _add_chunk(self, chunk: Chunk) -> None:
        length = self.delta.add(chunk.embedded)
        headings = " > ".join(chunk.heading_hierarchy)
        self.records.append(ChunkRecord(chunk.chunk_id, chunk.url, chunk.content_hash, "", length, headings))
        self._pages[chunk.url].append((chunk.chunk_index, chunk.chunk_id, chunk.title, chunk.text))
        self._digest.update(f"{chunk.chunk_id} {chunk.content_hash} ".encode())
        self.missing["url"] += chunk.url.startswith("urn:qdrant:")

    @property
    def snapshot_name(self) -> str:
        """The name of the snapshot. Another scan of the same content gives the same name."""
        return f"g000000-{self._digest.hexdigest()[:8]}"

    def pages(self) -> list[PageRecord]:
        """A page for each URL, made of its chunks in order."""
        return [self._page(url, sorted(parts)) for url, parts in self._pages.items()]

    def _page(self, url: str, parts: Sequence[tuple[int, str, str, str]]) -> PageRecord:
        text = "\n\n".join(part[3] for part in parts)
        path = urlsplit(url).path.strip("/") or url
        return PageRecord(url, self.attachment.collection, path, parts[0][2], "", text)

    def lacks(self) -> tuple[str, ...]:
        """What the collection does not have, with the consequences."""
        gaps = [
            "an index of words: passages are found by meaning alone",
            "the pages themselves: a quote's place is known within its chunk, and a page is the chunks there are of it",
        ]
        if self.missing["text"]:
            gaps.append(f"text in {self.missing['text']} of {self.points} points: they are ignored")
        if self.missing["url"]:
            gaps.append(
                f"an absolute address in {self.missing['url']} points: their citations cannot be opened (site_url "
                "completes relative ones)"
            )
        absent = [entry for part, entry in attached.FIELDS.items() if part not in self.attachment.fields]
        return (*gaps, *(entry["without"] for entry in absent if "without" in entry))


def write_catalog(path: Path, scan: CollectionScan, identity: EmbedderId) -> Bm25Terms:
    """Write the result of a scan. Returns the term weights."""
    with closing(Catalog.edit(path)) as catalog:
        for record in scan.records:
            catalog.put_chunk(record)
        for page in scan.pages():
            catalog.put_page(page)
        catalog.apply_delta(scan.delta)
        totals = catalog.totals()
        bm25 = Bm25Terms(quantize_length(totals.length / max(totals.chunks, 1)))
        catalog.set_fact("average_length", bm25.average_length)
        catalog.set_fact("identity", asdict(identity))
        catalog.set_fact("published_at", datetime.now(UTC).isoformat(timespec="seconds"))
        return bm25


_SCROLL_BATCH = 256
_SAMPLE_POINTS = 256
"""The number of points from which the field names are recognised."""
_SAMPLE_VECTORS = 16
MIN_AGREEMENT = 0.5
"""The minimum cosine between a stored vector and the embedder's vector of the same text. The same model exceeds it
even if a title was prepended to the text; another model does not."""
_DISTANCES = (models.Distance.COSINE, models.Distance.DOT)


@dataclass(frozen=True, slots=True)
class AttachReport:
    """What a collection has and lacks, and what follows from it."""

    url: str
    collection: str
    points: int
    chunks: int
    """Points with text. Only they can be found and quoted."""
    pages: int
    model: str
    dimension: int
    agreement: float
    """The median cosine of stored vectors and the embedder's vectors of the same texts."""
    fields: Mapping[str, str]
    """The name of the payload field for each field of a chunk."""
    lacks: tuple[str, ...]
    """What it does not have, with the consequences."""
    calibration: Calibration


class RetrievalModels(NamedTuple):
    """The embedder that searches, the one that scores evidence, if it is another, and the reranker, if there is one."""

    finder: Embedder
    reader: Embedder | None = None
    reranker: Reranker | None = None


async def attach(
    server: QdrantServer,
    wanted: attached.Attachment,
    models: RetrievalModels,
    *,
    data_dir: Path,
    progress: Progress,
) -> AttachReport:
    """Scan the collection and register it. The vector and the payload fields are detected."""
    embedder = models.finder
    info = await _read_info(server, wanted.collection)
    vector, params = _choose_vector(info, wanted)
    _check_vectors(params, embedder, wanted.collection)
    some, _ = await _scroll(server, wanted.collection, None, limit=_SAMPLE_POINTS)
    attachment = replace(wanted, vector=vector, fields=attached.detect_fields(point.payload or {} for point in some))
    if "text" not in attachment.fields:
        raise ConfigurationError(_no_text_message(attachment, some))
    agreement = await _measure_agreement(server, attachment, embedder, [point.id for point in some])
    scan = CollectionScan(attachment, embedder.count_tokens)
    async for points, done in _scroll_all(server, attachment.collection):
        scan.add(points)
        progress("reading", done, max(info.points_count or 0, done))
    return await _publish(server, scan, models, data_dir=data_dir, agreement=agreement)


async def _read_info(server: QdrantServer, collection: str) -> models.CollectionInfo:
    listed = await server.read("listing collections", lambda client: client.get_collections())
    names = {each.name for each in listed.collections}
    aliases = await server.read("listing collections", lambda client: client.get_aliases())
    targets = {each.alias_name: each.collection_name for each in aliases.aliases}
    if collection not in names and collection not in targets:
        others = ", ".join(sorted(names | targets.keys())) or "none at all"
        raise NotFound(f"there is no collection {collection!r} on {server.address}. There are: {others}.")
    if f"{targets.get(collection, collection)}-book" in names:
        raise InputError(
            f"{collection!r} is a book that bythebook manages. Set collection_name to it instead of attaching it."
        )
    return await server.read("looking at the collection", lambda client: client.get_collection(collection))


def _choose_vector(info: models.CollectionInfo, wanted: attached.Attachment) -> tuple[str | None, models.VectorParams]:
    """The vector to search: the only one, or the one given by name."""
    vectors = info.config.params.vectors
    if isinstance(vectors, models.VectorParams):
        if wanted.vector:
            raise InputError(f"the vector of {wanted.collection!r} has no name. Leave --vector out.")
        return None, vectors
    named = dict(vectors or {})
    if not named:
        raise ConfigurationError(f"{wanted.collection!r} has no dense vectors, so it cannot be searched by meaning.")
    name = wanted.vector or (next(iter(named)) if len(named) == 1 else "")
    if name not in named:
        raise InputError(
            f"{wanted.collection!r} has several vectors. Say which with --vector: {', '.join(sorted(named))}."
            if not wanted.vector
            else f"{wanted.collection!r} has no vector {name!r}. It has {', '.join(sorted(named))}."
        )
    return name, named[name]


def _check_vectors(params: models.VectorParams, embedder: Embedder, collection: str) -> None:
    identity = embedder.identity
    if params.size != identity.dimension:
        raise ConfigurationError(
            f"{collection!r} has vectors of {params.size} dimensions, but {identity.model!r} makes "
            f"{identity.dimension}. Name the embedder it was filled with: --embedder NAME."
        )
    if params.distance not in _DISTANCES or params.multivector_config:
        kind = "several vectors to a point" if params.multivector_config else f"the distance {params.distance.value}"
        raise ConfigurationError(f"{collection!r} has {kind}. Only Cosine and Dot can be served.")


async def _scroll(
    server: QdrantServer, collection: str, offset: Any, *, limit: int
) -> tuple[Sequence[models.Record], Any]:
    return await server.write(
        "reading the collection",
        lambda client: client.scroll(collection, limit=limit, offset=offset, with_payload=True, with_vectors=False),
    )


async def _scroll_all(server: QdrantServer, collection: str) -> AsyncIterator[tuple[Sequence[models.Record], int]]:
    offset, done = None, 0
    while True:
        points, offset = await _scroll(server, collection, offset, limit=_SCROLL_BATCH)
        done += len(points)
        yield points, done
        if offset is None:
            return


def _no_text_message(attachment: attached.Attachment, some: Sequence[models.Record]) -> str:
    names = sorted({name for point in some for name in point.payload or {}})
    looked = ", ".join(attached.FIELDS["text"]["names"])
    has = f"It has {', '.join(names)}." if names else "Its points have no payload, or there are none."
    return f"{attachment.collection!r} has no text in a field with a known name ({looked}). {has}"


async def _measure_agreement(
    server: QdrantServer, attachment: attached.Attachment, embedder: Embedder, ids: list[Any]
) -> float:
    """Compare stored vectors with the embedder's. Raises ConfigurationError if another model made them."""
    store = QdrantStore(server, attachment.collection, Bm25Terms(1.0), layout=attachment.layout(embedder.count_tokens))
    step = max(len(ids) // _SAMPLE_VECTORS, 1)
    passages = list((await store.fetch([str(each) for each in ids[::step]])).values())[:_SAMPLE_VECTORS]
    if not passages:
        raise ConfigurationError(f"no point of {attachment.collection!r} has both a text and a vector.")
    own = [vector async for vector in embedder.embed_documents([passage.chunk.text for passage in passages])]
    stored = [passage.vector / max(float(np.linalg.norm(passage.vector)), 1e-12) for passage in passages]
    agreement = float(np.median([float(one @ other) for one, other in zip(own, stored, strict=True)]))
    if agreement < MIN_AGREEMENT:
        raise ConfigurationError(
            f"the vectors of {attachment.collection!r} were not made by {embedder.identity.model!r}: for the same "
            f"texts they agree by {agreement:.2f} of 1. Name the embedder it was filled with: --embedder NAME."
        )
    return round(agreement, 3)


async def _publish(
    server: QdrantServer, scan: CollectionScan, models: RetrievalModels, *, data_dir: Path, agreement: float
) -> AttachReport:
    """Write the catalog, calibrate the evidence cutoff, and register the collection."""
    if not scan.records:
        raise ConfigurationError(f"no point of {scan.attachment.collection!r} has any text.")
    embedder, reader, reranker = models
    attachment = replace(scan.attachment, snapshot=scan.snapshot_name)
    before = attached.read_attachment(data_dir)
    path = attached.attached_catalog_path(data_dir, attachment.snapshot)
    draft = path.with_suffix(".part")
    path.parent.mkdir(parents=True, exist_ok=True)
    draft.unlink(missing_ok=True)
    bm25 = await asyncio.to_thread(write_catalog, draft, scan, embedder.identity)
    store = QdrantStore(server, attachment.collection, bm25, layout=attachment.layout(embedder.count_tokens))
    with closing(Catalog.edit(draft)) as catalog:
        snapshot = IndexSnapshot(attachment.snapshot, store, catalog, bm25, len(scan.records), UNCALIBRATED)
        retriever = Retriever(embedder, reranker=reranker.without_steps() if reranker else None)
        calibration = await calibrate(snapshot, reader or embedder, retriever)
        catalog.set_fact("calibration", asdict(calibration))
        pages = catalog.totals().pages
    draft.replace(path)
    attached.write_attachment(data_dir, attachment)
    if before and before.snapshot != attachment.snapshot:
        attached.attached_catalog_path(data_dir, before.snapshot).unlink(missing_ok=True)
    identity = embedder.identity
    return AttachReport(
        url=attachment.url,
        collection=attachment.collection,
        points=scan.points,
        chunks=len(scan.records),
        pages=pages,
        model=identity.model,
        dimension=identity.dimension,
        agreement=agreement,
        fields=attachment.fields,
        lacks=scan.lacks(),
        calibration=calibration,
    )
