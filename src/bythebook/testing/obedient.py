"""A script that does what a well-behaved model does: looks things up, answers from them, and cites."""

from __future__ import annotations

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
_SENTENCE = re.compile(r"[^\n]+?[.!?](?=\s|$)|[^\n]+")


def obedient(request: Request) -> Reply:
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
