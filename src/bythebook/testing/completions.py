"""`ScriptedServer`: an OpenAI-compatible server of chat completions with scripted replies and faults."""

import asyncio
import json
import math
import random
import re
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from enum import StrEnum
from typing import Any, TypeAlias

from bythebook.testing.connection import ClientDisconnected, Connection, RawRequest, ScriptedHTTPServer, parse_json


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


Json = dict[str, Any]

_MAX_EXCHANGES = 10_000
_ARGUMENTS_PIECE = 8
_DONE = b"data: [DONE]\n\n"
_STREAM_HEAD = {"content-type": "text/event-stream", "cache-control": "no-cache", "transfer-encoding": "chunked"}
_TRUNCATED_JSON = '{"choices": [{"index": 0, "delta": {"content": '
_REFUSALS: dict[Fault | None, tuple[int, str]] = {
    Fault.RATE_LIMIT: (429, "rate_limit_exceeded"),
    Fault.SERVER_ERROR: (500, ""),
}


@dataclass(frozen=True, slots=True)
class Chunks:
    """The chunks of a streamed reply: those before, with and after the content."""

    opening: tuple[Json, ...]
    pieces: tuple[Json, ...]
    closing: tuple[Json, ...]


async def send_reply(
    connection: Connection, request: CompletionRequest, reply: ScriptedReply, *, quirks: frozenset[Quirk]
) -> None:
    """Send the reply, or the part of it that precedes its fault."""
    status, code = _REFUSALS.get(reply.fault, (reply.status, reply.error_code))
    await connection.pause(reply.delay_first)
    if status >= 400:
        headers = {"retry-after": reply.retry_after} if reply.retry_after else {}
        connection.send_json(
            build_error(status, code=code, message=reply.error_message), status=status, headers=headers
        )
    elif reply.fault_after == 0 and await _break_connection(connection, reply.fault):
        return
    elif request.streams:
        await _send_stream(connection, reply, build_chunks(request, reply, quirks))
    else:
        await _send_whole(connection, reply, build_completion(request, reply, quirks))


async def _break_connection(connection: Connection, fault: Fault | None) -> bool:
    """Apply a fault of the connection. True if the fault is of that kind."""
    if fault is Fault.HANG:
        await connection.hang()
    elif fault is Fault.RESET:
        connection.reset()
    elif fault is Fault.HALF_CLOSE:
        await connection.half_close()
    return fault in (Fault.HANG, Fault.RESET, Fault.HALF_CLOSE)


async def _send_stream(connection: Connection, reply: ScriptedReply, chunks: Chunks) -> None:
    connection.send_head(200, _STREAM_HEAD)
    for chunk in chunks.opening:
        connection.send_chunk(_encode_event(chunk))
    is_complete = reply.fault in (None, Fault.NO_CHOICES)
    for index, piece in enumerate(chunks.pieces if is_complete else chunks.pieces[: reply.fault_after]):
        await connection.pause(reply.delay_token if index else 0)
        connection.send_chunk(_encode_event(piece))
    if is_complete:
        connection.send_chunk(b"".join([*map(_encode_event, chunks.closing), _DONE]))
    elif await _break_connection(connection, reply.fault):
        return
    else:
        await _corrupt_stream(connection, reply, chunks)
    connection.send_chunk(b"")


