"""Conversations: messages, turns and the port that stores them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from bythebook.conversations.models import (
    Conversation,
    ConversationStatus,
    ConversationTurn,
    Count,
    Dialect,
    Message,
    Record,
    TurnState,
)
from bythebook.conversations.openai_format import ToolCall

__all__ = [
    "Conversation",
    "ConversationStatus",
    "ConversationSummary",
    "ConversationTurn",
    "Conversations",
    "Count",
    "Dialect",
    "Message",
    "Record",
    "ToolCall",
    "TurnState",
]


MOST_TURNS = 1_000_000
"""The limit of turns for a caller that sets none."""


@dataclass(frozen=True, slots=True)
class ConversationSummary:
    """One row in a list of conversations."""

    id: str
    title: str
    """The first question on one line; empty before the first question."""
    created_at: datetime
    updated_at: datetime
    turn_count: int


class Conversations(Protocol):
    """Stores conversations completely and without a time limit.

    It does not trim the history for a model. A conversation of another user is `NotFound`, exactly like one that does
    not exist.
    """

    async def create(self, conversation: Conversation) -> None:
        """Store a new conversation with its initial messages."""
        ...

    async def load(self, conversation_id: str, *, user_id: str) -> Conversation:
        """Load the messages since the last reset. A question without an answer is not included."""
        ...

    async def turns(self, conversation_id: str, *, user_id: str) -> list[ConversationTurn]:
        """All turns, oldest first, including failed and interrupted turns and turns before a reset."""
        ...

    async def latest(self, *, user_id: str, limit: int, after: str = "") -> list[ConversationSummary]:
        """The user's latest conversations, newest first; with `after`, those that follow the one with this id."""
        ...

    async def begin_turn(
        self, conversation_id: str, question: str, *, user_id: str, most_turns: int = MOST_TURNS
    ) -> tuple[ConversationTurn, Conversation]:
        """Start a turn, and return it with the conversation as the model will see it.

        Raises `ContextOverflow` if the conversation has `most_turns` completed turns since its last reset.

        A conversation has one running turn at a time. This call waits for earlier turns in order of arrival, and raises
        `Unavailable` when they take too long. The caller must finish the turn; a turn whose process has died is marked
        interrupted and blocks nothing.
        """
        ...

    async def finish_turn(self, turn: ConversationTurn, messages: Sequence[Message]) -> None:
        """Store the result of a turn in one transaction.

        A completed turn adds its messages, from the question to the answer; a failed turn adds none. A turn that is no
        longer running, because its lease expired, raises `Unavailable` and changes nothing.
        """
        ...

    async def record(self, conversation: Conversation, turn: ConversationTurn, messages: Sequence[Message]) -> None:
        """Store a new conversation together with its first, completed turn, in one transaction."""
        ...

    async def reset(self, conversation_id: str, *, user_id: str) -> None:
        """Reset the conversation after its running turn: later loads return only the system message."""
        ...

    async def delete(self, conversation_id: str, *, user_id: str) -> None:
        """Delete the conversation with its turns and messages immediately."""
        ...

    async def expire(self, before: datetime) -> int:
        """Delete the conversations of all users that had no activity since `before`, and return their number."""
        ...
