"""One message of a conversation, and what makes it a valid one."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from bythebook.conversations import dialects
from bythebook.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bythebook.conversations.dialects import ToolCall

Count: TypeAlias = Callable[[str], int]
"""How many tokens a text is, for the model that will read it."""

Record: TypeAlias = Mapping[str, Any]
"""Something of a later stage, as JSON has it. It stays as it was told, whatever that stage becomes."""

Dialect: TypeAlias = Literal["tools", "functions"]

ROLES = ("system", "user", "assistant", "tool")


def new_id() -> str:
    return str(uuid.uuid4())


def now() -> datetime:
    return datetime.now(UTC)


def is_storable(text: str) -> bool:
    """Whether every database can keep the text: PostgreSQL refuses NUL, and half a surrogate pair is no character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text


def in_utc(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise InputError(f"the time {moment.isoformat()} has no zone. Use datetime.now(UTC).")
    return moment.astimezone(UTC)


@dataclass(frozen=True, slots=True)
class Message:
    """Something that was said. A `function` message of the older dialect becomes the `tool` message it means."""

    role: str
    content: str
    """Empty only where an assistant calls tools instead of speaking."""
    id: str = field(default_factory=new_id)
    timestamp: datetime = field(default_factory=now)
    citations: tuple[Record, ...] = ()
    token_count: int = 0
    """0 means nobody counted yet; see `counted`."""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    """The call that a tool message answers."""
    name: str | None = None
    """The tool that answers, or who of several is speaking."""
    metadata: Record = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.role == "function":
            self._become_tool_message()
        for flaw in self._flaws():
            raise InputError(flaw)
        object.__setattr__(self, "timestamp", in_utc(self.timestamp))

    def _become_tool_message(self) -> None:
        if not self.name:
            raise InputError("a function message needs the name of the function that answers.")
        object.__setattr__(self, "role", "tool")
        object.__setattr__(self, "tool_call_id", self.tool_call_id or dialects.call_id(self.name))

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

    def counted(self, count: Count) -> Message:
        """This message with the tokens of everything in it that a model reads."""
        calls = sum(count(call.name) + count(call.arguments) for call in self.tool_calls)
        return replace(self, token_count=calls + (count(self.content) if self.content else 0))

    def to_api_format(self, dialect: Dialect = "tools") -> dict[str, Any]:
        """As the OpenAI chat API takes it. `functions` has room for one call in a message."""
        return dialects.write_tools(self) if dialect == "tools" else dialects.write_functions(self)

    @classmethod
    def from_api_format(cls, data: Mapping[str, Any]) -> Message:
        """The message that the OpenAI chat API sent or takes, in either dialect."""
        return cls(**dialects.read(data))
