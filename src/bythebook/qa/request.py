"""One request on its way through the pipeline: its stages, its deadline and its state."""

from __future__ import annotations

import time
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from bythebook.answers import AgentRequest, AgentResponse, Outcome, ResponseMetadata, SectionLink
from bythebook.answers.extractive import MODEL, ExtractiveAnswer
from bythebook.answers.refusal import format_links, format_refusal
from bythebook.concurrency import fair_yield
from bythebook.conversations.small_talk import SmallTalk, find_small_talk
from bythebook.errors import BookError
from bythebook.retrieval.reranker import ReadingLevel
from bythebook.telemetry import span
from bythebook.upstream.deadline import Deadline, now

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from bythebook.answers.verification import Proof
    from bythebook.conversations.followups import Exchange, StandaloneQuestion
    from bythebook.index.provider import IndexSnapshot
    from bythebook.llm import GenerationResult
    from bythebook.retrieval import Citation, RetrievalResult
    from bythebook.retrieval.evidence import Evidence
    from bythebook.retrieval.retriever import Retrieval


class Stage(StrEnum):
    """A step of a request. An error contains the stage in which it occurred."""

    OPENING = "opening the book"
    WAITING = "waiting for an earlier question"
    UNDERSTANDING = "understanding the question"
    EMBEDDING = "embedding"
    SEARCHING = "searching"
    RERANKING = "reranking"
    WEIGHING = "weighing"
    GENERATING = "generating"
    PROVING = "proving"
    REMEMBERING = "remembering"


_BEFORE_THE_FIRST_TOKEN = (Stage.OPENING, Stage.UNDERSTANDING, Stage.EMBEDDING, Stage.SEARCHING, Stage.RERANKING)
_CPU_BOUND = (Stage.SEARCHING, Stage.WEIGHING, Stage.PROVING)
"""Stages that block the event loop for a while."""


class StageTimer:
    """Limits and measures the stages of one request. All times of a request are taken here."""

    def __init__(self, deadline: Deadline) -> None:
        self.deadline = deadline
        self._started = time.perf_counter()
        self._durations_ms: dict[str, float] = {}

    def elapsed_ms(self) -> float:
        """The time since the request began."""
        return (time.perf_counter() - self._started) * 1000

    def duration_ms(self, *stages: Stage) -> float:
        """The time spent in these stages so far."""
        return sum(self._durations_ms.get(stage, 0.0) for stage in stages)

    @asynccontextmanager
    async def limit(self, stage: str) -> AsyncIterator[None]:
        """Measure a stage and end it, with an error that names it, when its deadline is due.

        A thread that the stage waits for cannot be stopped. It continues, but the request no longer waits for it.
        """
        deadline = self.deadline if stage in _BEFORE_THE_FIRST_TOKEN else self.deadline.after_first_token()
        with self.measure(stage):
            async with deadline.limit(stage):
                if stage in _CPU_BOUND:
                    await fair_yield()
                yield

    @asynccontextmanager
    async def limit_queueing(self, stage: str) -> AsyncIterator[None]:
        """Like `limit`, for waiting on another request: the time does not count toward the first token."""
        before = now()
        async with self.limit(stage):
            yield
        self.deadline = self.deadline.postpone_first_token_deadline(now() - before)

    @contextmanager
    def measure(self, stage: str) -> Iterator[None]:
        """Measure a stage that has its own limit. Errors leave it with the name of the stage."""
        before = time.perf_counter()
        try:
            with span(stage):
                yield
        except BookError as error:
            error.stage = error.stage or stage
            raise
        finally:
            spent = (time.perf_counter() - before) * 1000
            self._durations_ms[stage] = self._durations_ms.get(stage, 0.0) + spent


