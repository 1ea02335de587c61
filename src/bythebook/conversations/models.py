"""Messages, conversations and turns, with the rules that keep them valid."""

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from itertools import pairwise
from typing import Any, Literal, TypeAlias

from bythebook.conversations import openai_format
from bythebook.conversations.openai_format import ToolCall
from bythebook.errors import ContextOverflow, InputError
from bythebook.retrieval import RetrievalResult

Count: TypeAlias = Callable[[str], int]
"""Counts the tokens of a text for the model that will read it."""

Record: TypeAlias = Mapping[str, Any]
"""JSON data of a later stage, stored unchanged even if that stage's types change."""

Dialect: TypeAlias = Literal["tools", "functions"]

ROLES = ("system", "user", "assistant", "tool")


def new_id() -> str:
    return str(uuid.uuid4())


def utc_now() -> datetime:
    return datetime.now(UTC)


def is_storable(text: str) -> bool:
    """True if every database can store the text: PostgreSQL refuses NUL, and a lone surrogate cannot be encoded."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text


def to_utc(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise InputError(f"the time {moment.isoformat()} has no zone. Use datetime.now(UTC).")
    return moment.astimezone(UTC)


@dataclass(frozen=True, slots=True)
class Message:
    """One message. A `function` message of the older dialect becomes a `tool` message."""

    role: str
    content: str
    """May be empty only for an assistant message with tool calls."""
    id: str = field(default_factory=new_id)
    timestamp: datetime = field(default_factory=utc_now)
    citations: tuple[Record, ...] = ()
    token_count: int = 0
    """0 means not counted yet."""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    """The tool call that a tool message answers."""
    name: str | None = None
    """The name of the tool, or of one of several speakers."""
    metadata: Record = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.role == "function":
            self._become_tool_message()
        for flaw in self._flaws():
            raise InputError(flaw)
        object.__setattr__(self, "timestamp", to_utc(self.timestamp))

    def _become_tool_message(self) -> None:
        if not self.name:
            raise InputError("a function message needs the name of the function that answers.")
        object.__setattr__(self, "role", "tool")
        object.__setattr__(self, "tool_call_id", self.tool_call_id or openai_format.call_id(self.name))

    def _flaws(self) -> Iterator[str]:
        if self.role not in ROLES:
            yield f"role must be one of {', '.join(ROLES)}, not {self.role!r}."
        if self.tool_calls and self.role != "assistant":
            yield f"only an assistant calls tools, not a {self.role} message."
        if len({call.id for call in self.tool_calls}) < len(self.tool_calls):
            yield "two tool calls of a message have the same id."
        if not self.content.strip() and not self.tool_calls:
            yield f"a {self.role} message needs content."
        if self.role == "tool" and not self.tool_call_id:
            yield "a tool message needs the tool_call_id of the call it answers."
        if self.role != "tool" and self.tool_call_id is not None:
            yield f"only a tool message has a tool_call_id, not a {self.role} message."
        if self.token_count < 0:
            yield f"token_count must not be negative, but is {self.token_count}."
        if not is_storable(self.content):
            yield f"the content of a {self.role} message has NUL or half a surrogate pair in it, which is no text."

    def with_token_count(self, count: Count) -> "Message":
        """A copy with the token count of everything a model reads."""
        calls = sum(count(call.name) + count(call.arguments) for call in self.tool_calls)
        return replace(self, token_count=calls + (count(self.content) if self.content else 0))

    def to_api_format(self, dialect: Dialect = "tools") -> dict[str, Any]:
        """Export for the OpenAI chat API. `functions` allows one call in a message."""
        return openai_format.write_tools(self) if dialect == "tools" else openai_format.write_functions(self)

    @classmethod
    def from_api_format(cls, data: Mapping[str, Any]) -> "Message":
        """Import from the OpenAI chat API, in either dialect."""
        return cls(**openai_format.parse_message(data))


SEARCHES = frozenset({"search_docs", "retrieve_context"})
"""Names of the search tool."""

_MAY_FOLLOW = {
    "system": frozenset[str](),
    "user": frozenset({"system", "assistant"}),
    "assistant": frozenset({"user", "tool"}),
    "tool": frozenset({"assistant", "tool"}),
}


class ConversationStatus(StrEnum):
    """Created: no question yet. Active: a question is open. Completed: the latest question is answered."""

    CREATED = "created"
    ACTIVE = "active"
    COMPLETED = "completed"


@dataclass(slots=True)
class Conversation:
    """A system message, then alternating questions and answers with tool messages between, oldest first."""

    messages: list[Message] = field(default_factory=list)
    id: str = field(default_factory=new_id)
    user_id: str = ""
    """Empty for a single local user, as on the command line."""
    model: str = ""
    max_history: int = 20
    """How many messages the model sees, including the system message."""
    created_at: datetime = field(default_factory=utc_now)
    status: ConversationStatus = ConversationStatus.CREATED
    turn_count: int = 0
    """Counts cleared questions too; so does `retrieval_count`."""
    retrieval_count: int = 0
    total_tokens_used: int = 0
    """What the models were paid for its answers; `total_tokens` is the size of its texts."""

    def __post_init__(self) -> None:
        if not is_uuid4(self.id):
            raise InputError(f"a conversation's id must be a UUID4, not {self.id!r}.")
        if not 1 <= self.max_history <= 100:
            raise InputError(f"max_history must be from 1 to 100, not {self.max_history}.")
        if not is_storable(self.user_id):
            raise InputError("the user_id has NUL or half a surrogate pair in it, which is no text.")
        self.created_at = to_utc(self.created_at)
        self._take(self.messages)

    def _take(self, messages: Sequence[Message]) -> None:
        """Load existing messages. The counters may exceed them, because of cleared messages."""
        if any(later.timestamp < earlier.timestamp for earlier, later in pairwise(messages)):
            raise InputError("the messages of a conversation must be oldest first.")
        status, turns, searches = self.status, self.turn_count, self.retrieval_count
        self.messages, self.turn_count, self.retrieval_count = [], 0, 0
        for message in messages:
            self.add_message(message)
        self.turn_count = max(turns, self.turn_count)
        self.retrieval_count = max(searches, self.retrieval_count)
        if status is not ConversationStatus.CREATED:
            self.status = status

    @property
    def total_tokens(self) -> int:
        return sum(message.token_count for message in self.messages)

    @property
    def last_assistant_message(self) -> Message | None:
        """The latest answer. A message with tool calls is not an answer."""
        return next((m for m in reversed(self.messages) if m.role == "assistant" and m.content), None)

    def add_message(self, message: Message) -> None:
        """Append a message. Timestamps never decrease, even if the clocks of several servers disagree."""
        if flaw := self._order_error(message):
            raise InputError(flaw)
        # Several machines may serve one conversation, and one of their clocks may be slow.
        if self.messages and message.timestamp < self.messages[-1].timestamp:
            message = replace(message, timestamp=self.messages[-1].timestamp)
        self.messages.append(message)
        self.turn_count += message.role == "user"
        self.retrieval_count += count_searches([message])
        if message.role != "system":
            answered = message.role == "assistant" and not message.tool_calls
            self.status = ConversationStatus.COMPLETED if answered else ConversationStatus.ACTIVE

    def _order_error(self, message: Message) -> str | None:
        """Why the message is out of order; None if it is in order."""
        if not self.messages:
            wrong = message.role != "system"
            return f"a conversation starts with a system message, not a {message.role} message." if wrong else None
        last = self.messages[-1].role
        if last not in _MAY_FOLLOW[message.role]:
            return f"a {message.role} message cannot follow a {last} message: user and assistant take turns."
        waiting = self._unanswered_calls()
        if message.role == "tool":
            known = message.tool_call_id in waiting
            return None if known else f"no tool call {message.tool_call_id!r} waits for an answer."
        return f"the tool calls {', '.join(sorted(waiting))} must be answered first." if waiting else None

    def _unanswered_calls(self) -> set[str]:
        answered = set[str | None]()
        for message in reversed(self.messages):
            if message.role != "tool":
                return {call.id for call in message.tool_calls} - answered
            answered.add(message.tool_call_id)
        return set()

    def _exchanges(self) -> list[list[Message]]:
        """The messages after the system message, split before each question."""
        parted: list[list[Message]] = []
        for message in self.messages[1:]:
            if message.role == "user":
                parted.append([])
            parted[-1].append(message)
        return parted

    def window(self) -> list[Message]:
        """The messages the model sees: the system message and the newest whole exchanges, at most `max_history`
        messages.

        The newest exchange is always included, however long it is.
        """
        shown: list[Message] = []
        for exchange in reversed(self._exchanges()):
            if shown and 1 + len(exchange) + len(shown) > self.max_history:
                break
            shown = exchange + shown
        return self.messages[:1] + shown

    def to_openai_messages(self, dialect: Dialect = "tools") -> list[dict[str, Any]]:
        """The window in the format of the OpenAI chat API."""
        shown: Iterable[Message] = self.window()
        if dialect == "functions":
            shown = openai_format.split_tool_calls(shown)
        return [message.to_api_format(dialect) for message in shown]

    @classmethod
    def from_openai_messages(cls, messages: Iterable[Mapping[str, Any]]) -> "Conversation":
        """A new conversation from messages of the OpenAI chat API, in either dialect."""
        conversation = cls()
        for message in messages:
            conversation.add_message(Message.from_api_format(message))
        return conversation

    def trim_to_budget(self, tokens: int) -> list[Message]:
        """Drop the oldest whole exchanges until at most `tokens` remain, and return the dropped messages.

        The system message and the newest exchange are never dropped: if they alone exceed the budget, nothing changes
        and `ContextOverflow` is raised.
        """
        uncounted = next((message for message in self.messages if not message.token_count), None)
        if uncounted:
            raise InputError(f"the tokens of the {uncounted.role} message {uncounted.id} were never counted.")
        exchanges, excess, dropped = self._exchanges(), self.total_tokens - tokens, list[Message]()
        while excess > 0 and len(exchanges) > 1:
            oldest = exchanges.pop(0)
            excess -= sum(message.token_count for message in oldest)
            dropped += oldest
        if excess > 0:
            least = tokens + excess
            raise ContextOverflow(
                f"the last question needs {least} tokens with its instructions; {tokens} are allowed."
            )
        self.messages[1:] = [message for exchange in exchanges for message in exchange]
        return dropped

    def clear(self) -> None:
        """Remove all messages except the system message. The id and the counters stay."""
        del self.messages[1:]
        if self.status is not ConversationStatus.CREATED:
            self.status = ConversationStatus.ACTIVE


def count_searches(messages: Iterable[Message]) -> int:
    """Count the tool calls that searched the book."""
    return sum(message.role == "tool" and message.name in SEARCHES for message in messages)


def is_uuid4(text: str) -> bool:
    """True for a UUID4 in canonical form; a database would treat other spellings as different ids."""
    try:
        known = uuid.UUID(text)
    except ValueError:
        return False
    return known.version == 4 and str(known) == text


class TurnState(StrEnum):
    """Running, then one of the final states. Interrupted: the process that was answering has died."""

    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class ConversationTurn:
    """One question of a conversation with its result. Numbers start at 1 and have no gaps."""

    conversation_id: str
    number: int
    question: str
    standalone_question: str = ""
    """The rewritten question that was searched for."""
    retrieval_results: tuple[RetrievalResult, ...] = ()
    response: Record | None = None
    """The AgentResponse as JSON, once the turn is completed."""
    state: TurnState = TurnState.RUNNING
    error: str = ""
    """The error code of a failed turn."""
    created_at: datetime = field(default_factory=utc_now)
    duration_seconds: float | None = None
    """Time until completion or failure; unknown for an interrupted turn."""
    id: str = field(default_factory=new_id)

    def __post_init__(self) -> None:
        for flaw in self._flaws():
            raise InputError(flaw)
        object.__setattr__(self, "created_at", to_utc(self.created_at))

    def _flaws(self) -> Iterator[str]:
        if self.number < 1:
            yield f"turns are numbered from 1, not {self.number}."
        if not self.question.strip():
            yield "the question of a turn is empty."
        if not is_storable(self.question) or not is_storable(self.standalone_question):
            yield "the question has NUL or half a surrogate pair in it, which is no text."
        if self.duration_seconds is not None and not self.duration_seconds > 0:
            yield f"duration_seconds must be greater than 0, not {self.duration_seconds}."
        if self.state in {TurnState.COMPLETED, TurnState.FAILED} and self.duration_seconds is None:
            yield f"a {self.state} turn needs its duration_seconds."
        if (self.state is TurnState.COMPLETED) != (self.response is not None):
            yield "a completed turn has a response, and no other has one."
        if self.response and self.response.get("grounded") and not self.retrieval_results:
            yield "nothing was retrieved, so the response must say that the book has no information, not be grounded."

    def complete(
        self,
        response: Record,
        *,
        retrieval_results: Sequence[RetrievalResult],
        duration_seconds: float,
        standalone_question: str = "",
    ) -> "ConversationTurn":
        """A completed copy of this turn."""
        return replace(
            self,
            state=TurnState.COMPLETED,
            response=response,
            retrieval_results=tuple(retrieval_results),
            standalone_question=standalone_question or self.standalone_question,
            duration_seconds=duration_seconds,
        )

    def fail(self, error: str, *, duration_seconds: float) -> "ConversationTurn":
        """A failed copy of this turn, with the error code."""
        return replace(self, state=TurnState.FAILED, error=error, duration_seconds=duration_seconds)
