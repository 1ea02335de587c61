"""A streamed completion is decoded to the same reply, wherever its bytes are split into blocks."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.llm.client import ChunkDecoder, ModelReply, is_repetition


def text_chunk(text: str, **more: Any) -> dict[str, Any]:
    return {"choices": [{"delta": {"content": text}, **more}]}


SEARCH = {"index": 0, "id": "c", "function": {"name": "search_docs", "arguments": '{"query": "x"}'}}
CALL = {"choices": [{"delta": {"content": "", "tool_calls": [SEARCH]}}]}
LAST = [text_chunk("", finish_reason="stop"), {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}}]


def encode(events: list[dict[str, Any]]) -> bytes:
    lines = [f"data: {json.dumps(event, ensure_ascii=False)}\r\n\r\n" for event in events]
    return "".join([": hello\n\n", *lines, "data: [DONE]\n\n"]).encode()


def decode(blocks: list[bytes]) -> list[dict[str, Any]]:
    decoder = ChunkDecoder("scripted")
    return [chunk for block in [*blocks, b"\n"] for chunk in decoder.feed(block)]


def assemble(chunks: list[dict[str, Any]]) -> ModelReply:
    reply = ModelReply()
    for chunk in chunks:
        reply.add_chunk(chunk)
    return reply


@given(
    st.lists(st.text(max_size=5).map(text_chunk) | st.just(CALL), max_size=8),
    st.lists(st.integers(0, 2000), max_size=8),
)
def test_decodes_the_same_reply_from_any_blocks(events: list[dict[str, Any]], cuts: list[int]) -> None:
    sent = encode([*events, *LAST])
    edges = sorted({0, len(sent), *(cut for cut in cuts if cut < len(sent))})
    blocks = [sent[start:end] for start, end in pairwise(edges)]

    assert assemble(decode(blocks)) == assemble([*events, *LAST])


def test_merges_text_chunks_of_one_block_and_no_others() -> None:
    last = text_chunk("!", finish_reason="stop")
    together = decode(
        [encode([text_chunk("An"), text_chunk(" answer"), CALL, text_chunk("and"), text_chunk(" more"), last])]
    )
    apart = decode([encode([text_chunk("An")]), encode([text_chunk(" answer")])])

    assert together == [text_chunk("An answer"), CALL, text_chunk("and more"), last]
    assert apart == [text_chunk("An"), text_chunk(" answer")]


@pytest.mark.parametrize("sent", [b'data: {"choices": [', b"data: nonsense\n\n", b"data: [1]\n\n"])
def test_rejects_data_that_is_not_a_json_object(sent: bytes) -> None:
    with pytest.raises(json.JSONDecodeError):
        decode([sent])


@pytest.mark.parametrize("piece", [".", "a", "no ", "| a | b |\n", "I do not know. ", "中", "x" * 300 + "y"])
def test_a_text_that_only_repeats_itself_is_recognised(piece: str) -> None:
    text = "The horn sounds. " + piece * (3_000 // len(piece))
    assert is_repetition(text)
    assert not is_repetition(text[:2_000])
    assert not is_repetition(f"{text} The end.")


@given(st.text())
def test_a_short_text_is_no_repetition(text: str) -> None:
    assert not is_repetition(text)
