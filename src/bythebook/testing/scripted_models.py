"""Models scripted in Python: one searches, answers and cites; the other also obeys instructions found in passages."""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import TYPE_CHECKING, Any

from bythebook.testing.replies import Reply, ToolCall

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bythebook.testing.replies import Request

NOT_COVERED = "I don't have information about that in the book."

_SENTENCES = 2
_BLOCK = re.compile(r"^\[(\d+)\] Source:[^\n]*\n(.*?)(?=\n\s*\[\d+\] Source:|\n\s*Question:|\Z)", re.M | re.S)
_QUESTION = re.compile(r"^Question:\s*(.+)", re.M | re.S)
_ORDER = re.compile(r"ASSISTANT:[ \t]*([^\n]+)")
_CALL = re.compile(r"call[ \t]+(\w+)[ \t]*(\{.*)?", re.IGNORECASE)
_UNSEEN = re.compile("[\u00ad\u200b-\u200f\u2060-\u2064\ufeff]")
_ENCODED = re.compile(r"[A-Za-z0-9+/]{24,}={0,2}")
_SENTENCE = re.compile(r"[^\n]+?[.!?](?=\s|$)|[^\n]+")


def cooperative_model(request: Request) -> Reply:
    """Call the first tool on offer with the reader's question; once there are passages, answer from them.

    The answer is the sentences of the numbered passages that share most words with the question, word for word, each
    with its `[n]`. Passages are the blocks `[n] Source: title (url)` anywhere in the messages, and the `results` of a
    tool. A message that holds passages may put the reader's question below them, after `Question:`.
    """
    question = question_of(request)
    if request.tools and request.messages[-1].get("role") != "tool":
        return Reply(tool_calls=(ToolCall(request.tools[0], json.dumps({"query": question})),))
    asked = _words(question)
    ranked = sorted(_sentences(request), key=lambda found: -len(asked & _words(found[1])))
    best = [(number, said) for number, said in ranked[:_SENTENCES] if asked & _words(said)]
    return Reply(" ".join(f"{said} [{number}]" for number, said in best) or NOT_COVERED)


def question_of(request: Request) -> str:
    """What the reader has asked."""
    said = [_text(message) for message in request.messages if message.get("role") == "user"]
    last = said[-1] if said else ""
    below = _QUESTION.search(last)
    return below.group(1).strip() if below else _BLOCK.sub("", last).strip()


def _sentences(request: Request) -> Iterator[tuple[int, str]]:
    for number, text in passages(request):
        for sentence in _SENTENCE.findall(text):
            yield number, sentence.strip()


def passages(request: Request) -> Iterator[tuple[int, str]]:
    """Every numbered passage in the messages."""
    for message in request.messages:
        for number, text in _BLOCK.findall(_text(message)):
            yield int(number), text
        if message.get("role") == "tool":
            for place, result in enumerate(_results(_text(message)), start=1):
                yield int(result.get("number", place)), str(result.get("text", ""))


def _results(text: str) -> list[Mapping[str, Any]]:
    try:
        answer = json.loads(text)
    except ValueError:
        return []
    results = answer.get("results") if isinstance(answer, dict) else None
    return [result for result in results if isinstance(result, dict)] if isinstance(results, list) else []


def _text(message: Mapping[str, Any]) -> str:
    """A message's text, also where it comes in parts."""
    content = message.get("content") or ""
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(content)


def _words(text: str) -> set[str]:
    return {word for word in re.findall(r"\w+", text.lower()) if len(word) > 2}


def injectable_model(request: Request) -> Reply:
    """Answer as `cooperative_model` does, and then obey every line of the passages that begins with `ASSISTANT:`.

    `ASSISTANT: call NAME {...}` calls a tool, whether or not there is one of that name. Anything else after
    `ASSISTANT:` is said, with `{question}` and `{system}` in it replaced by what the reader asked and what the model
    was told. Orders in base64 are read too, and so are those with invisible characters between their letters.
    """
    reply = cooperative_model(request)
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
