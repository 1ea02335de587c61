"""Rules of a message, each with the number of the design document that requires it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from bythebook.conversations import Message, ToolCall
from bythebook.errors import InputError

CALL = ToolCall("call_1", "search_docs", '{"query": "ROS 2"}')


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"role": "system", "content": "Be brief."}, id="000: system"),
        pytest.param({"role": "user", "content": "What is ROS 2?"}, id="000: user"),
        pytest.param({"role": "assistant", "content": "A framework."}, id="000: assistant"),
        pytest.param({"role": "assistant", "content": "", "tool_calls": (CALL,)}, id="000: a call needs no content"),
        pytest.param({"role": "tool", "content": "{}", "tool_call_id": "call_1"}, id="002: tool"),
        pytest.param({"role": "function", "content": "{}", "name": "search_docs"}, id="003: function"),
    ],
)
def test_valid_messages_are_accepted(fields: dict[str, Any]) -> None:
    assert Message(**fields).content == fields["content"]


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        pytest.param({"role": "robot", "content": "Hi"}, "role must be one of", id="000: role is one of the known"),
        pytest.param({"role": "User", "content": "Hi"}, "role must be one of", id="002: role as it is written"),
        pytest.param({"role": "user", "content": ""}, "needs content", id="001: a user message is not empty"),
        pytest.param({"role": "user", "content": " \n"}, "needs content", id="002: nor is white space content"),
        pytest.param({"role": "assistant", "content": ""}, "needs content", id="000: content unless there is a call"),
        pytest.param({"role": "system", "content": ""}, "needs content", id="003: content for every role"),
        pytest.param(
            {"role": "tool", "content": "", "tool_call_id": "c"}, "needs content", id="003: content for a tool's answer"
        ),
        pytest.param({"role": "function", "content": "{}"}, "needs the name", id="000: name required for function"),
        pytest.param(
            {"role": "user", "content": "Hi", "tool_calls": (CALL,)},
            "only an assistant",
            id="002: only assistants call",
        ),
        pytest.param(
            {"role": "tool", "content": "{}", "tool_call_id": "c", "tool_calls": (CALL,)},
            "only an assistant",
            id="003: nor do functions call",
        ),
        pytest.param({"role": "tool", "content": "{}"}, "needs the tool_call_id", id="002: a tool answers some call"),
        pytest.param(
            {"role": "user", "content": "Hi", "tool_call_id": "c"},
            "only a tool message",
            id="002: only tools answer calls",
        ),
        pytest.param(
            {"role": "assistant", "content": "Hi", "tool_call_id": "c"},
            "only a tool message",
            id="003: assistants do not",
        ),
        pytest.param({"role": "user", "content": "Hi", "token_count": -1}, "negative", id="001: token_count counts"),
        pytest.param(
            {"role": "user", "content": "Hi", "timestamp": datetime(2025, 1, 1)},  # noqa: DTZ001
            "has no zone",
            id="003: timestamp is UTC",
        ),
        pytest.param({"role": "user", "content": "a\0b"}, "no text", id="NUL cannot be stored everywhere"),
        pytest.param({"role": "user", "content": "\ud800"}, "no text", id="half a surrogate pair is no character"),
        pytest.param(
            {"role": "assistant", "content": "", "tool_calls": (CALL, CALL)}, "same id", id="calls are told apart"
        ),
    ],
)
def test_invalid_messages_are_rejected(fields: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        Message(**fields)


def test_a_function_message_becomes_a_tool_message() -> None:
    message = Message("function", "{}", name="search_docs")
    assert (message.role, message.name, message.tool_call_id) == ("tool", "search_docs", "call_search_docs")


def test_timestamps_are_converted_to_utc() -> None:
    noon = datetime(2025, 12, 23, 12, tzinfo=timezone(timedelta(hours=5)))
    assert Message("user", "Hi", timestamp=noon).timestamp.isoformat() == "2025-12-23T07:00:00+00:00"


def test_a_message_has_a_timestamp_and_a_unique_id() -> None:
    before = datetime.now(UTC)
    first, second = Message("user", "Hi"), Message("user", "Hi")
    assert before <= first.timestamp <= second.timestamp <= datetime.now(UTC)
    assert first.id != second.id


def test_a_message_is_immutable() -> None:
    with pytest.raises(AttributeError):
        Message("user", "Hi").content = "Bye"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("message", "tokens"),
    [
        pytest.param(Message("user", "one two three"), 3, id="001: as many as its content has"),
        pytest.param(Message("assistant", "", tool_calls=(CALL,)), 4, id="calls are read by the model too"),
    ],
)
def test_tokens_are_counted_with_the_given_counter(message: Message, tokens: int) -> None:
    assert message.with_token_count(lambda text: len(text.split())).token_count == tokens
