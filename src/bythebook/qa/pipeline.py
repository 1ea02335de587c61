"""The answer pipeline: from a question to an answer that is verified, a refusal, or a question back to the reader."""

from __future__ import annotations

from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bythebook.answers import (
    LONGEST_QUERY,
    AgentRequest,
    AgentResponse,
    AnswerCompleted,
    Event,
    Outcome,
    SourcesFound,
    State,
    StateChanged,
    TextDelta,
)
from bythebook.answers.extractive import AnswerReader, ExtractiveAnswer, compose_answer, find_near
from bythebook.answers.refusal import CLARIFY
from bythebook.concurrency import fair_yield
from bythebook.errors import BookError, DeadlineExceeded, Unavailable
from bythebook.llm import GenerationResult, GenerationStarted
from bythebook.qa.instrumentation import instrument
from bythebook.qa.request import RequestContext, Stage, StageTimer
from bythebook.qa.turn_recorder import TurnContext, TurnRecorder, record_first_turn
from bythebook.retrieval.entries import look_up, put_first
from bythebook.retrieval.evidence import Evidence, score_evidence
from bythebook.retrieval.retriever import Retrieval, Retriever, pin_chunk, selection_result
from bythebook.telemetry import log
from bythebook.upstream.deadline import Deadline

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence

    from bythebook.conversations import Conversations
    from bythebook.conversations.followups import Exchange, StandaloneQuestion
    from bythebook.embeddings import Embedder
    from bythebook.feedback.answer_log import AnswerLog
    from bythebook.index import Filters
    from bythebook.index.provider import IndexProvider, IndexSnapshot
    from bythebook.llm.config import AgentConfig
    from bythebook.llm.generator import AnswerGenerator
    from bythebook.llm.search_tool import SearchArguments
    from bythebook.models.cross_encoder import CrossEncoder
    from bythebook.retrieval import RetrievalResult

_REWRITE_SHARE = 0.3
"""The share of the time to the first token that a model may use to rewrite a follow-up."""


async def no_generator() -> AnswerGenerator | None:
    """For a pipeline without a model."""
    return None


async def no_questions() -> tuple[str, ...]:
    """For a pipeline that suggests no questions."""
    return ()


async def no_entailment() -> CrossEncoder | None:
    """For a pipeline without the entailment model."""
    return None


async def no_conversations() -> Conversations | None:
    """For a pipeline that records no conversations."""
    return None


async def read_answer(events: AsyncGenerator[Event]) -> AgentResponse:
    """The answer at the end of a stream."""
    async with aclosing(events):
        async for event in events:
            if isinstance(event, AnswerCompleted):
                return event.response
    raise AssertionError("a stream ends with an answer or an error")


