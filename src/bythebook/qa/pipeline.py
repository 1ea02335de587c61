"""Ask: from a question to events to an answer that is proven, refused or asked back, and remembered."""

from __future__ import annotations

import time
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bythebook.answers import LONGEST_QUERY, Outcome
from bythebook.answers.events import Answered, Entered, Said, Searched, State
from bythebook.answers.extractive import CLARIFY, extract
from bythebook.concurrency import turn
from bythebook.qa.instrumentation import witnessed
from bythebook.qa.request import Course, Pace, Stage
from bythebook.qa.turn_recorder import Memory, Notes
from bythebook.retrieval.evidence import weigh, weigh_until
from bythebook.retrieval.selection import put_first, selected
from bythebook.upstream.deadline import Deadline, now

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Sequence

    from bythebook.answers import AgentRequest, AgentResponse
    from bythebook.answers.events import Event
    from bythebook.answers.extractive import Quote
    from bythebook.conversations import Conversations
    from bythebook.conversations.followups import Exchange, Standalone
    from bythebook.embeddings import Embedder
    from bythebook.feedback.answer_log import Notebook
    from bythebook.index import Filters
    from bythebook.index.provider import Edition, Shelf
    from bythebook.llm.config import AgentConfig
    from bythebook.llm.generator import Speaker, Spoken
    from bythebook.llm.search_tool import SearchArguments
    from bythebook.retrieval import RetrievalResult
    from bythebook.retrieval.evidence import Evidence
    from bythebook.retrieval.retriever import Retrieved, Retriever

