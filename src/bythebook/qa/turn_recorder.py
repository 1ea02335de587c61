"""Records the turn of a question in its conversation, from its beginning to its answer, failure or cancellation."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from bythebook.answers import AgentResponse
from bythebook.answers.extractive import MODEL
from bythebook.concurrency import spawn_background_task
from bythebook.conversations import Conversation, Conversations, ConversationTurn, Message, ToolCall
from bythebook.conversations.followups import Exchange
from bythebook.errors import BookError
from bythebook.llm.config import AgentConfig
from bythebook.llm.prompts import build_history, build_instructions
from bythebook.llm.search_tool import NAME as SEARCH_TOOL
from bythebook.qa.request import RequestContext, StageTimer
from bythebook.retrieval import RetrievalResult
from bythebook.serialization import to_json

_SHORTEST_SECONDS = 1e-6
_GRACE_SECONDS = 0.3
"""How long after the deadline a failed turn may still be written before the reader gets the error."""


@dataclass(frozen=True, slots=True)
class TurnContext:
    """The turn of a question and the history before it. A question without a session has neither."""

    history: tuple[Exchange, ...] = ()
    turn: ConversationTurn | None = None

    def attach_turn(self, response: AgentResponse) -> AgentResponse:
        """The response with its session and its turn number."""
        if self.turn is None:
            return response
        return replace(response, session_id=self.turn.conversation_id, turn_number=self.turn.number)


class TurnRecorder:
    """Writes one turn of a conversation.

    A database that does not respond cannot delay the reader: a write that takes too long continues in the background.
    """

    def __init__(self, conversations: Conversations, *, session_id: str, user_id: str, timer: StageTimer) -> None:
        self._conversations = conversations
        self._session_id = session_id
        self._user_id = user_id
        self._timer = timer
        self._turn: ConversationTurn | None = None

    async def begin(self, question: str, *, most_turns: int) -> TurnContext:
        """Begin the turn once the earlier turns of the conversation have ended."""
        beginning = spawn_background_task(
            self._conversations.begin_turn(self._session_id, question, user_id=self._user_id, most_turns=most_turns)
        )
        try:
            turn, conversation = await asyncio.shield(beginning)
        except asyncio.CancelledError:
            # Leave the queue of the conversation, however long the database takes for it.
            if not beginning.cancel() and not beginning.cancelled() and not beginning.exception():
                spawn_background_task(self._fail(beginning.result()[0], "cancelled"))
            raise
        self._turn = turn
        messages = ((message.role, message.content, message.citations) for message in conversation.window())
        return TurnContext(build_history(messages), turn)

    @asynccontextmanager
    async def record_failure(self) -> AsyncIterator[None]:
        """Record the turn as failed or cancelled if the block ends in an error."""
        try:
            yield
        except BaseException as error:
            if self._turn is not None:
                # This task may be cancelled because the reader left. The record is written all the same.
                writing = spawn_background_task(self._fail(self._turn, _error_code(error)))
                remaining = self._timer.deadline.after_first_token().left()
                await asyncio.wait([writing], timeout=remaining + _GRACE_SECONDS)
            raise

    async def record_answer(self, response: AgentResponse, context: RequestContext) -> None:
        """Record the answer, also if the reader leaves while it is written."""
        if self._turn is None:
            raise AssertionError("begin the turn before you record its answer")
        turn, messages = _complete(self._turn, response, context)
        await asyncio.shield(spawn_background_task(self._conversations.finish_turn(turn, messages)))

    async def _fail(self, turn: ConversationTurn, code: str) -> None:
        await self._conversations.finish_turn(turn.fail(code, duration_seconds=self._seconds()), [])

    def _seconds(self) -> float:
        return _elapsed_seconds(self._timer)


def new_conversation(config: AgentConfig, *, user_id: str) -> Conversation:
    """A conversation that begins with the instructions of the model."""
    from bythebook.llm.context_budget import count_tokens

    system = Message("system", build_instructions(config.system_prompt)).with_token_count(count_tokens)
    model = config.provider.model if config.provider else MODEL
    return Conversation([system], user_id=user_id, model=model, max_history=config.max_history)


async def record_first_turn(
    conversations: Conversations, config: AgentConfig, response: AgentResponse, context: RequestContext, *, user_id: str
) -> AgentResponse:
    """Store a new conversation with this answer as its first turn, and return the answer with its id."""
    conversation = new_conversation(config, user_id=user_id)
    response = replace(response, session_id=conversation.id)
    turn = ConversationTurn(conversation.id, 1, context.request.query)
    await conversations.record(conversation, *_complete(turn, response, context))
    return response


def _complete(
    turn: ConversationTurn, response: AgentResponse, context: RequestContext
) -> tuple[ConversationTurn, list[Message]]:
    """The completed turn and its messages: the question, the tool calls of the model, and the answer."""
    from bythebook.llm.context_budget import count_tokens

    record = to_json(replace(response, sources=()))
    completed = turn.complete(
        record,
        retrieval_results=context.found,
        duration_seconds=_elapsed_seconds(context.timer),
        standalone_question=context.query,
    )
    said = [Message("user", turn.question)]
    for call_id, arguments, answer in context.generation.tool_calls if context.generation else ():
        said.append(Message("assistant", "", tool_calls=(ToolCall(call_id, SEARCH_TOOL, arguments),)))
        said.append(Message("tool", answer, tool_call_id=call_id, name=SEARCH_TOOL))
    metadata = _display_metadata(response, context.found)
    said.append(Message("assistant", response.answer, citations=tuple(record["citations"]), metadata=metadata))
    return completed, [message.with_token_count(count_tokens) for message in said]


def _elapsed_seconds(timer: StageTimer) -> float:
    return max(timer.elapsed_ms() / 1000, _SHORTEST_SECONDS)


def _display_metadata(response: AgentResponse, found: Sequence[RetrievalResult]) -> dict[str, Any]:
    """What a page needs to show the answer again: the id for a rating, the section of each citation, and more."""
    cited = {citation.chunk_id for citation in response.citations}
    sections = {passage.chunk_id: list(passage.heading_hierarchy) for passage in found if passage.chunk_id in cited}
    shown: dict[str, Any] = {"response_id": response.id, "sections": sections}
    if response.metadata.removed:
        shown["removed"] = list(response.metadata.removed)
    # Questions that a page makes clickable, and links to other sections.
    return shown | {name: to_json(value) for name in ("questions", "suggestions") if (value := getattr(response, name))}


def _error_code(error: BaseException) -> str:
    if isinstance(error, BookError):
        return error.code
    return "cancelled" if isinstance(error, asyncio.CancelledError | GeneratorExit) else "error"