@dataclass(frozen=True, slots=True)
class AnswerPipeline:
    """Answers questions from the index, in the book's own sentences or with a model. Built once for each book."""

    index_provider: IndexProvider
    embedder: Embedder
    retriever: Retriever
    config: AgentConfig
    open_generator: Callable[[], Awaitable[AnswerGenerator | None]] = no_generator
    """Opens the model for the first question that needs it; importing its client takes seconds."""
    open_entailment: Callable[[], Awaitable[CrossEncoder | None]] = no_entailment
    """Opens the model that proves the sentences of a model. Quoted answers do not need it."""
    open_conversations: Callable[[], Awaitable[Conversations | None]] = no_conversations
    """Opens the database for the first question that is stored."""
    answer_log: AnswerLog | None = None
    suggest_questions: Callable[[], Awaitable[tuple[str, ...]]] = no_questions
    """Questions that the book answers, for the reply to small talk."""

    async def ask(self, request: AgentRequest, *, user_id: str = "", history: Sequence[Exchange] = ()) -> AgentResponse:
        """The answer, without the events before it."""
        return await read_answer(self.stream(request, user_id=user_id, history=history))

    async def stream(
        self, request: AgentRequest, *, user_id: str = "", history: Sequence[Exchange] = (), system_prompt: str = ""
    ) -> AsyncGenerator[Event]:
        """Yield the events of a question. The last one is AnswerCompleted; the answer is recorded before it.

        `history` is for callers that keep the conversation themselves; the history of a session has priority.
        """
        # Every word of a model passes this generator. Steps below it return values, so that it remains the only one.
        generator = await self.open_generator()
        generator = generator.with_system_prompt(system_prompt) if generator and system_prompt else generator
        conversations = await self.open_conversations() if request.session_id is not None else None
        timer = StageTimer(Deadline.after(self.config.answer_seconds, first_token=self.config.first_token_seconds))
        with instrument(request, timer) as observe:
            yield observe(StateChanged(State.RECEIVED))
            yield observe(StateChanged(State.VALIDATING))
            async with self._open_snapshot(timer) as snapshot:
                recorder = _recorder(conversations, request, user_id, timer)
                async with _begin_turn(request, recorder, timer, self.config) as turn:
                    context = RequestContext(request, snapshot, timer, turn.history or tuple(history))
                    await self._resolve_followup(context, generator)
                    if not context.is_searchable:
                        response = await self._ask_back(context)
                    else:
                        yield observe(StateChanged(State.RETRIEVING))
                        await self._retrieve_passages(context)
                        yield observe(SourcesFound(context.found))
                        if generator is None:
                            answer = await self._extract_answer(context)
                            if answer:
                                yield observe(StateChanged(State.GENERATING))
                            response = await self._finish_extractive(context, answer)
                        elif not await self._covers_question(context):
                            response = await self._finish_extractive(context, None)
                        else:
                            draft = _Draft(context, generator)
                            # The call to the model has its own limit: each word is due at another time.
                            with timer.measure(Stage.GENERATING):
                                await fair_yield()
                                async with aclosing(self._generate(context, generator)) as parts:
                                    async for part in parts:
                                        if event := draft.add(part):
                                            yield observe(event)
                            response = await self._verify(context, draft.result, generator)
                    response = turn.attach_turn(response)
                if not context.first_token_ms:
                    # Every answer is streamed, also one that is complete at once.
                    yield observe(TextDelta(response.answer))
                response = await self._record(response, context, recorder, user_id)
            yield observe(StateChanged(State.COMPLETED))
            if self.answer_log is not None:
                # Small talk is no question: it may be rated, but is never a gap.
                question = "" if context.small_talk else context.query
                self.answer_log.record(response, question, context.found, user_id=user_id)
            yield observe(AnswerCompleted(response))

    @asynccontextmanager
    async def _open_snapshot(self, timer: StageTimer) -> AsyncIterator[IndexSnapshot]:
        async with AsyncExitStack() as stack:
            async with timer.limit(Stage.OPENING):
                snapshot = await stack.enter_async_context(self.index_provider.snapshot())
            yield snapshot

    async def _record(
        self, response: AgentResponse, context: RequestContext, recorder: TurnRecorder | None, user_id: str
    ) -> AgentResponse:
        """Store the answer, in its session or as the first turn of a new one.

        If the database fails, the reader gets the first answer without a session.
        """
        try:
            async with context.timer.limit(Stage.REMEMBERING):
                if recorder is not None:
                    await recorder.record_answer(response, context)
                    return response
                if not context.request.store:
                    return response
                conversations = await self.open_conversations()
                if conversations is None:
                    return response
                return await record_first_turn(conversations, self.config, response, context, user_id=user_id)
        except (DeadlineExceeded, Unavailable) as error:
            if recorder is not None:
                raise
            log("session_not_stored", error=error.code)
            return response

    async def _resolve_followup(self, context: RequestContext, generator: AnswerGenerator | None) -> None:
        """Rewrite a follow-up as a standalone question: with the model if there is one, else by a rule."""
        if not context.history or context.small_talk:
            return
        from bythebook.conversations.followups.rules import make_standalone

        question = context.request.query
        standalone = make_standalone(question, context.history)
        resolved = standalone.unclear or standalone.source or not standalone.depends
        if generator is not None and self.config.followups != "rule" and not resolved:
            async with context.timer.limit(Stage.UNDERSTANDING):
                answered = [exchange for exchange in context.history if exchange.answered]
                standalone, context.rewrite_tokens, context.tokens_estimated = await generator.rewrite_question(
                    question, answered, deadline=context.timer.deadline.fraction(_REWRITE_SHARE)
                )
        context.use_standalone(standalone)

    async def _ask_back(self, context: RequestContext) -> AgentResponse:
        """A question back; for small talk, a friendly line with questions that the book answers."""
        if context.small_talk is None:
            return context.finish(Outcome.CLARIFY, CLARIFY)
        # Checking that the book answers them may take longer than the reader waits.
        questions: tuple[str, ...] = ()
        with suppress(BookError):
            async with context.timer.limit(Stage.SEARCHING):
                questions = await self.suggest_questions()
        return context.finish(Outcome.CLARIFY, context.small_talk.reply(questions), questions=questions)

    async def _retrieve_passages(self, context: RequestContext) -> None:
        """Search for the question. The selected text, or the source the question refers to, comes first."""
        request, selection = context.request, context.selection
        query = f"{context.query} {selection}"[:LONGEST_QUERY] if selection else context.query
        top_k = request.top_k or self.config.retrieval_top_k
        retrieval = await self._retrieve(context, query, top_k, request.filters, also=context.extra_queries)
        if selection:
            from bythebook.llm.context_budget import count_tokens

            found = retrieval.context.results
            selected = selection_result(selection, tokens=count_tokens(selection), near=found)
            others = found if request.selection_mode == "boost" else ()
            results = (selected, *(replace(r, position=p) for p, r in enumerate(others, start=2)))
            retrieval = replace(retrieval, context=replace(retrieval.context, results=results))
        elif context.cited_chunk_id and not request.filters:
            async with context.timer.limit(Stage.SEARCHING):
                retrieval = await pin_chunk(context.snapshot, context.cited_chunk_id, retrieval)
        elif not request.filters and (entries := await look_up(context.snapshot, context.query)).results:
            retrieval = put_first(entries.results, retrieval)
            if entries.covered:
                context.entries = frozenset(entry.chunk_id for entry in entries.results)
                context.certain = entries.certain
        context.retrieval = retrieval
        if context.alternative and not await self._covers_question(context):
            await self._try_alternative(context, context.alternative, top_k)
        context.found = context.retrieval.context.results

    async def _try_alternative(self, context: RequestContext, other: StandaloneQuestion, top_k: int) -> None:
        """Read the question with the subject of the conversation. This counts only if the book covers that."""
        alone = context.query, context.extra_queries, context.retrieval
        context.use_standalone(other)
        context.retrieval = await self._retrieve(
            context, context.query, top_k, context.request.filters, also=context.extra_queries
        )
        if not await self._covers_question(context):
            context.query, context.extra_queries, context.retrieval = alone

    async def _retrieve(
        self, context: RequestContext, query: str, top_k: int, filters: Filters, *, also: tuple[str, ...] = ()
    ) -> Retrieval:
        found = await self.retriever.retrieve(
            context.snapshot, query, top_k=top_k, filters=filters, extra_queries=also, stage_timeout=context.timer.limit
        )
        context.nearest = found.context.results
        threshold = self.config.retrieval_threshold
        return found if threshold == "auto" else replace(found, context=found.context.drop_below(threshold))

    async def _covers_question(self, context: RequestContext) -> bool:
        """Whether the book covers the question. Passages are scored only until the answer to this is certain."""
        if context.retrieval is None:
            return False
        # With a threshold of the reader's own, the lexical score decides and nothing is embedded.
        by_rule = self.config.retrieval_threshold == "auto" and not (context.covered_by_request or context.entries)
        async with context.timer.limit(Stage.WEIGHING):
            sure = context.snapshot.calibration.cutoff if by_rule else 0.0
            context.evidence = await score_evidence(context.snapshot, self.embedder, context.retrieval, sure=sure)
        return bool(context.evidence.spans) and self._covers(context, context.evidence)

    async def _extract_answer(self, context: RequestContext) -> ExtractiveAnswer | None:
        """The block of the book that answers the question. None if the book does not cover it."""
        if not await self._covers_question(context):
            return None
        async with context.timer.limit(Stage.WEIGHING):
            return await compose_answer(_answer_reader(context), context.found)

    async def _finish_extractive(self, context: RequestContext, answer: ExtractiveAnswer | None) -> AgentResponse:
        """The response with the book's own words, or a refusal with links to the nearest sections."""
        if answer is not None:
            return context.finish_extractive(answer)
        async with context.timer.limit(Stage.WEIGHING):
            return context.refuse(find_near(_answer_reader(context), context.found or context.nearest))

    def _covers(self, context: RequestContext, evidence: Evidence) -> bool:
        """Whether the evidence is enough for an answer: by the calibrated rule, or by the configured cosine."""
        if context.covered_by_request or context.entries:
            return True
        if self.config.retrieval_threshold == "auto":
            return evidence.confidence >= context.snapshot.calibration.cutoff
        found = context.retrieval.context.results if context.retrieval else ()
        return max((result.score for result in found), default=0.0) >= self.config.retrieval_threshold

    def _generate(
        self, context: RequestContext, generator: AnswerGenerator
    ) -> AsyncGenerator[GenerationStarted | str | GenerationResult]:
        async def search(wanted: SearchArguments) -> Sequence[RetrievalResult]:
            """A search of the model. The filters of the reader have priority over those of the model."""
            filters = context.request.filters or wanted.filters
            found = (await self._retrieve(context, wanted.query, wanted.top_k, filters)).context.results
            return [result for result in found if result.score >= wanted.threshold]

        # The model gets the reader's own words; selected text is one of the passages.
        return generator.generate(
            context.request.query,
            context.found,
            history=context.history,
            search=search,
            deadline=context.timer.deadline,
        )

    async def _verify(
        self, context: RequestContext, generation: GenerationResult, generator: AnswerGenerator
    ) -> AgentResponse:
        """Keep the sentences that a passage proves. If there are none, or the model declined, refuse the question."""
        from bythebook.answers.prompt_leak import remove_prompt_leaks
        from bythebook.answers.verification import prove

        context.generation = generation
        context.found = tuple(generation.passages.results) or context.found
        if not generation.text.strip():
            # A model that only searched, or called a tool that does not exist, has claimed and declined nothing.
            return await self._finish_extractive(context, await self._extract_answer(context))
        async with context.timer.limit(Stage.PROVING):
            context.proof = await prove(
                remove_prompt_leaks(generation.text, generator.instructions, [result.text for result in context.found]),
                context.found,
                snapshot=context.snapshot,
                entailment=await self.open_entailment(),
                unsupported=self.config.unsupported,
                cut_off=generation.finish_reason == "length",
            )
        if not context.proof.citations:
            return await self._finish_extractive(context, None)
        return context.finish(
            Outcome.ANSWERED, context.proof.text, citations=context.proof.citations, model=generator.model
        )


