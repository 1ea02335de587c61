"""Memory: a question's place in its conversation, from the moment it is asked until the answer is kept."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bythebook.errors import BookError, InputError
from bythebook.wire import as_json

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from bythebook.answers import AgentResponse
    from bythebook.conversations import Conversation, Conversations, ConversationTurn, Message
    from bythebook.conversations.followups import Exchange
    from bythebook.passages import RetrievalResult

_SHORTEST = 1e-6


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


@asynccontextmanager
async def remembering(
    conversations: Conversations | None, session_id: str | None, question: str, *, user_id: str, most_turns: int
) -> AsyncIterator[Memory]:
    """Begin a turn, and keep how it ends: with its answer, as failed, or as given up by the reader."""
    if conversations is None or session_id is None:
        yield Memory()
        return
    started = time.perf_counter()
    turn, conversation = await conversations.begin_turn(session_id, question, user_id=user_id)
    memory = Memory(history=exchanges(conversation), turn=turn)
    try:
        if turn.number > most_turns:
            raise InputError(f"this conversation has had its {most_turns} turns. Start a new one.")
        yield memory
    except BaseException as error:
        code = error.code if isinstance(error, BookError) else "cancelled" if _left(error) else "error"
        ended = turn.failed(code, duration_seconds=_since(started))
        # The reader may be gone and this task cancelled; the record of it is written all the same.
        await asyncio.shield(conversations.finish_turn(ended, []))
        raise
    if memory.response is not None:
        await asyncio.shield(_keep(conversations, turn, memory, started))


def _left(error: BaseException) -> bool:
    return isinstance(error, asyncio.CancelledError | GeneratorExit)


def _since(started: float) -> float:
    return max(time.perf_counter() - started, _SHORTEST)


async def _keep(conversations: Conversations, turn: ConversationTurn, memory: Memory, started: float) -> None:
    from bythebook.answers.budget import count
    from bythebook.conversations import Message

    response = memory.response
    if response is None:
        return
    record = as_json(replace(response, sources=()))
    completed = turn.completed(
        record,
        retrieval_results=memory.found,
        duration_seconds=_since(started),
        standalone_question=memory.standalone,
    )
    question = Message("user", turn.question).counted(count)
    answer = Message("assistant", response.answer, citations=tuple(record["citations"])).counted(count)
    await conversations.finish_turn(completed, [question, answer])


def exchanges(conversation: Conversation) -> tuple[Exchange, ...]:
    """The questions and answers of the conversation, oldest first."""
    from bythebook.conversations.followups import Exchange

    found: list[Exchange] = []
    asked = ""
    for message in conversation.window():
        if message.role == "user":
            asked = message.content
        elif message.role == "assistant" and message.content and asked:
            found.append(Exchange(asked, message.content, _titles(message)))
            asked = ""
    return tuple(found)


def _titles(message: Message) -> tuple[str, ...]:
    return tuple(str(citation.get("title", "")) for citation in message.citations)
