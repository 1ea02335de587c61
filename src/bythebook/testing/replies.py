"""Requests, scripted replies and faults of `ScriptedServer`."""

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, TypeAlias


class Fault(StrEnum):
    """A failure of a provider."""

    RATE_LIMIT = "429"
    SERVER_ERROR = "500"
    HANG = "hang"
    """No more data, and the connection stays open."""
    RESET = "reset"
    """The connection is reset."""
    HALF_CLOSE = "half-close"
    """The server closes its side in the middle of a message."""
    NO_FINISH_REASON = "no-finish-reason"
    """The message ends regularly, but without a finish reason."""
    CUT_CHUNK = "cut-chunk"
    """The message ends regularly, in the middle of its JSON."""
    BAD_JSON = "bad-json"
    ERROR_IN_STREAM = "error-in-stream"
    """The status is 200; an error replaces the rest of the message."""
    DRIP = "drip"
    """The reply is repeated slowly, word by word, and never ends."""
    NO_CHOICES = "no-choices"
    """A complete message without choices."""


DEFAULT_FAULTS = tuple(fault for fault in Fault if fault is not Fault.NO_CHOICES)
"""The faults that `Faults` injects by default."""


class Quirk(StrEnum):
    """A difference from OpenAI that is not a failure."""

    NO_USAGE = "no-usage"
    NO_CALL_IDS = "no-call-ids"
    WHOLE_ARGUMENTS = "whole-arguments"
    """A tool call is sent in one chunk."""
    EMPTY_FIRST_CHUNK = "empty-first-chunk"
    """A stream begins with a chunk that has no choices."""
    ROLE_IN_EVERY_CHUNK = "role-in-every-chunk"
    REJECTS_STREAM_OPTIONS = "rejects-stream-options"
    REJECTS_TOOLS = "rejects-tools"


@dataclass(frozen=True, slots=True)
class ScriptedToolCall:
    """A tool call of the model."""

    name: str
    arguments: str
    """JSON as written by the model. It may be invalid."""


@dataclass(frozen=True, slots=True)
class ScriptedUsage:
    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class ScriptedReply:
    """One reply with its delays and its fault."""

    text: str = ""
    tool_calls: tuple[ScriptedToolCall, ...] = ()
    finish_reason: str = ""
    """Empty: `tool_calls` if there are any, else `stop`."""
    usage: ScriptedUsage | None = None
    """None: the words are counted."""
    delay_first: float = 0.0
    """Seconds before the first byte."""
    delay_token: float = 0.0
    """Seconds before each further word."""
    letters: int = 0
    """The number of characters per chunk, to split words as tokens do. 0: one word per chunk."""
    fault: Fault | None = None
    fault_after: int = 0
    """The number of chunks before the fault. 0: a hang, a reset or a half-close precedes even the headers."""
    retry_after: str = ""
    """The value of the Retry-After header of an error."""
    status: int = 200
    """A status of 400 or more is sent as an error."""
    error_code: str = ""
    """The error code of an error, for instance `context_length_exceeded`."""
    error_message: str = ""
    drip: float = 1.0
    """Seconds between the words of `Fault.DRIP`."""

    def __post_init__(self) -> None:
        pauses = (self.delay_first, self.delay_token, self.drip)
        if any(pause < 0 or not math.isfinite(pause) for pause in pauses):
            raise ValueError("a delay must be a finite number of seconds. Use Fault.HANG for a reply that never ends")


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """A request for a chat completion."""

    body: Mapping[str, Any]
    headers: Mapping[str, str]
    """The header names are lower-case."""
    number: int
    """The number of the request, starting at 1."""

    @property
    def messages(self) -> Sequence[Mapping[str, Any]]:
        messages: Sequence[Mapping[str, Any]] = self.body.get("messages", [])
        return messages

    @property
    def streams(self) -> bool:
        return bool(self.body.get("stream"))

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of the offered tools."""
        return tuple(tool.get("function", {}).get("name", "") for tool in self.body.get("tools") or [])


CompletionScript: TypeAlias = ScriptedReply | Sequence[ScriptedReply] | Callable[[CompletionRequest], ScriptedReply]
"""One reply for all requests, a list of replies (the last one is repeated), or a function."""

# A fault occurs within this many words, so that it hits short and long answers both early and late.
_MAX_FAULT_AFTER = 12


@dataclass(frozen=True, slots=True)
class Faults:
    """Injects faults into a fraction of the replies. The seed and the number of the request determine each fault."""

    rate: float
    seed: int = 0
    kinds: tuple[Fault, ...] = DEFAULT_FAULTS

    def inject(self, reply: ScriptedReply, number: int) -> ScriptedReply:
        """The reply to the request of this number. A reply that already has a fault is not changed."""
        chance = random.Random(f"{self.seed}/{number}")  # noqa: S311 - it must be repeatable
        if reply.fault or not self.kinds or chance.random() >= self.rate:
            return reply
        # Half of the faults occur before the first word, where a retry can still help.
        after = chance.choice((0, chance.randrange(_MAX_FAULT_AFTER)))
        return replace(reply, fault=chance.choice(self.kinds), fault_after=after)
