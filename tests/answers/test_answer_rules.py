"""Validation rules of requests, responses, results and citations, from the five design documents."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import UTC
from typing import Any

import pytest

from bythebook.answers import AgentRequest, AgentResponse, Outcome, ResponseMetadata
from bythebook.errors import InputError
from bythebook.index import Filters
from bythebook.retrieval import Citation, to_citation
from tests.support.passages import result

FOUND = result("The lamp burns oil.", score=0.75)
CITED = to_citation(FOUND, 4, 8, number=1)


def request(**fields: Any) -> AgentRequest:
    return AgentRequest(**{"query": "lamp"} | fields)


def cited(**fields: Any) -> Citation:
    known: dict[str, Any] = {
        "number": 1, "title": "T", "url": "https://b.example", "score": 0.5, "chunk_id": "c", "quote": "oil",
        "start": 3, "end": 6, "verified": True,
    }  # fmt: skip
    return Citation(**known | fields)


def metadata(**fields: Any) -> ResponseMetadata:
    known: dict[str, Any] = {"response_time_ms": 1.0, "index_generation": "g000001"}
    return ResponseMetadata(**known | fields)


def response(**fields: Any) -> AgentResponse:
    known: dict[str, Any] = {
        "answer": "It burns oil. [1]", "outcome": Outcome.ANSWERED, "citations": (CITED,), "sources": (FOUND,),
        "model": "extractive", "metadata": metadata(chunk_count=1),
    }  # fmt: skip
    return AgentResponse(**known | fields)


@pytest.mark.parametrize(
    ("make", "fields", "message"),
    [
        pytest.param(request, {"query": ""}, "empty", id="004: query not empty"),
        pytest.param(request, {"query": " \n\t"}, "empty", id="004: query not empty after trimming"),
        pytest.param(request, {"query": "x" * 1001}, "1001 characters; at most 1000", id="004: query up to 1000"),
        pytest.param(request, {"top_k": 0}, "from 1 to 10, not 0", id="004: top_k from 1"),
        pytest.param(request, {"top_k": 11}, "from 1 to 10, not 11", id="004: top_k to 10"),
        pytest.param(result, {"text": " "}, "needs text", id="003, 004: text not empty"),
        pytest.param(result, {"score": -0.01}, "between 0 and 1", id="000, 003, 004: score from 0"),
        pytest.param(result, {"score": 1.01}, "between 0 and 1", id="000, 003, 004: score to 1"),
        pytest.param(result, {"score": float("nan")}, "between 0 and 1", id="000, 003, 004: score is a number"),
        pytest.param(result, {"position": 0}, "counts from 1", id="004: position from 1"),
        pytest.param(result, {"token_count": 0}, "must be positive", id="003: token_count above 0"),
        pytest.param(cited, {"url": "lamp.html"}, "absolute URL", id="001: a citation's URL is valid"),
        pytest.param(cited, {"score": 1.5}, "between 0 and 1", id="001: a citation's score from 0 to 1"),
        pytest.param(cited, {"end": 7}, "span its quote", id="ours: offsets span the quote"),
        pytest.param(response, {"answer": " \n"}, "never empty", id="000, 003, 004: answer not empty"),
        pytest.param(response, {"citations": ()}, "grounded", id="003: grounded has citations"),
        pytest.param(response, {"outcome": Outcome.REFUSED}, "grounded", id="003: not grounded has none"),
        pytest.param(
            response, {"outcome": Outcome.REFUSED, "citations": ()}, "a refusal contains", id="SPEC: a refusal says so"
        ),
        pytest.param(response, {"outcome": Outcome.CLARIFY}, "grounded", id="ours: asking back cites nothing"),
        pytest.param(response, {"turn_number": 0}, "counts from 1", id="000: turn_number positive"),
        pytest.param(response, {"tokens_used": -1}, "cannot be negative", id="002: tokens_used not negative"),
        pytest.param(metadata, {"response_time_ms": -1.0}, "response_time_ms", id="004: times not negative"),
        pytest.param(metadata, {"proof_time_ms": -1.0}, "proof_time_ms", id="004: no time negative"),
        pytest.param(metadata, {"chunk_count": -1}, "chunk_count", id="004: chunk_count not negative"),
    ],
)
def test_invalid_values_are_rejected(make: Callable[..., object], fields: dict[str, Any], message: str) -> None:
    arguments = {"text": "The lamp burns oil."} | fields if make is result else fields
    with pytest.raises(InputError, match=message):
        make(**arguments)


@pytest.mark.parametrize(
    ("make", "fields"),
    [
        pytest.param(request, {"query": "x" * 1000}, id="004: 1000 characters"),
        pytest.param(request, {"query": " " * 500 + "x" * 1000}, id="004: 1000 characters after trimming"),
        pytest.param(request, {"top_k": 1}, id="004: top_k 1"),
        pytest.param(request, {"top_k": 10}, id="004: top_k 10"),
        pytest.param(request, {"filters": Filters(module="A")}, id="ours: filters"),
        pytest.param(cited, {"url": "file:///book/a.md"}, id="ours: a book on this machine has file URLs"),
        pytest.param(
            response,
            {
                "outcome": Outcome.REFUSED,
                "citations": (),
                "answer": "I don't have information about “it” in this book.",
            },
            id="003: a refusal without citations",
        ),
        pytest.param(response, {"tokens_used": 0}, id="002: no tokens used"),
    ],
)
def test_valid_values_are_accepted(make: Callable[..., object], fields: dict[str, Any]) -> None:
    made = make(**fields)
    assert all(getattr(made, name) == (value.strip() if name == "query" else value) for name, value in fields.items())


def test_request_defaults() -> None:
    asked = AgentRequest("  What burns?\n")
    assert (asked.query, asked.top_k, asked.include_sources, asked.filters) == ("What burns?", None, True, Filters())


def test_a_lone_surrogate_in_a_question_is_replaced() -> None:
    assert AgentRequest("What burns \udcff here?").query == "What burns ? here?"


def test_requests_and_responses_are_immutable() -> None:
    for thing, name in ((request(), "query"), (response(), "answer"), (CITED, "quote"), (FOUND, "text")):
        with pytest.raises(AttributeError):
            setattr(thing, name, "other")


def test_a_citation_prints_as_a_link() -> None:
    assert (
        str(cited(title="The Lamp", url="https://b.example/lamp#oil"))
        == "[Source: The Lamp](https://b.example/lamp#oil)"
    )


@pytest.mark.parametrize(
    ("quote", "excerpt"),
    [
        pytest.param("short", "short", id="short"),
        pytest.param("two\n\n  lines", "two lines", id="on one line"),
        pytest.param("x" * 200, "x" * 200, id="200 characters"),
        pytest.param("x" * 201, "x" * 199 + "…", id="cut"),
        pytest.param("x" * 198 + " y z", "x" * 198 + "…", id="no space before the dots"),
    ],
)
def test_an_excerpt_has_at_most_200_characters(quote: str, excerpt: str) -> None:
    made = cited(quote=quote, start=0, end=len(quote))
    assert made.excerpt == excerpt
    assert len(made.excerpt) <= 200


def test_a_response_lists_its_sources() -> None:
    other = result("Other.", url="https://b.example/other")
    answer = response(sources=(FOUND, other, FOUND), metadata=metadata(chunk_count=3))

    assert answer.grounded
    assert answer.retrieved_sources == (FOUND.url, other.url)
    assert (answer.retrieval_performed, answer.retrieval_count) == (True, 3)
    assert answer.created_at.tzinfo is UTC
    assert uuid.UUID(answer.id).version == 4
    assert answer.id != response().id
    assert answer.format_with_sources() == (
        "It burns oil. [1]\n\n---\n**Sources:**\n[1] The Lamp: https://book.example/page#:~:text=lamp"
    )


def test_a_refusal_has_no_footer() -> None:
    refused = response(outcome=Outcome.REFUSED, citations=(), answer="I don't have information about that.")
    assert not refused.grounded
    assert refused.format_with_sources() == refused.answer
