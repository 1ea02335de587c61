"""Dataclasses and errors as JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bythebook import errors
from bythebook.answers import AgentResponse, Outcome, ResponseMetadata
from bythebook.errors import BookError, NotFound, RateLimited
from bythebook.retrieval import RetrievalContext, to_citation
from bythebook.serialization import error_to_dict, to_json
from tests.support.passages import result


@dataclass(frozen=True)
class Lamp:
    oil: str
    lit_at: datetime
    parts: tuple[Path, ...]

    @property
    def lit(self) -> bool:
        return True


def test_a_dataclass_has_its_fields_and_properties() -> None:
    lamp = Lamp("colza", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), (Path("a/b"),))
    assert to_json({"lamp": [lamp], 1: None}) == {
        "lamp": [{"oil": "colza", "lit_at": "2026-01-02T03:04:05+00:00", "parts": ["a/b"], "lit": True}],
        "1": None,
    }


def test_an_answer_survives_a_round_trip() -> None:
    found = result("Es brennt Öl.")
    answer = AgentResponse(
        answer="Es brennt Öl. [1]",
        outcome=Outcome.ANSWERED,
        citations=(to_citation(found, 0, 9, number=1),),
        sources=(found,),
        model="extractive",
        metadata=ResponseMetadata(response_time_ms=1.5, index_generation="g000001", chunk_count=1),
    )
    said = json.loads(json.dumps(to_json(answer)))

    assert (said["outcome"], said["grounded"], said["retrieval_performed"]) == ("answered", True, True)
    assert said["citations"][0]["excerpt"] == said["citations"][0]["quote"] == "Es brennt"
    assert said["retrieved_sources"] == [found.url]
    assert said["sources"][0]["heading_hierarchy"] == []
    assert datetime.fromisoformat(said["created_at"]) == answer.created_at


def test_a_retrieval_context_has_its_total() -> None:
    assert to_json(RetrievalContext(query="lamp", results=(result("Two words"),)))["total_tokens"] == 2


def test_an_error_has_a_message_for_the_operator_and_one_for_the_reader() -> None:
    assert error_to_dict(NotFound("there is no book yet")) == {
        "error": "not_found",
        "message": "there is no book yet",
        "user_message": "That could not be found.",
        "detail": None,
        "status_code": 404,
        "retry_after": None,
        "recoverable": False,
        "request_id": None,
    }


def test_an_error_includes_its_retry_after() -> None:
    said = error_to_dict(RateLimited("slow down", retry_after=2.2))
    assert said["retry_after"] == 2.2
    assert said["user_message"] == "The service is busy. Please wait 3 seconds and try again."


@pytest.mark.parametrize(
    "kind",
    [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, BookError)],
    ids=lambda kind: kind.__name__,
)
def test_every_error_has_a_valid_response(kind: type[BookError]) -> None:
    said = error_to_dict(kind("why"))
    assert 400 <= said["status_code"] <= 599
    assert "{" not in said["user_message"]
    assert said["error"]
    assert json.loads(json.dumps(said)) == said
