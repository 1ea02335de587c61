"""A reply in the words of OpenAI's chat completions, whole or in chunks."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bythebook.testing.replies import Quirk, Usage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bythebook.testing.replies import Reply, Request, ToolCall

Json = dict[str, Any]

_ARGUMENTS_PIECE = 8


@dataclass(frozen=True, slots=True)
class Chunks:
    """A streamed reply: how it opens, the pieces that carry it, and how it closes."""

    opening: tuple[Json, ...]
    pieces: tuple[Json, ...]
    closing: tuple[Json, ...]


def words(text: str) -> list[str]:
    """A text word by word, each with the space before it; joined they are the text."""
    return re.findall(r"\s*\S+(?:\s+\Z)?|\s+\Z", text)


def spoken(reply: Reply) -> list[str]:
    """The reply's text in the pieces it is streamed in."""
    if not reply.letters:
        return words(reply.text)
    return [reply.text[start : start + reply.letters] for start in range(0, len(reply.text), reply.letters)]


def whole(request: Request, reply: Reply, quirks: frozenset[Quirk]) -> Json:
    message: Json = {"role": "assistant", "content": reply.text or None, "refusal": None}
    if reply.tool_calls:
        message["tool_calls"] = [_call(call, place, request, quirks) for place, call in enumerate(reply.tool_calls)]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish_reason(reply)}
    body = _envelope(request, "chat.completion") | {"choices": [choice]}
    return body if Quirk.NO_USAGE in quirks else body | {"usage": _usage(request, reply)}


def chunked(request: Request, reply: Reply, quirks: frozenset[Quirk]) -> Chunks:
    envelope = _envelope(request, "chat.completion.chunk")
    counted = bool((request.body.get("stream_options") or {}).get("include_usage")) and Quirk.NO_USAGE not in quirks
    if counted:
        envelope["usage"] = None
    role = {"role": "assistant"}

    def chunk(delta: Json, finished: str | None = None) -> Json:
        if Quirk.ROLE_IN_EVERY_CHUNK in quirks:
            delta = role | delta
        return envelope | {"choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finished}]}

    opening = [chunk(role | {"content": None if reply.tool_calls and not reply.text else "", "refusal": None})]
    if Quirk.EMPTY_FIRST_CHUNK in quirks:
        opening.insert(0, envelope | {"choices": []})
    pieces = [chunk({"content": piece}) for piece in spoken(reply)]
    pieces += [chunk({"tool_calls": [piece]}) for piece in _call_pieces(request, reply.tool_calls, quirks)]
    closing = [chunk({}, finish_reason(reply))]
    if counted:
        closing.append(envelope | {"choices": [], "usage": _usage(request, reply)})
    return Chunks(tuple(opening), tuple(pieces), tuple(closing))


def error(status: int, *, code: str = "", message: str = "") -> Json:
    """An error as a provider words it."""
    kind = "server_error" if status >= 500 else "invalid_request_error"
    return {
        "error": {
            "message": message or f"Scripted to fail ({status}).",
            "type": kind,
            "param": None,
            "code": code or None,
        }
    }


def models(names: Sequence[str]) -> Json:
    data = [{"id": name, "object": "model", "created": int(time.time()), "owned_by": "scripted"} for name in names]
    return {"object": "list", "data": data}


def finish_reason(reply: Reply) -> str:
    return reply.finish_reason or ("tool_calls" if reply.tool_calls else "stop")


def _envelope(request: Request, kind: str) -> Json:
    return {
        "id": f"chatcmpl-{request.number}",
        "object": kind,
        "created": int(time.time()),
        "model": request.body.get("model", ""),
    }


def _call(call: ToolCall, place: int, request: Request, quirks: frozenset[Quirk]) -> Json:
    name = {} if Quirk.NO_CALL_IDS in quirks else {"id": f"call_{request.number}_{place}"}
    return name | {"type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _call_pieces(request: Request, calls: Sequence[ToolCall], quirks: frozenset[Quirk]) -> Iterator[Json]:
    for place, call in enumerate(calls):
        first = {"index": place} | _call(call, place, request, quirks)
        if Quirk.WHOLE_ARGUMENTS in quirks:
            yield first
            continue
        yield first | {"function": {"name": call.name, "arguments": ""}}
        for start in range(0, len(call.arguments), _ARGUMENTS_PIECE):
            piece = call.arguments[start : start + _ARGUMENTS_PIECE]
            yield {"index": place, "function": {"arguments": piece}}


def _usage(request: Request, reply: Reply) -> Json:
    usage = reply.usage or Usage(
        prompt_tokens=sum(len(str(message.get("content") or "").split()) for message in request.messages),
        completion_tokens=len(words(reply.text)) + sum(len(words(call.arguments)) for call in reply.tool_calls),
    )
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    }
