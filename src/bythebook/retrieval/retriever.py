"""Retrieval: from a question to the passages that bear on it, best first.

Reading closely what another embedder has found.

The evidence rule and the proof were fitted to one embedder's cosines, and others have other scales. So whoever finds
the passages, the local model reads them: nothing is sent or paid for a question but its own vector.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bythebook.chunking import under
from bythebook.concurrency import together
from bythebook.retrieval import RetrievalContext, RetrievalResult
from bythebook.retrieval.query_rewrite import corrected, spelled_out
from bythebook.retrieval.ranking import added, rank

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractAsyncContextManager

    from bythebook.chunking import Chunk
    from bythebook.embeddings import Embedder, Vector
    from bythebook.index import Candidate, Filters
    from bythebook.index.provider import Edition
    from bythebook.index.terms import Words

    Bounds = Callable[[str], AbstractAsyncContextManager[None]]
    """Ends a stage that takes too long, by its name."""

    from collections.abc import Iterator


CANDIDATES = 30
"""How many chunks the passages are chosen from."""
_MANY = 100
"""How many instead, where too few of them are distinct or several searches are added up."""
SAME = 0.9
"""Passages that share this much of their terms say the same: only the better one is shown."""
_PLACES, _GLANCE = 5, 16
"""In how many places of a passage its letters are looked at first, and how many of them."""
_SHORT = 160
"""A text of fewer letters is not looked at first."""
_ALIKE_AT_SIGHT = 0.5
"""The part of those places that is also found in a passage which says the same, however its sentences are put."""
_REMEMBERED = 256


def unbounded(_stage: str) -> AbstractAsyncContextManager[None]:
    """For callers who have all the time."""
    return nullcontext()


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What was found, with the query's vector and how long each step took."""

    context: RetrievalContext
    vector: Vector
    embedding_time_ms: float
    retrieval_time_ms: float
    read: Reading | None = None
    """How the one who reads closely sees it, where that is not the one who found it."""

    @property
    def question(self) -> Vector:
        """The query's vector for whoever reads closely."""
        return self.read.vector if self.read else self.vector

    @property
    def nearest(self) -> float:
        """The cosine of the query and its nearest passage, to whoever reads closely."""
        return self.read.nearest if self.read else max((result.score for result in self.context.results), default=0.0)


class Retriever:
    """Searches an edition of the book. The same query within a generation is not embedded or searched twice."""

    def __init__(self, embedder: Embedder, *, reader: Embedder | None = None) -> None:
        self._embedder = embedder
        self._reader = reader
        """Who reads closely what was found, where it is another one."""
        self._remembered: OrderedDict[tuple[str, str, tuple[str, ...], int, Filters], Retrieved] = OrderedDict()

    async def retrieve(
        self,
        edition: Edition,
        query: str,
        *,
        top_k: int,
        filters: Filters,
        also: tuple[str, ...] = (),
        within: Bounds = unbounded,
    ) -> Retrieved:
        """The `top_k` passages that bear most on `query`, without near-duplicates, always in the same order.

        What is searched for `also` adds to their rank; how near they are is measured by `query` alone.
        """
        key = (edition.name, query, also, top_k, filters)
        if found := self._remembered.get(key):
            self._remembered.move_to_end(key)
            context = replace(found.context, cache_hit=True)
            return replace(found, context=context, embedding_time_ms=0.0, retrieval_time_ms=0.0)
        texts = in_the_books_words(edition, (query, *also), by=self._reader or self._embedder)
        found = await self._search(edition, texts, top_k=top_k, filters=filters, within=within)
        self._remembered[key] = found
        if len(self._remembered) > _REMEMBERED:
            self._remembered.popitem(last=False)
        return found

    def forget(self) -> None:
        """Search again for what was searched before."""
        self._remembered.clear()

    async def _search(
        self, edition: Edition, texts: tuple[str, ...], *, top_k: int, filters: Filters, within: Bounds
    ) -> Retrieved:
        started = time.perf_counter()
        async with within("embedding"):
            embed = self._embedder.query
            vectors = await together(*map(embed, texts)) if texts[1:] else [await embed(texts[0])]
        embedded = time.perf_counter()
        async with within("searching"):
            wanted = list(zip(vectors, texts, strict=True))
            found = await ranked(edition, wanted, limit=looked_through(wanted), filters=filters)
            results = await _chosen(edition, found, vectors[0], top_k)
            if len(results) < top_k and len(found) == CANDIDATES:
                found = await ranked(edition, wanted, limit=_MANY, filters=filters)
                results = await _chosen(edition, found, vectors[0], top_k)
            context = RetrievalContext(query=texts[0], results=results, filter_applied=str(filters))
            read = await read_by(self._reader, context) if self._reader else None
        searched = time.perf_counter()
        return Retrieved(context, vectors[0], (embedded - started) * 1000, (searched - embedded) * 1000, read)