async def _corrupt_stream(connection: Connection, reply: ScriptedReply, chunks: Chunks) -> None:
    if reply.fault is Fault.CUT_CHUNK:
        event = _encode_event([*chunks.pieces, *chunks.closing][min(reply.fault_after, len(chunks.pieces))])
        connection.send_chunk(event[: len(event) // 2])
    elif reply.fault is Fault.BAD_JSON:
        connection.send_chunk(f"data: {_TRUNCATED_JSON}\n\n".encode())
    elif reply.fault is Fault.ERROR_IN_STREAM:
        connection.send_chunk(_encode_event(build_error(500)))
    elif reply.fault is Fault.DRIP:
        while True:
            for piece in chunks.pieces or chunks.opening:
                await connection.pause(reply.drip)
                connection.send_chunk(_encode_event(piece))


async def _send_whole(connection: Connection, reply: ScriptedReply, body: dict[str, Any]) -> None:
    await connection.pause(reply.delay_token * len(reply.text.split()))
    data = json.dumps(_corrupt_body(body, reply.fault)).encode()
    if reply.fault is Fault.CUT_CHUNK:
        data = data[: len(data) // 2]
    elif reply.fault is Fault.BAD_JSON:
        data = _TRUNCATED_JSON.encode()
    connection.send_head(200, {"content-type": "application/json", "content-length": str(len(data))})
    while reply.fault is Fault.DRIP:
        # Whitespace is legal before JSON, so a client cannot detect that no body will follow.
        await connection.pause(reply.drip)
        connection.send(b" ")
    connection.send(data[: len(data) // 2])
    if not await _break_connection(connection, reply.fault):
        connection.send(data[len(data) // 2 :])


def _corrupt_body(body: dict[str, Any], fault: Fault | None) -> dict[str, Any]:
    if fault is Fault.NO_CHOICES:
        return body | {"choices": []}
    if fault is Fault.NO_FINISH_REASON:
        return body | {"choices": [choice | {"finish_reason": None} for choice in body["choices"]]}
    return build_error(500) if fault is Fault.ERROR_IN_STREAM else body


def _encode_event(chunk: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(chunk)}\n\n".encode()


def split_words(text: str) -> list[str]:
    """Split a text into words. Each has its preceding space, so that the joined words are the text."""
    return re.findall(r"\s*\S+(?:\s+\Z)?|\s+\Z", text)


def split_text(reply: ScriptedReply) -> list[str]:
    """Split the text of the reply into the pieces of its stream."""
    if not reply.letters:
        return split_words(reply.text)
    return [reply.text[start : start + reply.letters] for start in range(0, len(reply.text), reply.letters)]


def build_completion(request: CompletionRequest, reply: ScriptedReply, quirks: frozenset[Quirk]) -> Json:
    message: Json = {"role": "assistant", "content": reply.text or None, "refusal": None}
    if reply.tool_calls:
        message["tool_calls"] = [
            _tool_call(call, index, request, quirks) for index, call in enumerate(reply.tool_calls)
        ]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish_reason(reply)}
    body = _envelope(request, "chat.completion") | {"choices": [choice]}
    return body if Quirk.NO_USAGE in quirks else body | {"usage": _count_usage(request, reply)}


def build_chunks(request: CompletionRequest, reply: ScriptedReply, quirks: frozenset[Quirk]) -> Chunks:
    envelope = _envelope(request, "chat.completion.chunk")
    has_usage = bool((request.body.get("stream_options") or {}).get("include_usage")) and Quirk.NO_USAGE not in quirks
    if has_usage:
        envelope["usage"] = None
    role = {"role": "assistant"}

    def chunk(delta: Json, finish_reason: str | None = None) -> Json:
        if reply.fault is Fault.NO_CHOICES:
            return envelope | {"choices": []}
        if Quirk.ROLE_IN_EVERY_CHUNK in quirks:
            delta = role | delta
        return envelope | {"choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}]}

    opening = [chunk(role | {"content": None if reply.tool_calls and not reply.text else "", "refusal": None})]
    if Quirk.EMPTY_FIRST_CHUNK in quirks:
        opening.insert(0, envelope | {"choices": []})
    pieces = [chunk({"content": piece}) for piece in split_text(reply)]
    pieces += [chunk({"tool_calls": [piece]}) for piece in _tool_call_pieces(request, reply.tool_calls, quirks)]
    if reply.fault is Fault.NO_CHOICES:
        pieces = []
    closing = [chunk({}, _finish_reason(reply))]
    if has_usage:
        closing.append(envelope | {"choices": [], "usage": _count_usage(request, reply)})
    return Chunks(tuple(opening), tuple(pieces), tuple(closing))


def build_error(status: int, *, code: str = "", message: str = "") -> Json:
    """Build an error body in the format of OpenAI."""
    kind = "server_error" if status >= 500 else "invalid_request_error"
    return {
        "error": {
            "message": message or f"Scripted to fail ({status}).",
            "type": kind,
            "param": None,
            "code": code or None,
        }
    }


def _finish_reason(reply: ScriptedReply) -> str:
    return reply.finish_reason or ("tool_calls" if reply.tool_calls else "stop")


def _envelope(request: CompletionRequest, kind: str) -> Json:
    return {
        "id": f"chatcmpl-{request.number}",
        "object": kind,
        "created": int(time.time()),
        "model": request.body.get("model", ""),
    }


def _tool_call(call: ScriptedToolCall, index: int, request: CompletionRequest, quirks: frozenset[Quirk]) -> Json:
    name = {} if Quirk.NO_CALL_IDS in quirks else {"id": f"call_{request.number}_{index}"}
    return name | {"type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _tool_call_pieces(
    request: CompletionRequest, calls: Sequence[ScriptedToolCall], quirks: frozenset[Quirk]
) -> Iterator[Json]:
    for index, call in enumerate(calls):
        first = {"index": index} | _tool_call(call, index, request, quirks)
        if Quirk.WHOLE_ARGUMENTS in quirks:
            yield first
            continue
        yield first | {"function": {"name": call.name, "arguments": ""}}
        for start in range(0, len(call.arguments), _ARGUMENTS_PIECE):
            piece = call.arguments[start : start + _ARGUMENTS_PIECE]
            yield {"index": index, "function": {"arguments": piece}}


def _count_usage(request: CompletionRequest, reply: ScriptedReply) -> Json:
    usage = reply.usage or ScriptedUsage(
        prompt_tokens=sum(len(str(message.get("content") or "").split()) for message in request.messages),
        completion_tokens=len(split_words(reply.text))
        + sum(len(split_words(call.arguments)) for call in reply.tool_calls),
    )
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    }


@dataclass(slots=True, eq=False)
class RecordedExchange:
    """A request for a completion and its outcome."""

    request: CompletionRequest
    reply: ScriptedReply
    left_at: float | None = None
    """When the client disconnected before the end of the reply, by the clock of the event loop."""
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def outcome(self) -> str:
        """`left` (the client disconnected), the name of the fault, the status of an error, or `ok`."""
        if self.left_at is not None and self.reply.fault is None:
            return "left"
        if self.reply.fault:
            return self.reply.fault.value
        return "ok" if self.reply.status < 400 else str(self.reply.status)


@dataclass(eq=False)
class ScriptedServer(ScriptedHTTPServer):
    """An OpenAI-compatible server on this machine. It runs from `async with` to its end.

    With a `key`, requests without that key are rejected. An exception in the script ends the `async with`.
    """

    script: CompletionScript
    _: KW_ONLY
    faults: Faults = Faults(0.0)
    quirks: Collection[Quirk] = ()
    exchanges: deque[RecordedExchange] = field(default_factory=lambda: deque(maxlen=_MAX_EXCHANGES), init=False)
    """The latest requests for a completion, oldest first."""

    @property
    def base_url(self) -> str:
        """The base URL for a client."""
        return f"{self.root_url}/v1"

    async def _answer(self, connection: Connection, received: RawRequest) -> None:
        if not self._accepts(received):
            # Some providers quote the rejected key, so a client must redact their messages.
            message = f"Incorrect API key provided: {received.bearer_token}."
            connection.send_json(build_error(401, code="invalid_api_key", message=message), status=401)
        elif received.route == "POST /v1/chat/completions":
            await self._complete(connection, received)
        elif received.route == "GET /v1/models":
            model = {"id": "scripted", "object": "model", "created": int(time.time()), "owned_by": "scripted"}
            connection.send_json({"object": "list", "data": [model]})
        elif received.route == "GET /counters":
            connection.send_json(self.counters)
        else:
            connection.send_json(build_error(404, message=f"There is no {received.route}."), status=404)

    async def _complete(self, connection: Connection, received: RawRequest) -> None:
        body = _parse_body(received.body)
        if isinstance(body, str):
            connection.send_json(build_error(400, message=body), status=400)
            return
        request = CompletionRequest(body, received.headers, self._count_request())
        exchange = RecordedExchange(request, self._reply(request))
        self.exchanges.append(exchange)
        try:
            await send_reply(connection, request, exchange.reply, quirks=frozenset(self.quirks))
        except ClientDisconnected:
            exchange.left_at = connection.closed_at
            raise
        finally:
            self.counters[exchange.outcome] += 1
            exchange.ended.set()

    def _reply(self, request: CompletionRequest) -> ScriptedReply:
        """The scripted reply, or an error if a quirk rejects the request."""
        if Quirk.REJECTS_TOOLS in self.quirks and request.tools:
            return ScriptedReply(status=400, error_message="This model does not support tools.")
        if Quirk.REJECTS_STREAM_OPTIONS in self.quirks and "stream_options" in request.body:
            return ScriptedReply(status=400, error_message="Unrecognized request argument supplied: stream_options")
        script = self.script
        if isinstance(script, ScriptedReply):
            reply = script
        elif callable(script):
            reply = script(request)
        else:
            reply = script[min(request.number, len(script)) - 1]
        return self.faults.inject(reply, request.number)


def _parse_body(data: bytes) -> dict[str, Any] | str:
    """The body of a request for a completion, or an error message."""
    body = parse_json(data)
    if body is None:
        return "The body is not JSON."
    if not isinstance(body, dict) or not isinstance(body.get("messages"), list) or not body["messages"]:
        return "'messages' must be a list of at least one message."
    return body
