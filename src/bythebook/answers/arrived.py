"""What has arrived of a streamed completion: chunks from bytes, those that came together joined.

A busy server takes several words at once. Made one, they are cleaned, sent and waited for once.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator

_DONE = "[DONE]"


def at_once() -> float:
    """No pause between words."""
    return 0.0


async def chunks(
    blocks: AsyncIterator[bytes], *, pause: Callable[[], float] = at_once
) -> AsyncGenerator[dict[str, Any]]:
    """The chunks of a stream of server-sent events, however it is cut into blocks.

    After the first words, what comes within so many seconds' `pause` is one.
    """
    rest = b""
    spoken = False
    async with aclosing(_gathered(blocks, pause=lambda: pause() if spoken else 0.0)) as gathered:
        async for block in gathered:
            *lines, rest = (rest + block).split(b"\n")
            for chunk in _joined(_parsed(lines)):
                spoken = spoken or _nothing_but_text(chunk) is not None
                yield chunk
    for chunk in _parsed([rest]):
        yield chunk


async def _gathered(blocks: AsyncIterator[bytes], *, pause: Callable[[], float]) -> AsyncGenerator[bytes]:
    """The same bytes, in fewer blocks the longer the pauses are. The end is never waited for."""
    parts: list[bytes] = []
    came = asyncio.Event()

    async def take() -> None:
        try:
            async for block in blocks:
                parts.append(block)
                came.set()
        finally:
            came.set()

    taking = asyncio.create_task(take())
    try:
        while parts or not taking.done():
            if not parts:
                came.clear()
                await came.wait()
                continue
            together = parts[:] if pause() else parts[:1]
            del parts[: len(together)]
            yield b"".join(together)
            if not taking.done() and (seconds := pause()):
                await asyncio.wait([taking], timeout=seconds)
        taking.result()
    finally:
        taking.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await taking


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
