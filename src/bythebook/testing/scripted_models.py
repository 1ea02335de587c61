"""Scripted models: one searches, answers and cites; the other also follows instructions in passages."""

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from bythebook.testing.completions import CompletionRequest, ScriptedReply, ScriptedToolCall

NOT_COVERED = "I don't have information about that in the book."

_SENTENCES = 2
_BLOCK = re.compile(r"^\[(\d+)\] Source:[^\n]*\n(.*?)(?=\n\s*\[\d+\] Source:|\n\s*Question:|\Z)", re.M | re.S)
_QUESTION = re.compile(r"^Question:\s*(.+)", re.M | re.S)
_INSTRUCTION = re.compile(r"ASSISTANT:[ \t]*([^\n]+)")
_CALL = re.compile(r"call[ \t]+(\w+)[ \t]*(\{.*)?", re.IGNORECASE)
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060-\u2064\ufeff]")
_ENCODED = re.compile(r"[A-Za-z0-9+/]{24,}={0,2}")
_SENTENCE = re.compile(r"[^\n]+?[.!?](?=\s|$)|[^\n]+")


def cooperative_model(request: CompletionRequest) -> ScriptedReply:
    """Call the first tool with the question of the reader. With passages, answer from them.

    The answer quotes the sentences of the numbered passages that share most words with the question, each with its
    `[n]`. Passages are the blocks `[n] Source: title (url)` in all messages, and the `results` of a tool. A message
    with passages may have the question after them, as `Question: ...`.
    """
    question = find_question(request)
    if request.tools and request.messages[-1].get("role") != "tool":
        return ScriptedReply(tool_calls=(ScriptedToolCall(request.tools[0], json.dumps({"query": question})),))
    asked = _words(question)
    ranked = sorted(_sentences(request), key=lambda found: -len(asked & _words(found[1])))
    best = [(number, text) for number, text in ranked[:_SENTENCES] if asked & _words(text)]
    return ScriptedReply(" ".join(f"{text} [{number}]" for number, text in best) or NOT_COVERED)


def find_question(request: CompletionRequest) -> str:
    """The question of the reader."""
    texts = [_text(message) for message in request.messages if message.get("role") == "user"]
    last = texts[-1] if texts else ""
    below = _QUESTION.search(last)
    return below.group(1).strip() if below else _BLOCK.sub("", last).strip()


def _sentences(request: CompletionRequest) -> Iterator[tuple[int, str]]:
    for number, text in find_passages(request):
        for sentence in _SENTENCE.findall(text):
            yield number, sentence.strip()


def find_passages(request: CompletionRequest) -> Iterator[tuple[int, str]]:
    """All numbered passages in the messages."""
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
    """The text of a message, which may be a list of parts."""
    content = message.get("content") or ""
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(content)


def _words(text: str) -> set[str]:
    return {word for word in re.findall(r"\w+", text.lower()) if len(word) > 2}


def injectable_model(request: CompletionRequest) -> ScriptedReply:
    """Answer like `cooperative_model`, then follow every line of the passages that begins with `ASSISTANT:`.

    `ASSISTANT: call NAME {...}` calls a tool, even if it does not exist. Any other text after `ASSISTANT:` is added to
    the answer, with `{question}` and `{system}` replaced by the question and the system prompt. Instructions in base64
    and instructions with invisible characters between their letters are followed too.
    """
    reply = cooperative_model(request)
    instructions = [line for _, text in find_passages(request) for line in _find_instructions(text)]
    if reply.tool_calls or not instructions:
        return reply
    calls = tuple(_parse_tool_calls(instructions))
    if calls and request.tools and not _has_call(request, calls):
        return ScriptedReply(tool_calls=calls)
    system = "\n".join(str(message.get("content")) for message in request.messages if message.get("role") == "system")
    texts = [line for line in instructions if not _CALL.match(line)]
    filled = [text.replace("{question}", find_question(request)).replace("{system}", system) for text in texts]
    return ScriptedReply("\n\n".join([reply.text, *filled]))


def _find_instructions(text: str) -> Iterator[str]:
    text = _INVISIBLE.sub("", text)
    for piece in (text, *map(_decode_base64, _ENCODED.findall(text))):
        yield from (line.strip() for line in _INSTRUCTION.findall(piece))


def _decode_base64(text: str) -> str:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4)).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""


def _parse_tool_calls(instructions: list[str]) -> Iterator[ScriptedToolCall]:
    for line in instructions:
        if found := _CALL.match(line):
            yield ScriptedToolCall(found[1], found[2] or "{}")


def _has_call(request: CompletionRequest, calls: tuple[ScriptedToolCall, ...]) -> bool:
    made = {
        call.get("function", {}).get("name") for message in request.messages for call in message.get("tool_calls") or ()
    }
    return {call.name for call in calls} <= made
