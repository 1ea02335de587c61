"""Conversations: what was asked and answered before, and the place it is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from bythebook.conversations.models import (
    Conversation,
    ConversationTurn,
    Count,
    Dialect,
    Message,
    Record,
    Status,
    TurnState,
)
from bythebook.conversations.openai_format import ToolCall

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

__all__ = [
    "Conversation",
    "ConversationSummary",
    "ConversationTurn",
    "Conversations",
    "Count",
    "Dialect",
    "Message",
    "Record",
    "Status",
    "ToolCall",
    "TurnState",
]


@dataclass(frozen=True, slots=True)
class ConversationSummary:
    """A conversation in a list of them."""

    id: str
    title: str
    """Its first question, on one line; empty when nothing was asked yet."""
    created_at: datetime
    updated_at: datetime
    turn_count: int


class Conversations(Protocol):
    """Where conversations are kept, whole, for as long as they are wanted.

    It does not trim what a model is shown. Another reader's conversation is as absent as one that never was: both are
    `NotFound`.
    """

    async def create(self, conversation: Conversation) -> None:
        """Keep a new conversation with the messages it starts with."""
        ...

    async def load(self, conversation_id: str, *, user_id: str) -> Conversation:
        """The conversation since it was last reset. A question without an answer is not in it."""
        ...

    async def turns(self, conversation_id: str, *, user_id: str) -> list[ConversationTurn]:
        """Every turn there was, oldest first, also failed and interrupted ones and those before a reset."""
        ...

    async def latest(self, *, user_id: str, limit: int) -> list[ConversationSummary]:
        """The reader's `limit` latest conversations, the latest first."""
        ...

    async def begin_turn(
        self, conversation_id: str, question: str, *, user_id: str
    ) -> tuple[ConversationTurn, Conversation]:
        """Note that the question is being answered, and give its turn and the conversation as a model is shown it.

        A conversation has one running turn: this waits for those before it, in the order they came, and is
        `Unavailable` when they take too long. Whoever begins a turn finishes it; one whose owner is gone is found
        interrupted and holds nobody up.
        """
        ...

    async def finish_turn(self, turn: ConversationTurn, messages: Sequence[Message]) -> None:
        """Keep how a turn ended, all of it or nothing.

        A completed turn brings its messages, from the question to the answer; a failed one brings none. A turn that is
        no longer running, because its time ran out and others went on, is `Unavailable` and changes nothing.
        """
        ...

    async def reset(self, conversation_id: str, *, user_id: str) -> None:
        """Start the conversation afresh after its running turn: only the system message is loaded from now on."""
        ...

    async def delete(self, conversation_id: str, *, user_id: str) -> None:
        """Forget the conversation with everything in it, at once."""
        ...

    async def expire(self, before: datetime) -> int:
        """Forget the conversations nothing happened in since then, whoever's they are, and say how many."""
        ...
