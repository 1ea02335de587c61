"""Ask: from a question to events to an answer that is proven, refused or asked back, and remembered."""

from __future__ import annotations

import time
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from bythebook.answers import LONGEST_QUERY, AgentResponse, Outcome, ResponseMetadata
from bythebook.answers.events import Answered, Entered, Said, Searched, State
from bythebook.answers.extractive import MODEL, Quote, cite, extract
from bythebook.answers.refusal import CLARIFY, nearest_sections, refusal
from bythebook.memory import remembering
from bythebook.passages.evidence import glance, weigh
from bythebook.passages.selection import selected
from bythebook.upstream.deadline import Deadline

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence
    from contextlib import AbstractAsyncContextManager

    from bythebook.answers import AgentRequest
    from bythebook.answers.agent import Speaker
    from bythebook.answers.config import AgentConfig
    from bythebook.answers.events import Event
    from bythebook.answers.proof import Proof
    from bythebook.answers.spoken import Spoken
    from bythebook.answers.tool import SearchArguments
    from bythebook.conversations import Conversations
    from bythebook.gaps.notebook import Notebook
    from bythebook.memory import Memory
    from bythebook.passages import Citation, Filters, RetrievalResult
    from bythebook.passages.evidence import Evidence
    from bythebook.passages.retriever import Retrieved, Retriever
    from bythebook.passages.shelf import Edition, Shelf
    from bythebook.vectors import Embedder


