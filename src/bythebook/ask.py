"""Ask: from a question to an answer that is proven, refused, or asked back."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from bythebook.answers import AgentResponse, Outcome, ResponseMetadata
from bythebook.answers.extractive import MODEL, cite, extract
from bythebook.answers.refusal import CLARIFY, nearest_sections, refusal
from bythebook.passages.evidence import weigh

if TYPE_CHECKING:
    from bythebook.answers import AgentRequest
    from bythebook.passages.evidence import Evidence
    from bythebook.passages.retriever import Retrieved, Retriever
    from bythebook.passages.shelf import Edition, Shelf
    from bythebook.vectors import Embedder

    Threshold = float | Literal["auto"]


class _Stopwatch:
    def __init__(self) -> None:
        self._started = self._last = time.perf_counter()

    def lap(self) -> float:
        """Milliseconds since the last lap."""
        before, self._last = self._last, time.perf_counter()
        return (self._last - before) * 1000

    def total(self) -> float:
        return (time.perf_counter() - self._started) * 1000


@dataclass(frozen=True, slots=True)
class Asker:
    """Answers questions from the book on the shelf."""

    shelf: Shelf
    embedder: Embedder
    retriever: Retriever
    top_k: int
    threshold: Threshold

    async def ask(self, request: AgentRequest) -> AgentResponse:
        """One answer, all of it from one generation of the book."""
        watch = _Stopwatch()
        async with self.shelf.edition() as edition:
            if not edition.words.terms(request.query):
                return _asked_back(edition, watch)
            top_k = request.top_k or self.top_k
            retrieved = await self.retriever.retrieve(edition, request.query, top_k=top_k, filters=request.filters)
            watch.lap()
            evidence = await weigh(edition, self.embedder, retrieved)
            proof = watch.lap()
            quotes = extract(evidence.units, edition.words) if self._covers(edition, evidence) else []
            if not quotes:
                return _refused(request, edition, retrieved, evidence=evidence, proof=proof, watch=watch)
            answer, citations = cite(quotes)
            return AgentResponse(
                answer=answer,
                outcome=Outcome.ANSWERED,
                citations=citations,
                sources=retrieved.context.results if request.include_sources else (),
                model=MODEL,
                metadata=_metadata(edition, retrieved, evidence, proof=proof, watch=watch),
            )

    def _covers(self, edition: Edition, evidence: Evidence) -> bool:
        """Whether there is enough to answer from: by the calibrated rule, or by the reader's own least cosine."""
        if self.threshold == "auto":
            return evidence.confidence >= edition.calibration.cutoff
        return evidence.features.passage_cosine >= self.threshold


def _refused(
    request: AgentRequest,
    edition: Edition,
    retrieved: Retrieved,
    *,
    evidence: Evidence,
    proof: float,
    watch: _Stopwatch,
) -> AgentResponse:
    suggestions = nearest_sections(retrieved.context.results)
    return AgentResponse(
        answer=refusal(request.query, suggestions),
        outcome=Outcome.REFUSED,
        citations=(),
        sources=retrieved.context.results if request.include_sources else (),
        model=MODEL,
        metadata=_metadata(edition, retrieved, evidence, proof=proof, watch=watch),
        suggestions=suggestions,
    )


def _asked_back(edition: Edition, watch: _Stopwatch) -> AgentResponse:
    """The question has no word that could be looked up."""
    return AgentResponse(
        answer=CLARIFY,
        outcome=Outcome.CLARIFY,
        citations=(),
        sources=(),
        model=MODEL,
        metadata=ResponseMetadata(response_time_ms=watch.total(), index_generation=edition.name),
    )


def _metadata(
    edition: Edition, retrieved: Retrieved, evidence: Evidence, *, proof: float, watch: _Stopwatch
) -> ResponseMetadata:
    generation = watch.lap()
    return ResponseMetadata(
        response_time_ms=watch.total(),
        index_generation=edition.name,
        embedding_time_ms=retrieved.embedding_time_ms,
        retrieval_time_ms=retrieved.retrieval_time_ms,
        generation_time_ms=generation,
        proof_time_ms=proof,
        chunk_count=len(retrieved.context.results),
        cache_hit=retrieved.context.cache_hit,
        confidence=evidence.confidence,
    )
