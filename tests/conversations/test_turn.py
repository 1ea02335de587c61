"""Rules of a turn, each with the number of the design document that requires it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bythebook.conversations import ConversationTurn, TurnState
from bythebook.errors import InputError
from bythebook.retrieval import RetrievalResult

FOUND = RetrievalResult("c1", "d1", "ROS 2 is a framework.", 0.87, 1, "https://book/ros2", "ROS 2", 0, 6)
TURN = ConversationTurn("550e8400-e29b-41d4-a716-446655440000", 1, "What is ROS 2?")


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        pytest.param({"question": " "}, "empty", id="003: user_query cannot be empty"),
        pytest.param({"question": "a\0"}, "no text", id="a question no database can keep"),
        pytest.param({"number": 0}, "from 1", id="000: turn_number is positive"),
        pytest.param({"duration_seconds": 0.0}, "greater than 0", id="003: duration_seconds > 0"),
        pytest.param({"duration_seconds": -1.0}, "greater than 0", id="003: duration_seconds is not negative"),
        pytest.param({"duration_seconds": float("nan")}, "greater than 0", id="003: duration_seconds is a number"),
        pytest.param({"state": TurnState.FAILED}, "needs its duration", id="003: an ended turn has a duration"),
        pytest.param({"response": {}}, "has a response", id="003: one AgentResponse, once there is one"),
        pytest.param({"state": TurnState.COMPLETED, "duration_seconds": 1}, "a response", id="003: and not without"),
        pytest.param(
            {"state": TurnState.COMPLETED, "duration_seconds": 1.0, "response": {"grounded": True}},
            "nothing was retrieved",
            id="003: without results the response must say no information",
        ),
    ],
)
def test_invalid_turns_are_rejected(fields: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        replace(TURN, **fields)


def test_a_turn_is_completed_by_its_answer() -> None:
    done = TURN.complete({"grounded": True}, retrieval_results=[FOUND], duration_seconds=8.5)
    assert (done.id, done.state, done.retrieval_results) == (TURN.id, TurnState.COMPLETED, (FOUND,))


def test_a_turn_without_results_is_completed_by_a_refusal() -> None:
    done = TURN.complete({"grounded": False}, retrieval_results=[], duration_seconds=0.1)
    assert done.state is TurnState.COMPLETED


def test_a_turn_fails_with_the_code_of_its_error() -> None:
    failed = TURN.fail("timeout", duration_seconds=30.0)
    assert (failed.state, failed.error, failed.response) == (TurnState.FAILED, "timeout", None)
