"""Memory: a question's place in its conversation, from the moment it is asked until the answer is kept."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from bythebook.errors import BookError, InputError
from bythebook.serialization import as_json

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine, Sequence

    from bythebook.answers import AgentResponse
    from bythebook.conversations import Conversation, Conversations, ConversationTurn, Message
    from bythebook.conversations.followups import Exchange
    from bythebook.retrieval import RetrievalResult
    from bythebook.upstream.deadline import Deadline

T = TypeVar("T")

_SHORTEST = 1e-6
_GRACE = 0.3
"""The seconds past the deadline in which a failed turn may still be written down before its reader is told."""
_GOING_ON: set[asyncio.Task[Any]] = set()


@dataclass(slots=True)
class Memory:
    """What came before a question, and what becomes of it: without a session nothing, both times."""

    history: tuple[Exchange, ...] = ()
    turn: ConversationTurn | None = None
    standalone: str = ""
    found: tuple[RetrievalResult, ...] = ()
    response: AgentResponse | None = None

    def placed(self, response: AgentResponse) -> AgentResponse:
        """The response with its place in the conversation."""
        if self.turn is None:
            self.response = response
        else:
            self.response = replace(response, session_id=self.turn.conversation_id, turn_number=self.turn.number)
        return self.response


class Notes:
    """Writes down what becomes of a question in its conversation: its answer, or that it failed or was given up.

    A database that has stopped answering cannot hold up whoever waits: what is being written is then left to end by
    itself.
    """

    def __init__(self, conversations: Conversations, session_id: str, user_id: str) -> None:
        self._conversations = conversations
        self._session_id = session_id
        self._user_id = user_id
        self._started = time.perf_counter()

    async def begin(self, question: str, *, most_turns: int) -> Memory:
        """Begin the turn, after those before it in the same conversation."""
        beginning = by_itself(self._conversations.begin_turn(self._session_id, question, user_id=self._user_id))
        try:
            turn, conversation = await asyncio.shield(beginning)
        except asyncio.CancelledError:
            # It gives up its place in the conversation, however long the database takes over that.
            if not beginning.cancel() and not beginning.cancelled() and not beginning.exception():
                by_itself(self._fail(beginning.result()[0], "cancelled"))
            raise
        if turn.number > most_turns:
            await self._fail(turn, InputError.code)
            raise InputError(f"this conversation has had its {most_turns} turns. Start a new one.")
        return Memory(history=exchanges(conversation), turn=turn)

    @asynccontextmanager
    async def failing(self, memory: Memory, *, deadline: Deadline) -> AsyncIterator[None]:
        """Keep that the turn has failed, or that its reader has left, if that is how the block ends."""
        try:
            yield
        except BaseException as error:
            if memory.turn is not None:
                # The reader may be gone and this task cancelled; the record of it is written all the same.
                writing = by_itself(self._fail(memory.turn, _why(error)))
                await asyncio.wait([writing], timeout=deadline.begun().left() + _GRACE)
            raise

    async def keep(self, memory: Memory) -> None:
        """Keep the answer, also when its reader leaves meanwhile."""
        await asyncio.shield(by_itself(self._complete(memory)))

    async def _fail(self, turn: ConversationTurn, code: str) -> None:
        await self._conversations.finish_turn(turn.failed(code, duration_seconds=self._seconds()), [])

    async def _complete(self, memory: Memory) -> None:
        from bythebook.conversations import Message
        from bythebook.llm.context_budget import count

        turn, response = memory.turn, memory.response
        if turn is None or response is None:
            raise AssertionError("a turn that has ended well was begun and has its answer")
        record = as_json(replace(response, sources=()))
        completed = turn.completed(
            record,
            retrieval_results=memory.found,
            duration_seconds=self._seconds(),
            standalone_question=memory.standalone,
        )
        question = Message("user", turn.question).counted(count)
        answer = Message(
            "assistant", response.answer, citations=tuple(record["citations"]), metadata=_beside(response, memory.found)
        ).counted(count)
        await self._conversations.finish_turn(completed, [question, answer])

    def _seconds(self) -> float:
        return max(time.perf_counter() - self._started, _SHORTEST)


def _beside(response: AgentResponse, found: Sequence[RetrievalResult]) -> dict[str, Any]:
    """What a reader who comes back needs beside the words: what to rate, and the section of each citation."""
    cited = {citation.chunk_id for citation in response.citations}
    sections = {passage.chunk_id: list(passage.heading_hierarchy) for passage in found if passage.chunk_id in cited}
    return {"response_id": response.id, "sections": sections}


def _why(error: BaseException) -> str:
    if isinstance(error, BookError):
        return error.code
    return "cancelled" if isinstance(error, asyncio.CancelledError | GeneratorExit) else "error"


def by_itself(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """A task that goes on to its end, whether or not anybody waits for it."""
    task = asyncio.create_task(work)
    _GOING_ON.add(task)
    task.add_done_callback(_ended)
    return task


def _ended(task: asyncio.Task[Any]) -> None:
    _GOING_ON.discard(task)
    if not task.cancelled():
        # Seen here, so that a failure nobody waits for any more is no warning at the end of the program.
        task.exception()


def exchanges(conversation: Conversation) -> tuple[Exchange, ...]:
    """The questions and answers of the conversation, oldest first."""
    from bythebook.conversations.followups import Exchange

    found: list[Exchange] = []
    asked = ""
    for message in conversation.window():
        if message.role == "user":
            asked = message.content
        elif message.role == "assistant" and message.content and asked:
            found.append(Exchange(asked, message.content, _cited(message, "title"), _cited(message, "chunk_id")))
            asked = ""
    return tuple(found)


def _cited(message: Message, name: str) -> tuple[str, ...]:
    return tuple(str(citation.get(name, "")) for citation in message.citations)
