"""Rules of a conversation, each with the number of the design document that requires it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bythebook.conversations import Conversation, ConversationStatus, Message, ToolCall
from bythebook.errors import ContextOverflow, InputError

SYSTEM = Message("system", "Answer from the book.")
CALLS = (ToolCall("a", "search_docs"), ToolCall("b", "search_docs"))


def user(text: str = "What is ROS 2?") -> Message:
    return Message("user", text)


def assistant(text: str = "A framework.") -> Message:
    return Message("assistant", text)


def calling() -> Message:
    return Message("assistant", "", tool_calls=CALLS)


def tool(call: str = "a") -> Message:
    return Message("tool", "{}", tool_call_id=call, name="search_docs")


def talk(*messages: Message, **fields: Any) -> Conversation:
    conversation = Conversation([SYSTEM], **fields)
    for message in messages:
        conversation.add_message(message)
    return conversation


@pytest.mark.parametrize(
    ("before", "message", "complaint"),
    [
        pytest.param([], user(), "starts with a system message", id="000: first message must be system"),
        pytest.param([], assistant(), "starts with a system message", id="001: first message is the system's"),
        pytest.param([SYSTEM], Message("system", "Be rude."), "cannot follow", id="002: system only at the start"),
        pytest.param([SYSTEM, user()], user(), "take turns", id="000: user and assistant alternate"),
        pytest.param([SYSTEM, user(), assistant()], assistant(), "take turns", id="002: assistant not twice"),
        pytest.param([SYSTEM], assistant(), "take turns", id="002: assistant not before the user"),
        pytest.param([SYSTEM, user()], tool(), "cannot follow", id="000: functions only where called"),
        pytest.param([SYSTEM, user(), assistant()], tool(), "no tool call 'a' waits", id="002: tools answer a call"),
        pytest.param([SYSTEM, user(), calling()], tool("c"), "no tool call 'c' waits", id="002: a call that was made"),
        pytest.param([SYSTEM, user(), calling(), tool()], tool(), "no tool call 'a' waits", id="002: answered once"),
        pytest.param([SYSTEM, user(), calling()], assistant(), "cannot follow", id="003: no answer while calling"),
        pytest.param(
            [SYSTEM, user(), calling(), tool()], assistant(), "tool calls b must", id="003: every call answered"
        ),
        pytest.param(
            [SYSTEM, user(), calling()], user(), "tool calls a, b must", id="003: nor a question while calling"
        ),
    ],
)
def test_a_message_out_of_place_is_refused(before: list[Message], message: Message, complaint: str) -> None:
    conversation = Conversation()
    for earlier in before:
        conversation.add_message(earlier)
    with pytest.raises(InputError, match=complaint):
        conversation.add_message(message)
    assert [m.id for m in conversation.messages] == [m.id for m in before]


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        pytest.param({"id": "session-1"}, "UUID4", id="000: session_id is a UUID4"),
        pytest.param({"id": "550e8400-e29b-11d4-a716-446655440000"}, "UUID4", id="000: not another UUID"),
        pytest.param({"id": "550E8400-E29B-41D4-A716-446655440000"}, "UUID4", id="003: one spelling, so unique"),
        pytest.param({"max_history": 0}, "from 1 to 100", id="003: max_history > 0"),
        pytest.param({"max_history": 101}, "from 1 to 100", id="003: max_history <= 100"),
        pytest.param({"created_at": datetime(2025, 1, 1)}, "no zone", id="003: started_at is UTC"),  # noqa: DTZ001
        pytest.param({"user_id": "\0"}, "no text", id="a user no database can keep"),
        pytest.param({"messages": [user()]}, "starts with", id="000: also when made of messages"),
    ],
)
def test_invalid_conversations_are_rejected(fields: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        Conversation(**fields)


@pytest.mark.parametrize(
    ("messages", "status"),
    [
        pytest.param([], ConversationStatus.CREATED, id="000: created with a system prompt"),
        pytest.param([user()], ConversationStatus.ACTIVE, id="000: active when asked"),
        pytest.param([user(), calling()], ConversationStatus.ACTIVE, id="000: active while retrieving"),
        pytest.param(
            [user(), calling(), tool("b"), tool()], ConversationStatus.ACTIVE, id="000: active while answering"
        ),
        pytest.param([user(), assistant()], ConversationStatus.COMPLETED, id="000: completed with the answer"),
        pytest.param([user(), assistant(), user()], ConversationStatus.ACTIVE, id="000: and active again"),
    ],
)
def test_the_status_follows_the_messages(messages: list[Message], status: ConversationStatus) -> None:
    assert talk(*messages).status is status


def test_counters_cover_all_messages() -> None:
    """000: turn_count counts user messages, retrieval_count search answers; 001: total_tokens is the sum."""
    conversation = talk(user(), calling(), tool(), tool("b"), assistant(), user("And Nav2?"), assistant())
    conversation.messages = [m.with_token_count(len) for m in conversation.messages]
    assert (conversation.turn_count, conversation.retrieval_count) == (2, 2)
    assert conversation.total_tokens == sum(m.token_count for m in conversation.messages) > 0


def test_messages_are_oldest_first() -> None:
    """001: ordered by timestamp."""
    early = user()
    late = Message("assistant", "A framework.", timestamp=early.timestamp - timedelta(seconds=1))
    with pytest.raises(InputError, match="oldest first"):
        Conversation([SYSTEM, early, late])


def test_timestamps_never_decrease() -> None:
    """001: ordered by timestamp, also where another machine's clock is ahead of this one's."""
    ahead = datetime.now(UTC) + timedelta(seconds=5)
    conversation = Conversation([Message("system", "Answer.", timestamp=ahead)])
    conversation.add_message(user())
    assert [message.timestamp for message in conversation.messages] == [ahead, ahead]


def test_clearing_keeps_the_id_and_the_system_message() -> None:
    """003: reset clears history but the system message, and stays active. 001: clear()."""
    conversation = talk(*[m for n in range(5) for m in (user(f"{n}?"), assistant(f"{n}."))])
    before = conversation.id
    conversation.clear()
    assert (conversation.id, conversation.messages, conversation.status) == (
        before,
        [SYSTEM],
        ConversationStatus.ACTIVE,
    )
    assert conversation.turn_count == 5
    conversation.add_message(user())
    assert conversation.turn_count == 6


def test_clearing_an_unused_conversation_keeps_the_status_created() -> None:
    conversation = talk()
    conversation.clear()
    assert conversation.status is ConversationStatus.CREATED


def test_the_last_assistant_message_is_the_last_answer() -> None:
    """000: the most recent assistant response text."""
    answer = assistant()
    assert talk().last_assistant_message is None
    found = talk(user(), answer, user("And Nav2?"), calling()).last_assistant_message
    assert found is not None
    assert found.content == answer.content


@pytest.mark.parametrize(
    ("max_history", "shown"),
    [
        pytest.param(1, ["5?"], id="the question is always shown"),
        pytest.param(4, ["4?", "4.", "5?"], id="exactly as many as fit"),
        pytest.param(5, ["4?", "4.", "5?"], id="no half exchange"),
        pytest.param(6, ["3?", "3.", "4?", "4.", "5?"], id="003: at most max_history with the system message"),
        pytest.param(100, ["1?", "1.", "2?", "2.", "3?", "3.", "4?", "4.", "5?"], id="all of a short one"),
    ],
)
def test_the_window_contains_the_newest_exchanges(max_history: int, shown: list[str]) -> None:
    exchanges = [m for n in range(1, 5) for m in (user(f"{n}?"), assistant(f"{n}."))]
    conversation = talk(*exchanges, user("5?"), max_history=max_history)
    assert [m["content"] for m in conversation.to_openai_messages()] == [SYSTEM.content, *shown]


def test_the_window_keeps_tool_calls_with_their_results() -> None:
    conversation = talk(user(), calling(), tool(), tool("b"), assistant(), user("And Nav2?"), max_history=4)
    assert [message.role for message in conversation.window()] == ["system", "user"]


exchanges = st.lists(st.lists(st.integers(1, 3000), min_size=2, max_size=2), max_size=200)


def sized(sizes: list[list[int]], *, system: int, question: int) -> Conversation:
    conversation = Conversation([Message("system", "Answer.", token_count=system)])
    for asked, answered in sizes:
        conversation.add_message(Message("user", "?", token_count=asked))
        conversation.add_message(Message("assistant", ".", token_count=answered))
    conversation.add_message(Message("user", "The last question?", token_count=question))
    return conversation


@settings(max_examples=1000, deadline=None)
@given(exchanges, st.integers(1, 800), st.integers(1, 1500), st.integers(0, 20_000))
def test_trimming_is_never_over_budget_and_keeps_the_system_message_and_the_last_question(
    sizes: list[list[int]], system: int, question: int, budget: int
) -> None:
    """001: trim_to_budget removes the oldest; at any sizes, as many as fit stay, in whole exchanges."""
    conversation = sized(sizes, system=system, question=question)
    before = list(conversation.messages)
    if system + question > budget:
        with pytest.raises(ContextOverflow):
            conversation.trim_to_budget(budget)
        assert conversation.messages == before
        return
    dropped = conversation.trim_to_budget(budget)
    kept = conversation.messages
    assert conversation.total_tokens <= budget
    assert [before[0], *dropped, *kept[1:]] == before
    assert (kept[0], kept[-1]) == (before[0], before[-1])
    assert [m.role for m in kept[1:]] == ["user", "assistant"] * ((len(kept) - 2) // 2) + ["user"]
    if dropped:
        assert conversation.total_tokens + sum(m.token_count for m in dropped[-2:]) > budget


def test_trimming_keeps_the_calls_of_the_last_question() -> None:
    conversation = talk(user(), assistant(), user(), calling(), tool(), tool("b"))
    conversation.messages = [m.with_token_count(len) for m in conversation.messages]
    last = conversation.messages[3:]
    conversation.trim_to_budget(conversation.total_tokens - 1)
    assert conversation.messages[1:] == last


def test_trimming_requires_token_counts() -> None:
    with pytest.raises(InputError, match="never counted"):
        talk(user()).trim_to_budget(1000)
