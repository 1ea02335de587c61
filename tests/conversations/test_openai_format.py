"""Messages in both dialects of the OpenAI chat API."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.conversations import Conversation, Dialect, Message, ToolCall
from bythebook.errors import InputError

CALL = ToolCall("call_1", "search_docs", '{"query": "ROS 2"}')
FUNCTION = {"name": "search_docs", "arguments": '{"query": "ROS 2"}'}

said = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1).filter(str.strip)
names = st.sampled_from(["search_docs", "retrieve_context"])
calls = st.builds(ToolCall, st.uuids().map(str), names, st.text())


@st.composite
def conversations(draw: st.DrawFn) -> Conversation:
    """Any valid conversation, including several tool calls at once."""
    conversation = Conversation([Message("system", draw(said))], max_history=100)
    for _ in range(draw(st.integers(0, 4))):
        conversation.add_message(Message("user", draw(said)))
        for wanted in draw(st.lists(st.lists(calls, min_size=1, max_size=3, unique_by=lambda c: c.id), max_size=2)):
            conversation.add_message(Message("assistant", draw(st.just("") | said), tool_calls=tuple(wanted)))
            for call in draw(st.permutations(wanted)):
                conversation.add_message(Message("tool", draw(said), tool_call_id=call.id, name=call.name))
        conversation.add_message(Message("assistant", draw(said)))
    return conversation


def spoken(message: Message) -> tuple[Any, ...]:
    return message.role, message.content, message.name, message.tool_calls, message.tool_call_id


@given(conversations())
def test_the_tools_dialect_round_trips(conversation: Conversation) -> None:
    again = Conversation.from_openai_messages(conversation.to_openai_messages())
    assert list(map(spoken, again.messages)) == list(map(spoken, conversation.window()))


@given(conversations())
def test_the_functions_dialect_round_trips(conversation: Conversation) -> None:
    written = conversation.to_openai_messages("functions")
    again = Conversation.from_openai_messages(written)
    assert [message.to_api_format("functions") for message in again.messages] == written


@given(conversations())
def test_both_dialects_contain_the_same_calls_and_results(conversation: Conversation) -> None:
    older = Conversation.from_openai_messages(conversation.to_openai_messages("functions")).messages
    newer = conversation.window()
    asked = [(call.name, call.arguments) for message in newer for call in message.tool_calls]
    assert [(call.name, call.arguments) for message in older for call in message.tool_calls] == asked
    assert sorted(m.content for m in older if m.role == "tool") == sorted(m.content for m in newer if m.role == "tool")


@pytest.mark.parametrize(
    ("message", "dialect", "written"),
    [
        pytest.param(Message("user", "Hi"), "tools", {"role": "user", "content": "Hi"}, id="001: role and content"),
        pytest.param(
            Message("assistant", "", tool_calls=(CALL,)),
            "tools",
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "call_1", "type": "function", "function": FUNCTION}],
            },
            id="002: an assistant's tool calls",
        ),
        pytest.param(
            Message("assistant", "", tool_calls=(CALL,)),
            "functions",
            {"role": "assistant", "content": None, "function_call": FUNCTION},
            id="000: an assistant's function call",
        ),
        pytest.param(
            Message("tool", "[]", tool_call_id="call_1", name="search_docs"),
            "tools",
            {"role": "tool", "content": "[]", "name": "search_docs", "tool_call_id": "call_1"},
            id="002: a tool's answer",
        ),
        pytest.param(
            Message("tool", "[]", tool_call_id="call_1", name="search_docs"),
            "functions",
            {"role": "function", "content": "[]", "name": "search_docs"},
            id="000: a function's answer",
        ),
    ],
)
def test_messages_are_exported(message: Message, dialect: Dialect, written: dict[str, Any]) -> None:
    assert message.to_api_format(dialect) == written


@pytest.mark.parametrize(
    ("written", "message"),
    [
        pytest.param(
            {"role": "assistant", "function_call": {"name": "retrieve_context", "arguments": {"query": "ROS 2"}}},
            Message(
                "assistant", "", tool_calls=(ToolCall("call_retrieve_context", "retrieve_context", CALL.arguments),)
            ),
            id="003: arguments that are no text, and no content",
        ),
        pytest.param({"role": "developer", "content": "Be brief."}, Message("system", "Be brief."), id="developer"),
        pytest.param(
            {"role": "user", "content": [{"type": "text", "text": "What "}, {"type": "text", "text": "is it?"}]},
            Message("user", "What is it?"),
            id="content in parts",
        ),
        pytest.param(
            {"role": "assistant", "content": "Hi", "refusal": None, "tool_calls": None, "annotations": []},
            Message("assistant", "Hi"),
            id="what else the API sends is passed over",
        ),
    ],
)
def test_messages_are_imported(written: dict[str, Any], message: Message) -> None:
    assert spoken(Message.from_api_format(written)) == spoken(message)


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        pytest.param({"content": "Hi"}, "needs a role", id="no role"),
        pytest.param(
            {"role": "user", "content": "Hi", "function_call": FUNCTION},
            "only an assistant",
            id="000: function_call only on assistant",
        ),
        pytest.param({"role": "function", "content": "Hi"}, "needs the name", id="000: name required for function"),
        pytest.param({"role": "user", "content": [{"type": "image_url"}]}, "only text", id="an image"),
        pytest.param({"role": "user", "content": 7}, "only text", id="a number"),
        pytest.param({"role": "assistant", "tool_calls": [{"id": "c"}]}, "no 'function'", id="a call of nothing"),
        pytest.param({"role": "assistant", "tool_calls": ["c"]}, "no 'id'", id="a call that is none"),
        pytest.param(
            {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f"}}]},
            "no 'arguments'",
            id="a call without arguments",
        ),
    ],
)
def test_malformed_messages_are_rejected(written: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        Message.from_api_format(written)


def test_two_calls_do_not_fit_into_one_message_of_the_functions_dialect() -> None:
    both = Message("assistant", "", tool_calls=(CALL, ToolCall("call_2", "search_docs")))
    with pytest.raises(InputError, match="one call in a message"):
        both.to_api_format("functions")


def test_a_function_cannot_answer_without_its_name() -> None:
    with pytest.raises(InputError, match="needs the name"):
        Message("tool", "[]", tool_call_id="call_1").to_api_format("functions")
