"""The path of a streamed word from the provider's socket to the ASGI server passes at most ten of our frames."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import AsyncGeneratorType, FrameType
from typing import Any

import pytest

import bythebook
from bythebook.llm.client import ChunkDecoder
from bythebook.server.streams import AnswerStream, EventStreamResponse
from bythebook.testing import CompletionRequest, ScriptedReply, ScriptedToolCall
from tests.support.server import read_events, serve_book, settings_for

SOURCE = str(Path(bythebook.__file__).parent)
MOST_FRAMES = 10
HORN = "The horn gives two blasts of three seconds every ninety seconds."


def search_first(request: CompletionRequest) -> ScriptedReply:
    if request.body.get("tools") and request.body["messages"][-1]["role"] != "tool":
        return ScriptedReply(tool_calls=(ScriptedToolCall("search_docs", json.dumps({"query": "fog horn"})),))
    return ScriptedReply(f"{HORN} [1]", delay_token=0.001)


class FrameRecorder:
    """A profile function that collects our frames at the three points where a word is handed on."""

    def __init__(self) -> None:
        self.frames: dict[str, None] = {}
        self.points: set[str] = set()

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        caller = frame.f_back
        if event != "call" or caller is None:
            return
        if frame.f_code is json.loads.__code__ and caller.f_code is ChunkDecoder.feed.__code__:
            self._record("chunk decoded", caller)
        elif frame.f_code is AnswerStream.publish.__code__ and frame.f_locals["event"].name == "delta":
            self._record("delta published", frame)
        elif caller.f_code is EventStreamResponse.__call__.__code__ and b"event: delta" in _body(frame):
            # The frames outside of the response are those of the request; they were entered before the first word.
            self._record("block sent", caller, stop=caller)

    def _record(self, point: str, frame: FrameType, *, stop: FrameType | None = None) -> None:
        self.points.add(point)
        inner: FrameType | None = frame
        while inner is not None:
            for passed in (inner, *_suspended_generators(inner)):
                if passed.f_code.co_filename.startswith(SOURCE):
                    self.frames[passed.f_code.co_qualname] = None
            inner = None if inner is stop else inner.f_back


def _suspended_generators(frame: FrameType) -> Iterator[FrameType]:
    """The frames of the asynchronous generators that this frame iterates over, at any depth."""
    if not frame.f_code.co_filename.startswith(SOURCE):
        return
    for value in list(frame.f_locals.values()):
        if isinstance(value, AsyncGeneratorType) and value.ag_frame is not None and value.ag_frame is not frame:
            yield value.ag_frame
            yield from _suspended_generators(value.ag_frame)


def _body(frame: FrameType) -> bytes:
    messages = [value for value in frame.f_locals.values() if isinstance(value, dict)]
    return b"".join(message.get("body", b"") for message in messages)


@pytest.mark.parametrize("mode", ["prefetch", "tool"])
async def test_a_streamed_word_passes_at_most_ten_of_our_frames(
    shelved: Path, model_folder: Path, tmp_path: Path, mode: str
) -> None:
    body: dict[str, Any] = {"query": "How often does the fog horn sound?"}
    headers = {"accept": "text/event-stream", "idempotency-key": f"frames-{mode}"}
    recorder = FrameRecorder()
    async with serve_book(
        settings_for(shelved, model_folder, tmp_path, retrieval_mode=mode), script=search_first
    ) as book:
        sys.setprofile(recorder)
        try:
            async with book.client.stream("POST", "/v1/ask", json=body, headers=headers) as response:
                received = [event.name async for event in read_events(response)]
        finally:
            sys.setprofile(None)

    sys.stderr.write(f"{mode}: a streamed word passes {len(recorder.frames)} frames\n")
    sys.stderr.writelines(f"  {name}\n" for name in recorder.frames)
    assert recorder.points == {"chunk decoded", "delta published", "block sent"}
    assert received.count("delta") > 0
    assert received[-1] == "answer"
    assert len(recorder.frames) <= MOST_FRAMES
