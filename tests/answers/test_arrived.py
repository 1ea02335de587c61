"""A completion that is streamed says the same, however its bytes are cut up on their way."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.answers.arrived import chunks
from bythebook.answers.reply import Reply
from bythebook.testing.clock import skipping_time


def said(text: str, **more: Any) -> dict[str, Any]:
    return {"choices": [{"delta": {"content": text}, **more}]}


SEARCH = {"index": 0, "id": "c", "function": {"name": "search_docs", "arguments": '{"query": "x"}'}}
CALL = {"choices": [{"delta": {"content": "", "tool_calls": [SEARCH]}}]}
LAST = [said("", finish_reason="stop"), {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}}]


def written(events: list[dict[str, Any]]) -> bytes:
    lines = [f"data: {json.dumps(event, ensure_ascii=False)}\r\n\r\n" for event in events]
    return "".join([": hello\n\n", *lines, "data: [DONE]\n\n"]).encode()


async def heard(blocks: list[bytes]) -> list[dict[str, Any]]:
    async def arriving() -> AsyncIterator[bytes]:
        for block in blocks:
            yield block

    return [chunk async for chunk in chunks(arriving())]


def understood(heard: list[dict[str, Any]]) -> Reply:
    reply = Reply()
    for chunk in heard:
        reply.take(chunk)
    return reply


@given(
    st.lists(st.text(max_size=5).map(said) | st.just(CALL), max_size=8),
    st.lists(st.integers(0, 2000), max_size=8),
)
async def test_the_same_is_understood(events: list[dict[str, Any]], cuts: list[int]) -> None:
    sent = written([*events, *LAST])
    edges = sorted({0, len(sent), *(cut for cut in cuts if cut < len(sent))})
    blocks = [sent[start:end] for start, end in pairwise(edges)]

    assert understood(await heard(blocks)) == understood([*events, *LAST])


async def test_words_that_come_together_are_one_chunk_and_nothing_else_is() -> None:
    last = said("!", finish_reason="stop")
    together = await heard([written([said("An"), said(" answer"), CALL, said("and"), said(" more"), last])])

    assert together == [said("An answer"), CALL, said("and more"), last]


ROLE = {"choices": [{"delta": {"role": "assistant", "content": ""}}]}


async def paced(pause: float) -> list[tuple[float, str]]:
    """When each piece of an answer is heard of which a word comes every 30 ms, and what it says."""

    async def arriving() -> AsyncIterator[bytes]:
        yield written([ROLE])
        for word in "abcdefgh":
            await asyncio.sleep(0.03)
            yield written([said(word)])

    loop = asyncio.get_running_loop()
    pieces = [
        (loop.time(), chunk["choices"][0]["delta"]["content"])
        async for chunk in chunks(arriving(), pause=lambda: pause)
    ]
    return [(round(moment, 2), text) for moment, text in pieces]


@skipping_time
async def test_words_are_passed_on_one_by_one_or_in_fewer_pieces_but_the_first_and_the_last_at_once() -> None:
    assert await paced(0.0) == [
        (0.0, ""),
        *((round(0.03 * place, 2), word) for place, word in enumerate("abcdefgh", 1)),
    ]
    assert await paced(0.1) == [(0.24, ""), (0.27, "a"), (0.37, "bcd"), (0.47, "efg"), (0.48, "h")]


@skipping_time
async def test_a_stream_that_is_left_is_read_no_further() -> None:
    left = asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        try:
            while True:
                yield written([said("more")])
                await asyncio.sleep(1)
        finally:
            left.set()

    async with aclosing(chunks(endless())) as heard:
        await anext(heard)
    assert left.is_set()


@skipping_time
async def test_an_error_comes_after_what_was_said_before_it() -> None:
    async def breaking() -> AsyncIterator[bytes]:
        yield written([said("some")])
        raise ConnectionError("reset")

    heard = chunks(breaking())
    assert await anext(heard) == said("some")
    with pytest.raises(ConnectionError, match="reset"):
        await anext(heard)


@pytest.mark.parametrize("sent", [b'data: {"choices": [', b"data: nonsense\n\n", b"data: [1]\n\n"])
async def test_what_is_no_json_is_an_error(sent: bytes) -> None:
    with pytest.raises(json.JSONDecodeError):
        await heard([sent])
