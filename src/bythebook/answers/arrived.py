"""What has arrived of a streamed completion: chunks from bytes, those that came together joined.

A busy server reads several words at once. Made one, they are cleaned, sent and waited for once.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator

_DONE = "[DONE]"


async def chunks(blocks: AsyncIterator[bytes]) -> AsyncIterator[dict[str, Any]]:
    """The chunks of a stream of server-sent events, however it is cut into blocks."""
    rest = b""
    async for block in blocks:
        *lines, rest = (rest + block).split(b"\n")
        for chunk in _joined(_parsed(lines)):
            yield chunk
    for chunk in _parsed([rest]):
        yield chunk


def _parsed(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    for line in lines:
        data = line[5:].decode("utf-8", "replace").strip() if line.startswith(b"data:") else ""
        # Read on after the last word: a connection that is left early cannot be used again.
        if data and data != _DONE:
            chunk = json.loads(data)
            if not isinstance(chunk, dict):
                raise json.JSONDecodeError("no object", data, 0)
            yield chunk


def _joined(chunks: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The same chunks, neighbours that bring nothing but text made one."""
    words: list[str] = []
    for chunk in chunks:
        text = _nothing_but_text(chunk)
        if text is not None:
            words.append(text)
            continue
        yield from _said(words)
        words.clear()
        yield chunk
    yield from _said(words)


def _said(words: list[str]) -> Iterator[dict[str, Any]]:
    if words:
        yield {"choices": [{"delta": {"content": "".join(words)}}]}


def _nothing_but_text(chunk: dict[str, Any]) -> str | None:
    choices = chunk.get("choices") or []
    if chunk.get("usage") or chunk.get("error"):
        return None
    if len(choices) != 1 or choices[0].get("finish_reason"):
        return None
    delta = choices[0].get("delta") or {}
    text = delta.get("content")
    return text if isinstance(text, str) and text and delta.keys() <= {"content", "role"} else None
