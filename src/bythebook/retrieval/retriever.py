"""The retriever: from a question to its passages. Ranking by page evidence, and passages that the reader selected."""

from __future__ import annotations

import time
from collections import OrderedDict, defaultdict
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

from bythebook.chunking import Chunk
from bythebook.concurrency import gather
from bythebook.index import Candidate, Filters, sort_candidates
from bythebook.retrieval import RetrievalContext, RetrievalResult
from bythebook.retrieval.query_rewrite import correct_spelling, expand_abbreviations
from bythebook.retrieval.reranker import (
    MAX_READ_PASSAGES,
    NO_READING,
    Reading,
    ReadingBudget,
    ReadingLevel,
    Reranker,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bythebook.embeddings import Embedder, Vector
    from bythebook.index.provider import IndexSnapshot
    from bythebook.index.terms import Bm25Terms

    StageTimeout = Callable[[str], AbstractAsyncContextManager[None]]
    """A context manager that limits the time of the stage with this name."""


PAGE_EVIDENCE = 0.1
"""The weight of the scores of the third, fourth and fifth best chunk of a page, which are added to all its chunks.

Two chunks of a page are often found by chance. A page with more of them is about the subject.
"""


def rank(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Sort candidates by their score plus the evidence of their page. They must come best first."""
    pages = [page_key(candidate) for candidate in candidates]
    if len(pages) - len(set(pages)) < 2:
        # No page has three candidates.
        return list(candidates)
    by_page: dict[int, list[float]] = defaultdict(list)
    for page, (_, score) in zip(pages, candidates, strict=True):
        by_page[page].append(score)
    support = {page: PAGE_EVIDENCE * sum(scores[2:5]) for page, scores in by_page.items()}
    scored = zip(pages, candidates, strict=True)
    return sort_candidates(Candidate(key, score + support[page]) for page, (key, score) in scored)


def sum_rankings(rankings: Sequence[Sequence[Candidate]]) -> list[Candidate]:
    """Fuse several rankings: a chunk's score is the sum of its scores."""
    totals: dict[int, float] = defaultdict(float)
    for ranking in rankings:
        for key, score in ranking:
            totals[key] += score
    return sort_candidates(map(Candidate._make, totals.items()))


def page_key(candidate: Candidate) -> int:
    """The first half of a chunk id, which all chunks of a page share. A 64-bit integer id has no halves."""
    return candidate[0] >> 64 or candidate[0]


CANDIDATES = 60
"""Candidates that the passages are chosen from."""
_MANY_CANDIDATES = 100
"""The same if too few of them are distinct, or if several searches are fused."""
DUPLICATE_OVERLAP = 0.9
"""Passages with this Jaccard similarity of their terms are duplicates: only the better one is returned."""
_SAMPLES, _SAMPLE_LENGTH = 5, 16
"""The number and length of substrings of a passage that are compared before its terms are."""
_MIN_SAMPLED_LENGTH = 160
"""Shorter texts are compared by their terms at once."""
_MIN_SAMPLES_FOUND = 0.5
"""The share of the samples that also occurs in a duplicate, in any order of sentences."""
_CACHED_QUERIES = 256
_CHUNK_FIELDS = tuple({field.name for field in fields(Chunk)} & {field.name for field in fields(RetrievalResult)})
"""The fields that a result copies from its chunk."""


def no_timeout(_stage: str) -> AbstractAsyncContextManager[None]:
    """For callers without a deadline."""
    return nullcontext()


@dataclass(frozen=True, slots=True)
class Retrieval:
    """The results of a search, with the vector of the query and the time of each step."""

    context: RetrievalContext
    vector: Vector
    embedding_time_ms: float
    retrieval_time_ms: float
    reranking_time_ms: float = 0.0
    reading: Reading | None = None
    """What the reranker has read of the passages, if it has."""


class Retriever:
    """Searches a snapshot of the index. Results are cached by query, generation and how much the reranker has read."""

    def __init__(self, embedder: Embedder, *, reranker: Reranker | None = None) -> None:
        self._embedder = embedder
        self._reranker = reranker
        self._cache: OrderedDict[tuple[str, str, tuple[str, ...], int, Filters, ReadingLevel], Retrieval] = (
            OrderedDict()
        )

    async def retrieve(
        self,
        snapshot: IndexSnapshot,
        query: str,
        *,
        top_k: int,
        filters: Filters,
        extra_queries: tuple[str, ...] = (),
        stage_timeout: StageTimeout = no_timeout,
    ) -> Retrieval:
        """The `top_k` best passages for `query`, without near-duplicates, in a deterministic order.

        The scores of `extra_queries` add to the ranking. Cosines and logits are those of `query` alone.
        """
        with self._reranker.budget() if self._reranker else nullcontext(NO_READING) as budget:
            key = (snapshot.name, query, extra_queries, top_k, filters)
            if found := self._recall((*key, ReadingLevel.FULL)) or self._recall((*key, budget.level)):
                return found
            texts = rewrite_query(snapshot, (query, *extra_queries), tokenizer=self._embedder)
            depth = max(top_k, MAX_READ_PASSAGES) if budget.passage_tokens else top_k
            found = await self._search(snapshot, texts, top_k=depth, filters=filters, stage_timeout=stage_timeout)
            if self._reranker and budget.passage_tokens:
                async with stage_timeout("reranking"):
                    found = await _rerank(self._reranker, found, budget, top_k=top_k)
            self._cache[(*key, budget.level)] = found
            if len(self._cache) > _CACHED_QUERIES:
                self._cache.popitem(last=False)
            return found

    def _recall(self, key: tuple[str, str, tuple[str, ...], int, Filters, ReadingLevel]) -> Retrieval | None:
        found = self._cache.get(key)
        if found is None:
            return None
        self._cache.move_to_end(key)
        context = replace(found.context, cache_hit=True)
        return replace(found, context=context, embedding_time_ms=0.0, retrieval_time_ms=0.0, reranking_time_ms=0.0)

    def clear_cache(self) -> None:
        """Drop all cached results."""
        self._cache.clear()

    async def _search(
        self,
        snapshot: IndexSnapshot,
        texts: tuple[str, ...],
        *,
        top_k: int,
        filters: Filters,
        stage_timeout: StageTimeout,
    ) -> Retrieval:
        started = time.perf_counter()
        async with stage_timeout("embedding"):
            embed = self._embedder.embed_query
            vectors = await gather(*map(embed, texts)) if texts[1:] else [await embed(texts[0])]
        embedded = time.perf_counter()
        async with stage_timeout("searching"):
            searches = list(zip(vectors, texts, strict=True))
            found = await rank_candidates(snapshot, searches, limit=candidate_limit(searches), filters=filters)
            results = await _choose_distinct(snapshot, found, vectors[0], top_k)
            if len(results) < top_k and len(found) == CANDIDATES:
                found = await rank_candidates(snapshot, searches, limit=_MANY_CANDIDATES, filters=filters)
                results = await _choose_distinct(snapshot, found, vectors[0], top_k)
            context = RetrievalContext(query=texts[0], results=results, filter_applied=str(filters))
        searched = time.perf_counter()
        return Retrieval(context, vectors[0], (embedded - started) * 1000, (searched - embedded) * 1000)


async def _rerank(reranker: Reranker, found: Retrieval, budget: ReadingBudget, *, top_k: int) -> Retrieval:
    started = time.perf_counter()
    results, reading = await reranker.rerank(found.context.query, found.context.results, budget)
    return replace(
        found,
        context=replace(found.context, results=results[:top_k]),
        reading=reading,
        reranking_time_ms=(time.perf_counter() - started) * 1000,
    )


def rewrite_query(snapshot: IndexSnapshot, texts: tuple[str, ...], *, tokenizer: Embedder) -> tuple[str, ...]:
    """Rewrite queries with the vocabulary of the book: each with corrected spelling, then the first one again with its
    abbreviations expanded, if it has any."""

    def known(word: str) -> bool:
        # Common words are a single token of the model, behind a space. Others are known if the book contains them.
        return tokenizer.count_tokens(f" {word}") == 1 or any(
            snapshot.catalog.term_counts(snapshot.bm25.terms(word)).values()
        )

    corrected = tuple(correct_spelling(text, snapshot.catalog, known=known) for text in texts)
    abbreviations = snapshot.catalog.abbreviations
    expanded = expand_abbreviations(corrected[0], abbreviations) if abbreviations else ""
    return (*corrected, expanded) if expanded else corrected


def candidate_limit(searches: Sequence[object]) -> int:
    """The number of candidates of each search: more if several searches are fused."""
    return CANDIDATES if len(searches) == 1 else _MANY_CANDIDATES


async def rank_candidates(
    snapshot: IndexSnapshot, searches: Sequence[tuple[Vector, str]], *, limit: int, filters: Filters
) -> list[Candidate]:
    """The fused candidates of all searches, best first."""
    rankings = [rank(await snapshot.store.search(*pair, limit=limit, filters=filters)) for pair in searches]
    return rankings[0] if len(rankings) == 1 else sum_rankings(rankings)


async def _choose_distinct(
    snapshot: IndexSnapshot, ranked: Sequence[Candidate], vector: Vector, top_k: int
) -> tuple[RetrievalResult, ...]:
    """The best distinct passages. They are read from the store in batches of `top_k`."""
    chosen: list[RetrievalResult] = []
    seen = _DuplicateFilter(snapshot.bm25)
    for first in range(0, len(ranked), top_k):
        scores = dict(ranked[first : first + top_k])
        fetched = await snapshot.store.compare(vector, list(scores))
        found = [(chunk, cosine, scores[key]) for key, (chunk, cosine) in fetched.items()]
        for chunk, cosine, score in sorted(found, key=lambda entry: (-entry[2], entry[0].url, entry[0].chunk_index)):
            if seen.add(chunk.text):
                chosen.append(to_result(chunk, position=len(chosen) + 1, score=cosine, rerank_score=score))
            if len(chosen) == top_k:
                return tuple(chosen)
    return tuple(chosen)


class _DuplicateFilter:
    """The texts that were chosen so far, to reject near-duplicates of them."""

    def __init__(self, bm25: Bm25Terms) -> None:
        self._bm25 = bm25
        self._texts: list[str] = []
        self._joined = ""

    def add(self, text: str) -> bool:
        """Add the text and return True, unless it is a near-duplicate."""
        # Sampling substrings rules out most texts, whose terms then need not be computed.
        if _samples_match(text, self._joined) and any(
            _samples_match(text, other) and self._terms_match(text, other) for other in self._texts
        ):
            return False
        self._texts.append(text)
        self._joined += text
        return True

    def _terms_match(self, text: str, other: str) -> bool:
        first, second = self._bm25.terms(text), self._bm25.terms(other)
        common = len(first & second)
        return common > 0 and common >= DUPLICATE_OVERLAP * (len(first) + len(second) - common)


def _samples_match(text: str, other: str) -> bool:
    """True if enough samples of `text` occur in `other`. It stops as soon as too many are missing."""
    if len(text) < _MIN_SAMPLED_LENGTH:
        return True
    may_miss = (1 - _MIN_SAMPLES_FOUND) * _SAMPLES
    for start in range(0, len(text) - _SAMPLE_LENGTH, len(text) // _SAMPLES):
        if text[start : start + _SAMPLE_LENGTH] not in other:
            may_miss -= 1
            if may_miss < 0:
                return False
    return True


def to_result(chunk: Chunk, *, position: int, score: float, rerank_score: float) -> RetrievalResult:
    """The result for a chunk. It copies every field that both classes have."""
    shared = {name: getattr(chunk, name) for name in _CHUNK_FIELDS}
    score = min(max(score, 0.0), 1.0)
    return RetrievalResult(**shared, position=position, score=score, rerank_score=rerank_score)


URL = "urn:bythebook:selection"
TITLE = "Selected text"


def selection_result(text: str, *, tokens: int, near: Sequence[RetrievalResult]) -> RetrievalResult:
    """The marked text as a result. Its source is the page of `near` that contains it, or "Selected text"."""
    page = next((result for result in near if " ".join(text.split()) in " ".join(result.text.split())), None)
    return RetrievalResult(
        chunk_id="selection",
        document_id=page.document_id if page else "selection",
        text=text,
        score=1.0,
        position=1,
        url=page.url if page else URL,
        title=page.title if page else TITLE,
        chunk_index=0,
        token_count=max(tokens, 1),
        heading_hierarchy=page.heading_hierarchy if page else (TITLE,),
        anchor=page.anchor if page else "",
        rerank_score=max((result.rerank_score for result in near), default=1.0),
    )


async def pin_chunk(snapshot: IndexSnapshot, chunk_id: str, retrieval: Retrieval) -> Retrieval:
    """Put this chunk first and the results of its section second, if the book still has the chunk."""
    results = retrieval.context.results
    passage = (await snapshot.store.fetch([chunk_id])).get(chunk_id)
    if passage is None:
        return retrieval
    best = max((result.rerank_score for result in results), default=1.0)
    pinned = to_result(passage.chunk, position=1, score=float(passage.vector @ retrieval.vector), rerank_score=best)
    others = [result for result in results if result.chunk_id != chunk_id]
    others.sort(key=lambda result: _section(result) != _section(pinned))
    kept = others[: max(len(results) - 1, 0)]
    reordered = (pinned, *(replace(result, position=place) for place, result in enumerate(kept, start=2)))
    return replace(retrieval, context=replace(retrieval.context, results=reordered))


def _section(result: RetrievalResult) -> tuple[str, tuple[str, ...]]:
    return result.document_id, result.heading_hierarchy
