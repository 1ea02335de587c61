"""The course of one request: its stages, the time it has for them, what it has found and what becomes of it."""

from __future__ import annotations

import time
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from bythebook.answers import AgentResponse, Outcome, ResponseMetadata
from bythebook.answers.extractive import MODEL, Quote, cite, nearest_sections, refusal
from bythebook.concurrency import turn
from bythebook.errors import BookError
from bythebook.telemetry import span

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from bythebook.answers import AgentRequest
    from bythebook.answers.verification import Proof
    from bythebook.conversations.followups import Standalone
    from bythebook.index.provider import Edition
    from bythebook.llm.generator import Spoken
    from bythebook.qa.turn_recorder import Memory
    from bythebook.retrieval import Citation, RetrievalResult
    from bythebook.retrieval.evidence import Evidence
    from bythebook.retrieval.retriever import Retrieved
    from bythebook.upstream.deadline import Deadline


class Stage(StrEnum):
    """What a request is doing. An error says in which of these it happened."""

    OPENING = "opening the book"
    WAITING = "waiting for an earlier question"
    UNDERSTANDING = "understanding the question"
    EMBEDDING = "embedding"
    SEARCHING = "searching"
    WEIGHING = "weighing"
    GENERATING = "generating"
    PROVING = "proving"
    REMEMBERING = "remembering"


_BEFORE_THE_FIRST_TOKEN = (Stage.OPENING, Stage.UNDERSTANDING, Stage.EMBEDDING, Stage.SEARCHING)
_LONG = (Stage.SEARCHING, Stage.WEIGHING, Stage.PROVING)
"""What keeps the event loop to itself for a while."""


class Pace:
    """How far a request has come and how long it still has: the one place where a stage begins and ends."""

    def __init__(self, deadline: Deadline) -> None:
        self.deadline = deadline
        self._started = time.perf_counter()

    def elapsed_ms(self) -> float:
        return (time.perf_counter() - self._started) * 1000

    @asynccontextmanager
    async def within(self, stage: str) -> AsyncIterator[None]:
        """A stage that is ended, with an error that names it, when its time is over.

        What is read, searched or waited for in a thread is then left behind and runs on by itself: a thread cannot be
        stopped, but nobody has to wait for it.
        """
        deadline = self.deadline if stage in _BEFORE_THE_FIRST_TOKEN else self.deadline.begun()
        with self.entered(stage):
            async with deadline.bounding(stage):
                if stage in _LONG:
                    await turn()
                yield

    @contextmanager
    def entered(self, stage: str) -> Iterator[None]:
        """A stage, whoever ends it. Every one passes through here, and its errors leave with its name."""
        try:
            with span(stage):
                yield
        except BookError as error:
            error.stage = error.stage or stage
            raise


@dataclass(slots=True)
class Course:
    """One request on its way: where it looks, how long it may take, what it has found and what that has cost."""

    request: AgentRequest
    edition: Edition
    memory: Memory
    pace: Pace
    query: str = ""
    also: tuple[str, ...] = ()
    """What else to search for, so that a follow-up finds what the conversation is about."""
    pointed_at: str = ""
    """The chunk of an earlier answer that the question points at: "the second source"."""
    certainly_covered: bool = False
    """Whether what is asked for is known to be in the book: the marked text, or a source shown before."""
    understanding_tokens: int = 0
    _unclear: bool = False
    retrieved: Retrieved | None = None
    evidence: Evidence | None = None
    found: tuple[RetrievalResult, ...] = ()
    spoken: Spoken | None = None
    proof: Proof | None = None
    proof_ms: float = 0.0
    generation_ms: float = 0.0
    first_token_ms: float = 0.0

    def __post_init__(self) -> None:
        self.query = self.request.query
        self.certainly_covered = bool(self.selection)

    def take(self, understood: Standalone) -> None:
        """Look for what was understood in place of the question's own words."""
        self.query, *others = understood.every
        self.also, self._unclear = tuple(others), understood.unclear
        if understood.source is not None:
            cited = next((exchange.chunk_ids for exchange in reversed(self.memory.history) if exchange.sources), ())
            self.pointed_at = cited[understood.source - 1] if understood.source <= len(cited) else ""
            self.certainly_covered = self.certainly_covered or (understood.whole and bool(self.pointed_at))

    @property
    def clear(self) -> bool:
        """Whether there is anything to look for."""
        return bool(self.selection) or (not self._unclear and bool(self.edition.words.terms(self.query)))

    @property
    def selection(self) -> str:
        return self.request.selected_text.strip()

    def query_for_model(self) -> str:
        """The question as the reader put it; the marked text stands among the passages."""
        return self.request.query

    def conclude(
        self,
        outcome: Outcome,
        answer: str,
        *,
        model: str = MODEL,
        citations: tuple[Citation, ...] = (),
        suggestions: tuple[str, ...] = (),
    ) -> None:
        """Settle the response."""
        self.memory.standalone, self.memory.found = self.query, self.found
        self.memory.placed(
            AgentResponse(
                answer=answer,
                outcome=outcome,
                citations=citations,
                sources=self.found if self.request.include_sources else (),
                model=model,
                tokens_used=self.understanding_tokens + (self.spoken.tokens_used if self.spoken else 0),
                metadata=self._metadata(),
                suggestions=suggestions,
            )
        )

    def conclude_with(self, quotes: list[Quote]) -> None:
        """Answer with the book's own sentences, or refuse when there are none."""
        if quotes:
            answer, citations = cite(quotes)
            self.conclude(Outcome.ANSWERED, answer, citations=citations)
        else:
            suggestions = nearest_sections(self.found)
            self.conclude(Outcome.REFUSED, refusal(self.request.query, suggestions), suggestions=suggestions)

    def _metadata(self) -> ResponseMetadata:
        retrieved, spoken, proof = self.retrieved, self.spoken, self.proof
        return ResponseMetadata(
            response_time_ms=self.pace.elapsed_ms(),
            index_generation=self.edition.name,
            embedding_time_ms=retrieved.embedding_time_ms if retrieved else 0.0,
            retrieval_time_ms=retrieved.retrieval_time_ms if retrieved else 0.0,
            generation_time_ms=self.generation_ms,
            proof_time_ms=self.proof_ms,
            first_token_ms=self.first_token_ms or None,
            chunk_count=len(self.found),
            cache_hit=retrieved.context.cache_hit if retrieved else False,
            searches=spoken.searches if spoken else 0,
            passages_left_out=spoken.passages_left_out if spoken else 0,
            exchanges_left_out=spoken.exchanges_left_out if spoken else 0,
            removed=tuple(f"{gone.text} ({gone.reason})" for gone in proof.doubted) if proof else (),
            proof=proof.sentences if proof else (),
            confidence=self.evidence.confidence if self.evidence else None,
        )