@dataclass(slots=True)
class RequestContext:
    """The state of one request: the queries, the passages found, and the parts of the response."""

    request: AgentRequest
    snapshot: IndexSnapshot
    timer: StageTimer
    history: tuple[Exchange, ...] = ()
    query: str = ""
    """The question; for a follow-up, its standalone form."""
    extra_queries: tuple[str, ...] = ()
    """Further texts to search for, so that a follow-up finds the topic of the conversation."""
    alternative: StandaloneQuestion | None = None
    """The reading with the topic of the conversation, if the book does not cover the question as it stands."""
    small_talk: SmallTalk | None = None
    cited_chunk_id: str = ""
    """The chunk of an earlier answer that the question refers to: "the second source"."""
    covered_by_request: bool = False
    """Whether the request itself names text of the book: the selected text, or a source shown before."""
    entries: frozenset[str] = frozenset()
    """The chunks that the question names as a whole: by their heading, or the front of the book."""
    certain: bool = False
    """Whether no other section can answer better than these."""
    rewrite_tokens: int = 0
    tokens_estimated: bool = False
    _unclear: bool = False
    retrieval: Retrieval | None = None
    evidence: Evidence | None = None
    found: tuple[RetrievalResult, ...] = ()
    nearest: tuple[RetrievalResult, ...] = ()
    """What was found before a threshold was applied, for the links of a refusal."""
    generation: GenerationResult | None = None
    proof: Proof | None = None
    first_token_ms: float = 0.0

    def __post_init__(self) -> None:
        self.query = self.request.query
        self.covered_by_request = bool(self.selection)
        self.small_talk = None if self.selection else find_small_talk(self.request.query)

    @property
    def selection(self) -> str:
        return self.request.selected_text.strip()

    @property
    def is_searchable(self) -> bool:
        """Whether there is anything to search for."""
        if self.small_talk:
            return False
        return bool(self.selection) or (not self._unclear and bool(self.snapshot.bm25.terms(self.query)))

    def use_standalone(self, question: StandaloneQuestion) -> None:
        """Search for the standalone question instead of the reader's words."""
        self.query, *others = question.every
        self.extra_queries, self._unclear = tuple(others), question.unclear
        self.alternative = question.alternative
        if question.source is not None:
            cited = next((exchange.chunk_ids for exchange in reversed(self.history) if exchange.sources), ())
            self.cited_chunk_id = cited[question.source - 1] if question.source <= len(cited) else ""
            self.covered_by_request = self.covered_by_request or (question.whole and bool(self.cited_chunk_id))

    def finish(
        self,
        outcome: Outcome,
        answer: str,
        *,
        model: str = MODEL,
        citations: tuple[Citation, ...] = (),
        suggestions: tuple[SectionLink, ...] = (),
        questions: tuple[str, ...] = (),
    ) -> AgentResponse:
        """Build the response."""
        return AgentResponse(
            answer=answer,
            outcome=outcome,
            citations=citations,
            sources=self.found if self.request.include_sources else (),
            model=model,
            tokens_used=self.rewrite_tokens + (self.generation.tokens_used if self.generation else 0),
            metadata=self._metadata(),
            suggestions=suggestions,
            questions=questions,
            retrieval_performed=self.retrieval is not None,
            retrieved_sources=tuple(result.url for result in self.found),
        )

    def finish_extractive(self, answer: ExtractiveAnswer) -> AgentResponse:
        """Build the response from the book's own words."""
        links = answer.see_also
        text = f"{answer.text}\n\nSee also:\n{format_links(links)}" if links else answer.text
        return self.finish(Outcome.ANSWERED, text, citations=answer.citations, suggestions=links)

    def refuse(self, near: tuple[SectionLink, ...]) -> AgentResponse:
        """Build a refusal with links to the nearest sections."""
        return self.finish(Outcome.REFUSED, format_refusal(self.request.query, near), suggestions=near)

    def _metadata(self) -> ResponseMetadata:
        retrieval, generation, proof = self.retrieval, self.generation, self.proof
        return ResponseMetadata(
            response_time_ms=self.timer.elapsed_ms(),
            index_generation=self.snapshot.name,
            embedding_time_ms=retrieval.embedding_time_ms if retrieval else 0.0,
            retrieval_time_ms=retrieval.retrieval_time_ms if retrieval else 0.0,
            reranking_time_ms=retrieval.reranking_time_ms if retrieval else 0.0,
            generation_time_ms=self.timer.duration_ms(Stage.GENERATING),
            proof_time_ms=self.timer.duration_ms(Stage.WEIGHING, Stage.PROVING),
            first_token_ms=self.first_token_ms or None,
            chunk_count=len(self.found),
            cache_hit=retrieval.context.cache_hit if retrieval else False,
            reading=retrieval.reading.budget.level if retrieval and retrieval.reading else ReadingLevel.NONE,
            searches=generation.searches if generation else 0,
            passages_left_out=generation.passages_left_out if generation else 0,
            exchanges_left_out=generation.exchanges_left_out if generation else 0,
            removed=tuple(f"{rejected.text} ({rejected.reason})" for rejected in proof.rejected) if proof else (),
            proof=proof.sentences if proof else (),
            coverage=self.evidence.confidence if self.evidence else None,
            proven=round(proof.share, 3) if proof else None,
            tokens_estimated=self.tokens_estimated or bool(generation and generation.tokens_estimated),
        )