def _answer_reader(context: RequestContext) -> AnswerReader:
    reading = context.retrieval.reading if context.retrieval else None
    return AnswerReader(context.query, context.snapshot, reading, context.entries, context.certain)


class _Draft:
    """The answer while a model generates it: the events for the reader, and the result at the end."""

    def __init__(self, context: RequestContext, generator: AnswerGenerator) -> None:
        self.result = GenerationResult()
        self._context = context
        self._instructions = generator.instructions
        self._restart()

    def add(self, part: GenerationStarted | str | GenerationResult) -> Event | None:
        """The event for this part of the generation, if the reader gets one."""
        if isinstance(part, GenerationStarted):
            self._restart()
            return StateChanged(State.GENERATING)
        if isinstance(part, GenerationResult):
            self.result = part
            return None
        visible = self._preview.feed(part)
        if not visible:
            return None
        self._context.first_token_ms = self._context.first_token_ms or self._context.timer.elapsed_ms()
        return TextDelta(visible)

    def _restart(self) -> None:
        from bythebook.answers.sanitizer import AnswerPreview

        self._preview = AnswerPreview(self._context.found, instructions=self._instructions)


def _recorder(
    conversations: Conversations | None, request: AgentRequest, user_id: str, timer: StageTimer
) -> TurnRecorder | None:
    """The recorder of the turn of a question in an existing session."""
    if conversations is None or request.session_id is None:
        return None
    return TurnRecorder(conversations, session_id=request.session_id, user_id=user_id, timer=timer)


@asynccontextmanager
async def _begin_turn(
    request: AgentRequest, recorder: TurnRecorder | None, timer: StageTimer, config: AgentConfig
) -> AsyncIterator[TurnContext]:
    """The question's turn in its conversation. It is recorded as failed if the block ends in an error."""
    if recorder is None:
        yield TurnContext()
        return
    async with timer.limit_queueing(Stage.WAITING):
        turn = await recorder.begin(request.query, most_turns=config.max_conversation_turns)
    async with recorder.record_failure():
        yield turn
