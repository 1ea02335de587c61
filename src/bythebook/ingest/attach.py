"""The survey of a collection that others fill: one look at every point, and what it lacks.

Attaching: looking through a collection that another program has filled, before it is served.

Its texts are read once, for what the evidence check must know of the whole book: how often each term stands, and where
the line between covered and not lies. The collection itself is not changed.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter, defaultdict
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import numpy as np
from qdrant_client import models

from bythebook.errors import ConfigurationError, InputError, NotFound
from bythebook.index.catalog import Catalogue, ChunkRecord, PageRecord
from bythebook.index.provider import Edition
from bythebook.index.qdrant.attached import (
    NAMES,
    Attachment,
    attached_catalogue,
    read_attachment,
    recognised,
    write_attachment,
)
from bythebook.index.qdrant.store import QdrantStore
from bythebook.index.terms import Tally, Words, stepped
from bythebook.retrieval.calibration import UNTRIED, calibrate
from bythebook.retrieval.retriever import Retriever

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from pathlib import Path

    from bythebook.chunking import Chunk
    from bythebook.embeddings import Embedder, Identity
    from bythebook.index import Calibration
    from bythebook.index.qdrant.attached import Attachment
    from bythebook.index.qdrant.client import QdrantServer

    Progress = Callable[[str, int, int], None]


class Survey:
    """What is learned from one look at every point."""

    def __init__(self, found: Attachment, count: Callable[[str], int]) -> None:
        self.found = found
        self.points = 0
        self.records: list[ChunkRecord] = []
        self.tally = Tally()
        self.missing: Counter[str] = Counter()
        self._layout = found.layout(count)
        self._pages: dict[str, list[tuple[int, str, str, str]]] = defaultdict(list)
        self._digest = hashlib.sha256(repr(found).encode())

    def take(self, points: Sequence[models.Record]) -> None:
        for point in points:
            self.points += 1
            chunk = self._layout.chunk(_id(point.id), point.payload or {})
            if chunk is None:
                self.missing["text"] += 1
            else:
                self._note(chunk)

    def _note(self, chunk: Chunk) -> None:
        length = self.tally.add(chunk.embedded)
        headings = " > ".join(chunk.heading_hierarchy)
        self.records.append(ChunkRecord(chunk.chunk_id, chunk.url, chunk.content_hash, "", length, headings))
        self._pages[chunk.url].append((chunk.chunk_index, chunk.chunk_id, chunk.title, chunk.text))
        self._digest.update(f"{chunk.chunk_id} {chunk.content_hash} ".encode())
        self.missing["url"] += chunk.url.startswith("urn:qdrant:")

    @property
    def edition(self) -> str:
        """A name that another look at the same collection gives again."""
        return f"g000000-{self._digest.hexdigest()[:8]}"

    def pages(self) -> list[PageRecord]:
        """A page for each address: the chunks there are of it, in their order."""
        return [self._page(url, sorted(parts)) for url, parts in self._pages.items()]

    def _page(self, url: str, parts: Sequence[tuple[int, str, str, str]]) -> PageRecord:
        text = "\n\n".join(part[3] for part in parts)
        path = urlsplit(url).path.strip("/") or url
        return PageRecord(url, self.found.collection, path, parts[0][2], "", text)

    def lacks(self) -> tuple[str, ...]:
        return tuple(_lacking(self.found, self.missing, self.points))


def _id(point: Any) -> int | str:
    return point if isinstance(point, int) else str(point)


def _lacking(found: Attachment, missing: Counter[str], points: int) -> list[str]:
    said = [
        "an index of words: passages are found by meaning alone",
        "the pages themselves: a quote's place is known within its chunk, and a page is the chunks there are of it",
    ]
    if missing["text"]:
        said.append(f"text in {missing['text']} of {points} points: they are passed over")
    if missing["url"]:
        said.append(
            f"an absolute address in {missing['url']} points: their citations cannot be opened (site_url completes "
            "relative ones)"
        )
    meant = {
        "title": "titles: the last part of the address stands in for one",
        "chunk_index": "the order of chunks in their page",
        "heading_hierarchy": "headings: a passage is shown below its title alone",
        "module_name": "modules: the filter module=NAME finds nothing",
        "chapter_id": "chapters: the filter chapter=ID finds nothing",
        "anchor": "anchors: a citation opens its page at the quote, without the section's anchor",
        "token_count": "token counts: they are counted when a passage is read",
    }
    return said + [text for part, text in meant.items() if part not in found.fields]


def write_catalogue(path: Path, survey: Survey, identity: Identity) -> Words:
    """Write down what was learned. Returns the words as they are weighed from now on."""
    with closing(Catalogue.edit(path)) as catalogue:
        for record in survey.records:
            catalogue.put_chunk(record)
        for page in survey.pages():
            catalogue.put_page(page)
        catalogue.count(survey.tally)
        totals = catalogue.totals()
        words = Words(stepped(totals.length / max(totals.chunks, 1)))
        catalogue.state("average_length", words.average_length)
        catalogue.state("identity", asdict(identity))
        catalogue.state("published_at", datetime.now(UTC).isoformat(timespec="seconds"))
        return words


_AT_ONCE = 256
_LOOKED_AT = 256
"""From how many points the names are told."""
_COMPARED = 16
LEAST_AGREEMENT = 0.5
"""Vectors of the same text by the same model are alike even if a title was put in front; by another they are not."""
_MEASURES = (models.Distance.COSINE, models.Distance.DOT)


@dataclass(frozen=True, slots=True)
class Findings:
    """What a collection has, what it lacks, and what follows from that."""

    url: str
    collection: str
    points: int
    chunks: int
    """Points with text, which can be found and quoted."""
    pages: int
    model: str
    dimension: int
    agreement: float
    """How near the stored vectors are to what the embedder makes of the same texts, from -1 to 1."""
    fields: Mapping[str, str]
    """The collection's name for each part of a chunk it has."""
    lacks: tuple[str, ...]
    """What it does not have, and what that means."""
    calibration: Calibration


