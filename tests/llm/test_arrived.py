"""A completion that is streamed says the same, however its bytes are cut up on their way."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.llm.client import Reply, chunks


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
    apart = await heard([written([said("An")]), written([said(" answer")])])

    assert together == [said("An answer"), CALL, said("and more"), last]
    assert apart == [said("An"), said(" answer")]


@pytest.mark.parametrize("sent", [b'data: {"choices": [', b"data: nonsense\n\n", b"data: [1]\n\n"])
async def test_what_is_no_json_is_an_error(sent: bytes) -> None:
    with pytest.raises(json.JSONDecodeError):
        await heard([sent])