@dataclass(slots=True)
class _Course:
    """One request on its way: where it looks, how long it may take, what it has found and what that has cost."""

    request: AgentRequest
    edition: Edition
    memory: Memory
    deadline: Deadline
    started: float = field(default_factory=time.perf_counter)
    query: str = ""
    also: tuple[str, ...] = ()
    """What else to search for, so that a follow-up finds what the conversation is about."""
    retrieved: Retrieved | None = None
    evidence: Evidence | None = None
    found: tuple[RetrievalResult, ...] = ()
    spoken: Spoken | None = None
    proof: Proof | None = None
    proof_ms: float = 0.0
    generation_ms: float = 0.0
    first_token_ms: float = 0.0

    def since_start(self) -> float:
        return (time.perf_counter() - self.started) * 1000

    def understand(self) -> bool:
        """Make the question stand alone. Says whether there is anything in it to look for."""
        self.query, unclear = self.request.query, False
        if self.memory.history:
            from bythebook.conversations.followups.rule import standalone

            understood = standalone(self.request.query, self.memory.history)
            self.query, unclear = understood.text, understood.unclear
            self.also = tuple(text for text in understood.searches if text != self.query)
        self.memory.standalone = self.query
        return not unclear and bool(self.edition.words.terms(self.query))

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
        self.memory.found = self.found
        self.memory.placed(
            AgentResponse(
                answer=answer,
                outcome=outcome,
                citations=citations,
                sources=self.found if self.request.include_sources else (),
                model=model,
                tokens_used=self.spoken.tokens_used if self.spoken else 0,
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
            response_time_ms=self.since_start(),
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
            confidence=self.evidence.confidence if self.evidence else None,
        )


@dataclass(frozen=True, slots=True)
class Asker:
    """Answers questions from the book on the shelf: by itself, or through a speaker that has a model."""

    shelf: Shelf
    embedder: Embedder
    retriever: Retriever
    config: AgentConfig
    speaker: Speaker | None = None
    conversations: Conversations | None = None
    notebook: Notebook | None = None

    async def ask(self, request: AgentRequest, *, user_id: str = "") -> AgentResponse:
        """The answer, once it is whole."""
        async with aclosing(self.stream(request, user_id=user_id)) as events:
            async for event in events:
                if isinstance(event, Answered):
                    return event.response
        raise AssertionError("a stream ends with an answer or an error")

    async def stream(self, request: AgentRequest, *, user_id: str = "") -> AsyncGenerator[Event]:
        """What happens on the way to the answer, which is the last event and is kept before it is given."""
        yield Entered(State.RECEIVED)
        deadline = Deadline.after(self.config.answer_seconds, first_token=self.config.first_token_seconds)
        yield Entered(State.VALIDATING)
        async with self.shelf.edition() as edition, self._remembering(request, user_id) as memory:
            course = _Course(request, edition, memory, deadline)
            async with aclosing(self._answer(course)) as events:
                async for event in events:
                    yield event
        yield Entered(State.COMPLETED)
        if memory.response is None:
            raise AssertionError("every course ends with a response")
        if self.notebook is not None:
            self.notebook.note(memory.response, memory.standalone, memory.found, user_id=user_id)
        yield Answered(memory.response)

    def _remembering(self, request: AgentRequest, user_id: str) -> AbstractAsyncContextManager[Memory]:
        return remembering(
            self.conversations,
            request.session_id,
            request.query,
            user_id=user_id,
            most_turns=self.config.max_conversation_turns,
        )

    async def _answer(self, course: _Course) -> AsyncGenerator[Event]:
        clear = course.understand()
        if not course.request.selected_text.strip() and not clear:
            course.conclude(Outcome.CLARIFY, CLARIFY)
            return
        yield Entered(State.RETRIEVING)
        await self._look_up(course)
        yield Searched(course.found)
        speaker = self.speaker
        if speaker is None or not self._obviously_covers(course):
            quotes = await self._quotes(course)
            if quotes and speaker is None:
                yield Entered(State.GENERATING)
            if not quotes or speaker is None:
                course.conclude_with(quotes)
                return
        async with aclosing(self._speak(course, speaker)) as events:
            async for event in events:
                yield event

    async def _look_up(self, course: _Course) -> None:
        """Find the passages, the marked text first."""
        request = course.request
        selection = request.selected_text.strip()
        query = f"{course.query} {selection}"[:LONGEST_QUERY] if selection else course.query
        top_k = request.top_k or self.config.retrieval_top_k
        retrieved = await self._retrieve(course, query, top_k, request.filters, also=course.also)
        if selection:
            from bythebook.answers.budget import count

            marked = selected(selection, tokens=count(selection), near=retrieved.context.results)
            others = retrieved.context.results if request.selection_mode == "boost" else ()
            placed = (marked, *(replace(r, position=p) for p, r in enumerate(others, start=2)))
            retrieved = replace(retrieved, context=replace(retrieved.context, results=placed))
        course.retrieved, course.found = retrieved, retrieved.context.results

    async def _retrieve(
        self, course: _Course, query: str, top_k: int, filters: Filters, *, also: tuple[str, ...] = ()
    ) -> Retrieved:
        bounding = course.deadline.bounding
        return await self.retriever.retrieve(
            course.edition, query, top_k=top_k, filters=filters, also=also, within=bounding
        )

    def _obviously_covers(self, course: _Course) -> bool:
        """Whether passages and words alone are enough, so that a model can be asked without reading them closely."""
        if course.retrieved is None:
            return False
        before = time.perf_counter()
        course.evidence = glance(course.edition, course.retrieved)
        course.proof_ms += (time.perf_counter() - before) * 1000
        return bool(course.evidence.units) and self._covers(course, course.evidence)

    async def _quotes(self, course: _Course) -> list[Quote]:
        """What the book itself would say, nothing when it does not cover the question."""
        if course.retrieved is None:
            return []
        before = time.perf_counter()
        async with course.deadline.begun().bounding("weighing"):
            course.evidence = await weigh(course.edition, self.embedder, course.retrieved)
        course.proof_ms += (time.perf_counter() - before) * 1000
        covered = self._covers(course, course.evidence)
        return extract(course.evidence.units, course.edition.words) if covered else []

    def _covers(self, course: _Course, evidence: Evidence) -> bool:
        """Whether there is enough to answer from: by the calibrated rule, or by the reader's own least cosine."""
        if course.request.selected_text.strip():
            return True
        if self.config.retrieval_threshold == "auto":
            return evidence.confidence >= course.edition.calibration.cutoff
        return evidence.features.passage_cosine >= self.config.retrieval_threshold

    async def _speak(self, course: _Course, speaker: Speaker) -> AsyncGenerator[Event]:
        """Answer in a model's words, each of its sentences proven, or with the book's own if none can be."""
        from bythebook.answers.spoken import Began, Spoken
        from bythebook.answers.streaming import Preview
        from bythebook.upstream.calls import unheard

        before = time.perf_counter()
        spoken = Spoken()
        preview = Preview(course.found)
        words = speaker.speak(
            course.query_for_model(),
            course.found,
            history=course.memory.history,
            search=lambda wanted: self._search(course, wanted),
            deadline=course.deadline,
            report=unheard,
        )
        async with aclosing(words) as heard:
            async for word in heard:
                if isinstance(word, Began):
                    preview = Preview(course.found)
                    yield Entered(State.GENERATING)
                elif isinstance(word, Spoken):
                    spoken = word
                elif visible := preview.feed(word):
                    course.first_token_ms = course.first_token_ms or course.since_start()
                    yield Said(visible)
        course.generation_ms = (time.perf_counter() - before) * 1000
        await self._prove(course, spoken, speaker.model)

    async def _search(self, course: _Course, wanted: SearchArguments) -> Sequence[RetrievalResult]:
        """A search the model asked for, within what the reader has asked for."""
        filters = course.request.filters or wanted.filters
        found = (await self._retrieve(course, wanted.query, wanted.top_k, filters)).context.results
        return [result for result in found if result.score >= wanted.threshold]

    async def _prove(self, course: _Course, spoken: Spoken, model: str) -> None:
        from bythebook.answers.proof import prove

        before = time.perf_counter()
        course.found = tuple(spoken.shown.results) or course.found
        async with course.deadline.begun().bounding("proof"):
            proof = await prove(
                spoken.text,
                course.found,
                edition=course.edition,
                embedder=self.embedder,
                unsupported=self.config.unsupported,
            )
        course.proof_ms += (time.perf_counter() - before) * 1000
        course.spoken, course.proof = spoken, proof
        if proof.citations:
            course.conclude(Outcome.ANSWERED, proof.text, citations=proof.citations, model=model)
        else:
            course.conclude_with(await self._quotes(course))