class Embedders(NamedTuple):
    """Who finds, and who reads closely what was found, where that is another."""

    finder: Embedder
    reader: Embedder | None = None


async def attach(
    server: QdrantServer,
    wanted: Attachment,
    embedders: Embedders,
    *,
    data_dir: Path,
    progress: Progress,
) -> Findings:
    """Look through the collection and serve it from now on. The vector and the fields are found out."""
    embedder = embedders.finder
    info = await _info(server, wanted.collection)
    vector, params = _vector(info, wanted)
    _check_vectors(params, embedder, wanted.collection)
    some, _ = await _scroll(server, wanted.collection, None, limit=_LOOKED_AT)
    found = replace(wanted, vector=vector, fields=recognised(point.payload or {} for point in some))
    if "text" not in found.fields:
        raise ConfigurationError(_no_text(found, some))
    agreement = await _agreement(server, found, embedder, [point.id for point in some])
    survey = Survey(found, embedder.count)
    async for points, done in _all(server, found.collection):
        survey.take(points)
        progress("reading", done, max(info.points_count or 0, done))
    return await _conclude(server, survey, embedders, data_dir=data_dir, agreement=agreement)


async def _info(server: QdrantServer, collection: str) -> models.CollectionInfo:
    listed = await server.read("listing collections", lambda client: client.get_collections())
    names = {each.name for each in listed.collections}
    aliases = await server.read("listing collections", lambda client: client.get_aliases())
    targets = {each.alias_name: each.collection_name for each in aliases.aliases}
    if collection not in names and collection not in targets:
        others = ", ".join(sorted(names | targets.keys())) or "none at all"
        raise NotFound(f"there is no collection {collection!r} on {server.address}. There are: {others}.")
    if f"{targets.get(collection, collection)}-book" in names:
        raise InputError(
            f"{collection!r} is a book that bythebook keeps itself. Set collection_name to it instead of attaching it."
        )
    return await server.read("looking at the collection", lambda client: client.get_collection(collection))


def _vector(info: models.CollectionInfo, wanted: Attachment) -> tuple[str | None, models.VectorParams]:
    """The vector to search: the only one, or the one that was named."""
    vectors = info.config.params.vectors
    if isinstance(vectors, models.VectorParams):
        if wanted.vector:
            raise InputError(f"the vector of {wanted.collection!r} has no name. Leave --vector out.")
        return None, vectors
    named = dict(vectors or {})
    if not named:
        raise ConfigurationError(
            f"{wanted.collection!r} has no dense vectors, so that it cannot be searched by meaning."
        )
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
    if params.distance not in _MEASURES or params.multivector_config:
        kind = "several vectors to a point" if params.multivector_config else f"the distance {params.distance.value}"
        raise ConfigurationError(f"{collection!r} has {kind}. Only Cosine and Dot can be served.")


