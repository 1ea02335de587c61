"""Our nouns as rows of the tables, and back."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from bythebook.conversations import Conversation, ConversationTurn, Message, Status, ToolCall, TurnState
from bythebook.errors import InputError
from bythebook.passages import RetrievalResult

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sqlalchemy import RowMapping

_RESULT_FIELDS = frozenset(known.name for known in fields(RetrievalResult))


def conversation_row(conversation: Conversation) -> dict[str, Any]:
    moments = [conversation.created_at, *(message.timestamp for message in conversation.messages)]
    return {
        "id": conversation.id,
        "user_id": conversation.user_id,
        "model": conversation.model,
        "title": "",
        "status": conversation.status.value,
        "max_history": conversation.max_history,
        "turn_count": conversation.turn_count,
        "retrieval_count": conversation.retrieval_count,
        "last_number": 0,
        "next_position": len(conversation.messages),
        "history_from": 1,
        "created_at": conversation.created_at,
        "updated_at": max(moments),
        "last_message_at": max(moments),
    }


def to_conversation(row: RowMapping | Mapping[str, Any], said: Sequence[RowMapping]) -> Conversation:
    return Conversation(
        messages=[_to_message(each) for each in said],
        id=row["id"],
        user_id=row["user_id"],
        model=row["model"],
        max_history=row["max_history"],
        created_at=row["created_at"],
        status=Status(row["status"]),
        turn_count=row["turn_count"],
        retrieval_count=row["retrieval_count"],
    )


def message_rows(messages: Iterable[Message], conversation_id: str, *, position: int) -> list[dict[str, Any]]:
    """The rows of messages that follow each other from `position`."""
    return [
        {
            "id": message.id,
            "conversation_id": conversation_id,
            "turn_id": None,
            "position": number,
            "role": message.role,
            "content": message.content,
            "timestamp": message.timestamp,
            "citations": _written([dict(citation) for citation in message.citations]),
            "token_count": message.token_count,
            "tool_calls": _written([asdict(call) for call in message.tool_calls]),
            "tool_call_id": message.tool_call_id,
            "name": message.name,
            "metadata": _written(dict(message.metadata)),
        }
        for number, message in enumerate(messages, position)
    ]


def _to_message(row: RowMapping) -> Message:
    return Message(
        role=row["role"],
        content=row["content"],
        id=row["id"],
        timestamp=row["timestamp"],
        citations=tuple(json.loads(row["citations"])),
        token_count=row["token_count"],
        tool_calls=tuple(ToolCall(**call) for call in json.loads(row["tool_calls"])),
        tool_call_id=row["tool_call_id"],
        name=row["name"],
        metadata=json.loads(row["metadata"]),
    )


def turn_row(turn: ConversationTurn) -> dict[str, Any]:
    return {
        "id": turn.id,
        "conversation_id": turn.conversation_id,
        "number": turn.number,
        "question": turn.question,
        "standalone_question": turn.standalone_question,
        "retrieval_results": _written([asdict(result) for result in turn.retrieval_results]),
        "response": None if turn.response is None else _written(dict(turn.response)),
        "state": turn.state.value,
        "error": turn.error,
        "created_at": turn.created_at,
        "duration_seconds": turn.duration_seconds,
    }


def to_turn(row: RowMapping) -> ConversationTurn:
    return ConversationTurn(
        conversation_id=row["conversation_id"],
        number=row["number"],
        question=row["question"],
        standalone_question=row["standalone_question"],
        retrieval_results=tuple(_to_result(each) for each in json.loads(row["retrieval_results"])),
        response=None if row["response"] is None else json.loads(row["response"]),
        state=TurnState(row["state"]),
        error=row["error"],
        created_at=row["created_at"],
        duration_seconds=row["duration_seconds"],
        id=row["id"],
    )


def _to_result(stored: dict[str, Any]) -> RetrievalResult:
    """A result as it was stored; a field it no longer has is passed over, one it has gained since takes its default."""
    known = {name: value for name, value in stored.items() if name in _RESULT_FIELDS}
    return RetrievalResult(**known | {"heading_hierarchy": tuple(known["heading_hierarchy"])})


def _written(value: object) -> str:
    try:
        return json.dumps(value)
    except (TypeError, ValueError) as exc:
        raise InputError(f"citations, metadata and responses are kept as JSON: {exc}.") from exc
