"""A script that does whatever the pages of the book tell it to: the model that every poisoned page hopes for."""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING

from bythebook.testing.obedient import obedient, passages, question_of
from bythebook.testing.replies import Reply, ToolCall

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bythebook.testing.replies import Request

_ORDER = re.compile(r"ASSISTANT:[ \t]*([^\n]+)")
_CALL = re.compile(r"call[ \t]+(\w+)[ \t]*(\{.*)?", re.IGNORECASE)
_UNSEEN = re.compile("[\u00ad\u200b-\u200f\u2060-\u2064\ufeff]")
_ENCODED = re.compile(r"[A-Za-z0-9+/]{24,}={0,2}")


def gullible(request: Request) -> Reply:
    """Answer as `obedient` does, and then obey every order in the passages, a line that begins with `ASSISTANT:`.

    `ASSISTANT: call NAME {...}` calls a tool, whether or not there is one of that name. Anything else after
    `ASSISTANT:` is said, with `{question}` and `{system}` in it replaced by what the reader asked and what the model
    was told. Orders in base64 are read too, and so are those with invisible characters between their letters.
    """
    reply = obedient(request)
    orders = [order for _, text in passages(request) for order in _orders(text)]
    if reply.tool_calls or not orders:
        return reply
    calls = tuple(_calls(orders))
    if calls and request.tools and not _has_called(request, calls):
        return Reply(tool_calls=calls)
    told = "\n".join(str(message.get("content")) for message in request.messages if message.get("role") == "system")
    said = [order for order in orders if not _CALL.match(order)]
    filled = [order.replace("{question}", question_of(request)).replace("{system}", told) for order in said]
    return Reply("\n\n".join([reply.text, *filled]))


def _orders(text: str) -> Iterator[str]:
    text = _UNSEEN.sub("", text)
    for piece in (text, *map(_decoded, _ENCODED.findall(text))):
        yield from (order.strip() for order in _ORDER.findall(piece))


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4)).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""


def _calls(orders: list[str]) -> Iterator[ToolCall]:
    for order in orders:
        if found := _CALL.match(order):
            yield ToolCall(found[1], found[2] or "{}")


def _has_called(request: Request, calls: tuple[ToolCall, ...]) -> bool:
    made = {
        call.get("function", {}).get("name") for message in request.messages for call in message.get("tool_calls") or ()
    }
    return {call.name for call in calls} <= made
