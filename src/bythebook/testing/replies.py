"""What a scripted server is asked, and what it is told to reply."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping


class Fault(StrEnum):
    """A way in which a provider fails."""

    RATE_LIMIT = "429"
    SERVER_ERROR = "500"
    HANG = "hang"
    """Nothing more comes, and the connection stays open."""
    RESET = "reset"
    """The connection is reset."""
    HALF_CLOSE = "half-close"
    """The server closes its side in the middle of a message."""
    NO_FINISH_REASON = "no-finish-reason"
    """The message ends as it should, without having said that it is finished."""
    CUT_CHUNK = "cut-chunk"
    """The message ends as it should, in the middle of its JSON."""
    BAD_JSON = "bad-json"
    ERROR_IN_STREAM = "error-in-stream"
    """The status was 200; then an error comes in place of the rest."""
    DRIP = "drip"
    """A word now and then, the reply over and over, never an end."""
    NO_CHOICES = "no-choices"
    """A complete message that contains nothing."""


EVERYDAY_FAULTS = tuple(fault for fault in Fault if fault is not Fault.NO_CHOICES)
"""What goes wrong on ordinary days: what `Faults` draws from unless told otherwise."""


class Quirk(StrEnum):
    """A way in which a provider differs from OpenAI without failing."""

    NO_USAGE = "no-usage"
    NO_CALL_IDS = "no-call-ids"
    WHOLE_ARGUMENTS = "whole-arguments"
    """A tool call comes in one chunk."""
    EMPTY_FIRST_CHUNK = "empty-first-chunk"
    """A stream begins with a chunk that has no choices."""
    ROLE_IN_EVERY_CHUNK = "role-in-every-chunk"
    REJECTS_STREAM_OPTIONS = "rejects-stream-options"
    REJECTS_TOOLS = "rejects-tools"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The model wants a tool called."""

    name: str
    arguments: str
    """JSON as the model wrote it, which need not be valid."""


@dataclass(frozen=True, slots=True)
class Usage:
    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class Reply:
    """One reply, how fast it comes, and what goes wrong with it."""

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str = ""
    """Empty is what it should be: `tool_calls` if there are any, else `stop`."""
    usage: Usage | None = None
    """None counts words."""
    delay_first: float = 0.0
    """Seconds before anything is sent."""
    delay_token: float = 0.0
    """Seconds before each further word."""
    letters: int = 0
    """How many characters come at a time, as a model's tokens cut words anywhere. 0 is word by word."""
    fault: Fault | None = None
    fault_after: int = 0
    """How many pieces, of the text or of a tool call, come before the fault. None at all: not even the headers come
    before a hang, a reset or a half-close."""
    retry_after: str = ""
    """The Retry-After of a refusal, as it is to stand in the header."""
    status: int = 200
    """Anything of 400 or more refuses the request."""
    error_code: str = ""
    """What a refusal calls itself, `context_length_exceeded` for instance."""
    error_message: str = ""
    drip: float = 1.0
    """Seconds between the words of a drip."""

    def __post_init__(self) -> None:
        pauses = (self.delay_first, self.delay_token, self.drip)
        if any(pause < 0 or not math.isfinite(pause) for pause in pauses):
            raise ValueError("a delay is a number of seconds; use Fault.HANG for one that never ends")


@dataclass(frozen=True, slots=True)
class Request:
    """What a client sent to be completed."""

    body: Mapping[str, Any]
    headers: Mapping[str, str]
    """By lower-case name."""
    number: int
    """Counting from 1, in the order in which requests came."""

    @property
    def messages(self) -> Sequence[Mapping[str, Any]]:
        messages: Sequence[Mapping[str, Any]] = self.body.get("messages", [])
        return messages

    @property
    def streams(self) -> bool:
        return bool(self.body.get("stream"))

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of the tools on offer."""
        return tuple(tool.get("function", {}).get("name", "") for tool in self.body.get("tools") or [])


Script: TypeAlias = Reply | Sequence[Reply] | Callable[[Request], Reply]
"""What to reply: always the same, one after the other (the last is repeated), or as a function decides."""