_SHARE_OF_UNDERSTANDING = 0.3
"""How much of the time to the first word a model may take to make a follow-up stand alone."""


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

    async def ask(self, request: AgentRequest, *, user_id: str = "", history: Sequence[Exchange] = ()) -> AgentResponse:
        """The answer, once it is whole."""
        async with aclosing(self.stream(request, user_id=user_id, history=history)) as events:
            async for event in events:
                if isinstance(event, Answered):
                    return event.response
        raise AssertionError("a stream ends with an answer or an error")

    def stream(
        self, request: AgentRequest, *, user_id: str = "", history: Sequence[Exchange] = ()
    ) -> AsyncGenerator[Event]:
        """What happens on the way to the answer, which is the last event and is kept before it is given.

        `history` is for callers who keep the conversation themselves; one with a session has its own.
        """
        return witnessed(request, self._stream(request, user_id, history))

    async def _stream(self, request: AgentRequest, user_id: str, history: Sequence[Exchange]) -> AsyncGenerator[Event]:
        yield Entered(State.RECEIVED)
        pace = Pace(Deadline.after(self.config.answer_seconds, first_token=self.config.first_token_seconds))
        yield Entered(State.VALIDATING)
        async with self._opened(pace) as edition, self._remembering(request, user_id, pace) as memory:
            memory.history = memory.history or tuple(history)
            course = Course(request, edition, memory, pace)
            async with aclosing(self._answer(course)) as events:
                async for event in events:
                    yield event
        yield Entered(State.COMPLETED)
        if memory.response is None:
            raise AssertionError("every course ends with a response")
        if self.notebook is not None:
            self.notebook.note(memory.response, memory.standalone, memory.found, user_id=user_id)
        yield Answered(memory.response)

    @asynccontextmanager
    async def _opened(self, pace: Pace) -> AsyncIterator[Edition]:
        async with AsyncExitStack() as stack:
            async with pace.within(Stage.OPENING):
                edition = await stack.enter_async_context(self.shelf.edition())
            yield edition

    @asynccontextmanager
    async def _remembering(self, request: AgentRequest, user_id: str, pace: Pace) -> AsyncIterator[Memory]:
        """The question's place in its conversation. A question without a session leaves nothing behind."""
        if self.conversations is None or request.session_id is None:
            yield Memory()
            return
        notes = Notes(self.conversations, request.session_id, user_id)
        before = now()
        async with pace.within(Stage.WAITING):
            memory = await notes.begin(request.query, most_turns=self.config.max_conversation_turns)
        # A question that had to wait for another one has not lost its own time to the first word.
        pace.deadline = pace.deadline.delayed(now() - before)
        async with notes.failing(memory, deadline=pace.deadline):
            yield memory
        async with pace.within(Stage.REMEMBERING):
            await notes.keep(memory)

    async def _answer(self, course: Course) -> AsyncGenerator[Event]:
        if course.memory.history:
            course.take(await self._understand(course))
        if not course.clear:
            course.conclude(Outcome.CLARIFY, CLARIFY)
            return
        yield Entered(State.RETRIEVING)
        await self._look_up(course)
        yield Searched(course.found)
        speaker = self.speaker
        if speaker is None:
            quotes = await self._quotes(course)
            if quotes:
                yield Entered(State.GENERATING)
            course.conclude_with(quotes)
            return
        if not await self._is_covered(course):
            course.conclude_with([])
            return
        async with aclosing(self._speak(course, speaker)) as events:
            async for event in events:
                yield event

    async def _understand(self, course: Course) -> Standalone:
        """What the question asks after those before it: in the model's words where there is one, else by a rule."""
        from bythebook.conversations.followups.rules import standalone

        question, history = course.request.query, course.memory.history
        understood = standalone(question, history)
        clear = understood.unclear or understood.source or not understood.depends
        if self.speaker is None or self.config.followups == "rule" or clear:
            return understood
        async with course.pace.within(Stage.UNDERSTANDING):
            deadline = course.pace.deadline.part(_SHARE_OF_UNDERSTANDING)
            understood, course.understanding_tokens = await self.speaker.restate(question, history, deadline=deadline)
        return understood

    async def _look_up(self, course: Course) -> None:
        """Find the passages; first of all the marked text, or the source that was pointed at."""
        request, selection = course.request, course.selection
        query = f"{course.query} {selection}"[:LONGEST_QUERY] if selection else course.query
        top_k = request.top_k or self.config.retrieval_top_k
        retrieved = await self._retrieve(course, query, top_k, request.filters, also=course.also)
        if selection:
            from bythebook.llm.context_budget import count

            marked = selected(selection, tokens=count(selection), near=retrieved.context.results)
            others = retrieved.context.results if request.selection_mode == "boost" else ()
            placed = (marked, *(replace(r, position=p) for p, r in enumerate(others, start=2)))
            retrieved = replace(retrieved, context=replace(retrieved.context, results=placed))
        elif course.pointed_at and not request.filters:
            async with course.pace.within(Stage.SEARCHING):
                retrieved = await put_first(course.edition, course.pointed_at, retrieved)
        course.retrieved, course.found = retrieved, retrieved.context.results

    async def _retrieve(
        self, course: Course, query: str, top_k: int, filters: Filters, *, also: tuple[str, ...] = ()
    ) -> Retrieved:
        within = course.pace.within
        return await self.retriever.retrieve(
            course.edition, query, top_k=top_k, filters=filters, also=also, within=within
        )

    async def _is_covered(self, course: Course) -> bool:
        """Whether a model should be asked: passages and words mostly tell, and then nothing is read closely."""
        if course.retrieved is None:
            return False
        # By the reader's own threshold a glance decides; what that is sure of needs no reading.
        by_rule = self.config.retrieval_threshold == "auto" and not course.certainly_covered
        before = time.perf_counter()
        async with course.pace.within(Stage.WEIGHING):
            sure = course.edition.calibration.cutoff if by_rule else 0.0
            course.evidence = await weigh_until(course.edition, self.embedder, course.retrieved, sure=sure)
        course.proof_ms += (time.perf_counter() - before) * 1000
        return bool(course.evidence.units) and self._covers(course, course.evidence)

    async def _quotes(self, course: Course) -> list[Quote]:
        """What the book itself would say, nothing when it does not cover the question."""
        if course.retrieved is None:
            return []
        before = time.perf_counter()
        async with course.pace.within(Stage.WEIGHING):
            course.evidence = await weigh(course.edition, self.embedder, course.retrieved)
        course.proof_ms += (time.perf_counter() - before) * 1000
        covered = self._covers(course, course.evidence)
        return extract(course.evidence.units, course.edition.words) if covered else []

    def _covers(self, course: Course, evidence: Evidence) -> bool:
        """Whether there is enough to answer from: by the calibrated rule, or by the reader's own least cosine."""
        if course.certainly_covered:
            return True
        if self.config.retrieval_threshold == "auto":
            return evidence.confidence >= course.edition.calibration.cutoff
        found = course.retrieved.context.results if course.retrieved else ()
        return max((result.score for result in found), default=0.0) >= self.config.retrieval_threshold

    async def _speak(self, course: Course, speaker: Speaker) -> AsyncGenerator[Event]:
        """Answer in a model's words, each of its sentences proven, or with the book's own if none can be."""
        from bythebook.answers.preview import Preview
        from bythebook.llm.client import Began
        from bythebook.llm.generator import Spoken
        from bythebook.upstream.client import unheard

        before = time.perf_counter()
        spoken = Spoken()
        preview = Preview(course.found, instructions=speaker.instructions)
        words = speaker.speak(
            course.query_for_model(),
            course.found,
            history=course.memory.history,
            search=lambda wanted: self._search(course, wanted),
            deadline=course.pace.deadline,
            report=unheard,
        )
        # Each word has its own time: the call to the model keeps to the deadline by itself.
        with course.pace.entered(Stage.GENERATING):
            await turn()
            async with aclosing(words) as heard:
                async for word in heard:
                    if isinstance(word, Began):
                        preview = Preview(course.found, instructions=speaker.instructions)
                        yield Entered(State.GENERATING)
                    elif isinstance(word, Spoken):
                        spoken = word
                    elif visible := preview.feed(word):
                        course.first_token_ms = course.first_token_ms or course.pace.elapsed_ms()
                        yield Said(visible)
        course.generation_ms = (time.perf_counter() - before) * 1000
        await self._prove(course, spoken, speaker)

    async def _search(self, course: Course, wanted: SearchArguments) -> Sequence[RetrievalResult]:
        """A search the model asked for, within what the reader has asked for."""
        filters = course.request.filters or wanted.filters
        found = (await self._retrieve(course, wanted.query, wanted.top_k, filters)).context.results
        return [result for result in found if result.score >= wanted.threshold]

    async def _prove(self, course: Course, spoken: Spoken, speaker: Speaker) -> None:
        from bythebook.answers.prompt_leak import kept_secret
        from bythebook.answers.verification import prove

        before = time.perf_counter()
        course.found = tuple(spoken.shown.results) or course.found
        async with course.pace.within(Stage.PROVING):
            proof = await prove(
                kept_secret(spoken.text, speaker.instructions, [result.text for result in course.found]),
                course.found,
                edition=course.edition,
                embedder=self.embedder,
                unsupported=self.config.unsupported,
            )
        course.proof_ms += (time.perf_counter() - before) * 1000
        course.spoken, course.proof = spoken, proof
        if proof.citations:
            course.conclude(Outcome.ANSWERED, proof.text, citations=proof.citations, model=speaker.model)
        else:
            course.conclude_with(await self._quotes(course))
