"""Attaching: looking through a collection that another program has filled, before it is served.

Its texts are read once, for what the evidence check must know of the whole book: how often each term stands, and where
the line between covered and not lies. The collection itself is not changed.
"""

from __future__ import annotations

import asyncio
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from qdrant_client import models

from bythebook.errors import ConfigurationError, InputError, NotFound
from bythebook.passages.calibration import UNTRIED, Calibration, calibrate
from bythebook.passages.catalogue import Catalogue
from bythebook.passages.qdrant.attached import (
    NAMES,
    Attachment,
    attached_catalogue,
    read_attachment,
    recognised,
    write_attachment,
)
from bythebook.passages.qdrant.store import QdrantStore
from bythebook.passages.qdrant.survey import Survey, write_catalogue
from bythebook.passages.retriever import Retriever
from bythebook.passages.shelf import Edition
from bythebook.passages.words import Words

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from pathlib import Path

    from bythebook.passages.qdrant.connection import QdrantServer
    from bythebook.vectors import Embedder

    Progress = Callable[[str, int, int], None]

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