async def _scroll(
    server: QdrantServer, collection: str, offset: Any, *, limit: int
) -> tuple[Sequence[models.Record], Any]:
    return await server.write(
        "reading the collection",
        lambda client: client.scroll(collection, limit=limit, offset=offset, with_payload=True, with_vectors=False),
    )


async def _all(server: QdrantServer, collection: str) -> AsyncIterator[tuple[Sequence[models.Record], int]]:
    offset, done = None, 0
    while True:
        points, offset = await _scroll(server, collection, offset, limit=_AT_ONCE)
        done += len(points)
        yield points, done
        if offset is None:
            return


def _no_text(found: Attachment, some: Sequence[models.Record]) -> str:
    names = sorted({name for point in some for name in point.payload or {}})
    looked = ", ".join(NAMES["text"])
    has = f"It has {', '.join(names)}." if names else "Its points have no payload, or there are none."
    return f"{found.collection!r} has no text under a name that is known ({looked}). {has}"


async def _agreement(server: QdrantServer, found: Attachment, embedder: Embedder, ids: list[Any]) -> float:
    """How alike the stored vectors are to the embedder's. Raises ConfigurationError if they are another model's."""
    store = QdrantStore(server, found.collection, Words(1.0), layout=found.layout(embedder.count))
    step = max(len(ids) // _COMPARED, 1)
    passages = list((await store.fetch([str(each) for each in ids[::step]])).values())[:_COMPARED]
    if not passages:
        raise ConfigurationError(f"no point of {found.collection!r} has both a text and a vector.")
    own = [vector async for vector in embedder.documents([passage.chunk.text for passage in passages])]
    stored = [passage.vector / max(float(np.linalg.norm(passage.vector)), 1e-12) for passage in passages]
    agreement = float(np.median([float(one @ other) for one, other in zip(own, stored, strict=True)]))
    if agreement < LEAST_AGREEMENT:
        raise ConfigurationError(
            f"the vectors of {found.collection!r} were not made by {embedder.identity.model!r}: for the same texts "
            f"they agree by {agreement:.2f} of 1. Name the embedder it was filled with: --embedder NAME."
        )
    return round(agreement, 3)


async def _conclude(
    server: QdrantServer, survey: Survey, embedders: Embedders, *, data_dir: Path, agreement: float
) -> Findings:
    """Write down what was learned, draw the book's line, and serve it from now on."""
    if not survey.records:
        raise ConfigurationError(f"no point of {survey.found.collection!r} has any text.")
    embedder, reader = embedders
    found = replace(survey.found, edition=survey.edition)
    before = read_attachment(data_dir)
    path = attached_catalogue(data_dir, found.edition)
    draft = path.with_suffix(".part")
    path.parent.mkdir(parents=True, exist_ok=True)
    draft.unlink(missing_ok=True)
    words = await asyncio.to_thread(write_catalogue, draft, survey, embedder.identity)
    store = QdrantStore(server, found.collection, words, layout=found.layout(embedder.count))
    with closing(Catalogue.edit(draft)) as catalogue:
        edition = Edition(found.edition, store, catalogue, words, len(survey.records), UNTRIED)
        calibration = await calibrate(edition, reader or embedder, Retriever(embedder, reader=reader))
        catalogue.state("calibration", asdict(calibration))
        pages = catalogue.totals().pages
    draft.replace(path)
    write_attachment(data_dir, found)
    if before and before.edition != found.edition:
        attached_catalogue(data_dir, before.edition).unlink(missing_ok=True)
    identity = embedder.identity
    return Findings(
        url=found.url,
        collection=found.collection,
        points=survey.points,
        chunks=len(survey.records),
        pages=pages,
        model=identity.model,
        dimension=identity.dimension,
        agreement=agreement,
        fields=found.fields,
        lacks=survey.lacks(),
        calibration=calibration,
    )