def in_the_books_words(edition: Edition, texts: tuple[str, ...], *, by: Embedder) -> tuple[str, ...]:
    """What to search for, so that a reader need not write as the book does: the same texts put right, then the first
    once more with what the book abbreviates."""

    def known(word: str) -> bool:
        # A model has whole words for what is usual in its language. What is unusual may be so in this book only.
        return by.count(word) == 1 or any(edition.catalogue.term_counts(edition.words.terms(word)).values())

    right = tuple(corrected(text, edition.catalogue, known=known) for text in texts)
    short = edition.catalogue.abbreviations
    other = spelled_out(right[0], short) if short else ""
    return (*right, other) if other else right


def looked_through(wanted: Sequence[object]) -> int:
    """How many candidates there are for all that is searched for: more where several searches are added up."""
    return CANDIDATES if len(wanted) == 1 else _MANY


async def ranked(
    edition: Edition, wanted: Sequence[tuple[Vector, str]], *, limit: int, filters: Filters
) -> list[Candidate]:
    """The candidates for all that is searched for, best first."""
    rankings = [rank(await edition.store.candidates(*pair, limit=limit, filters=filters)) for pair in wanted]
    return rankings[0] if len(rankings) == 1 else added(rankings)


async def _chosen(
    edition: Edition, ranked: Sequence[Candidate], vector: Vector, top_k: int
) -> tuple[RetrievalResult, ...]:
    """The best distinct passages, read from the store as many at a time as are wanted."""
    chosen: list[RetrievalResult] = []
    shown = _Shown(edition.words)
    for first in range(0, len(ranked), top_k):
        scores = dict(ranked[first : first + top_k])
        read = await edition.store.compare(vector, list(scores))
        found = [(chunk, cosine, scores[key]) for key, (chunk, cosine) in read.items()]
        for chunk, cosine, score in sorted(found, key=lambda entry: (-entry[2], entry[0].url, entry[0].chunk_index)):
            if shown.adds(chunk.text):
                chosen.append(result_of(chunk, position=len(chosen) + 1, score=cosine, rerank_score=score))
            if len(chosen) == top_k:
                return tuple(chosen)
    return tuple(chosen)


class _Shown:
    """The passages shown so far, for telling whether another says the same as one of them."""

    def __init__(self, words: Words) -> None:
        self._words = words
        self._texts: list[str] = []
        self._whole = ""

    def adds(self, text: str) -> bool:
        """Whether none of them says what `text` does. Then it is shown too."""
        # Most passages differ at first sight from all there is, which spares them the cutting into terms.
        if _alike(text, self._whole) and any(_alike(text, other) and self._same(text, other) for other in self._texts):
            return False
        self._texts.append(text)
        self._whole += text
        return True

    def _same(self, text: str, other: str) -> bool:
        mine, theirs = self._words.terms(text), self._words.terms(other)
        common = len(mine & theirs)
        return common > 0 and common >= SAME * (len(mine) + len(theirs) - common)


def _alike(text: str, whole: str) -> bool:
    """Whether enough of what a glance at several places of `text` shows also stands in the whole.

    Most does not, so it is seldom looked for all of it. A short text is soon read closely.
    """
    if len(text) < _SHORT:
        return True
    missing = (1 - _ALIKE_AT_SIGHT) * _PLACES
    for at in range(0, len(text) - _GLANCE, len(text) // _PLACES):
        if text[at : at + _GLANCE] not in whole:
            missing -= 1
            if missing < 0:
                return False
    return True


def result_of(chunk: Chunk, *, position: int, score: float, rerank_score: float) -> RetrievalResult:
    return RetrievalResult(
        chunk_id=chunk.chunk_id,
        document_id=chunk.document_id,
        text=chunk.text,
        score=min(max(score, 0.0), 1.0),
        position=position,
        url=chunk.url,
        title=chunk.title,
        chunk_index=chunk.chunk_index,
        token_count=chunk.token_count,
        heading_hierarchy=chunk.heading_hierarchy,
        module_name=chunk.module_name,
        chapter_id=chunk.chapter_id,
        anchor=chunk.anchor,
        rerank_score=rerank_score,
        start=chunk.start,
        fence=chunk.fence,
    )


STRETCH = 220
"""As many tokens as the local model's own chunks have: it does not see the end of a longer text."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The query's vector, and its cosine to the nearest stretch of the passages."""

    vector: Vector
    nearest: float


async def read_by(reader: Embedder, context: RetrievalContext) -> Reading:
    """How near the reader finds the passages to the query."""
    vector = await reader.query(context.query)
    texts = [stretch for result in context.results for stretch in _stretches(result, reader)]
    cosines = [float(vector @ other) async for other in reader.documents(texts)]
    return Reading(vector, min(max([0.0, *cosines]), 1.0))


def _stretches(result: RetrievalResult, reader: Embedder) -> Iterator[str]:
    """The passage in parts of about the same length that the reader sees whole, each below its headings."""
    parts = -(-reader.count(result.text) // STRETCH) or 1
    words = result.text.split(" ")
    size = -(-len(words) // parts)
    for first in range(0, len(words), size):
        yield under(result.heading_hierarchy, " ".join(words[first : first + size]))
