"""The search tool: valid arguments, error messages for invalid ones, and the response."""

from __future__ import annotations

import json

import pytest

from bythebook.errors import InputError
from bythebook.index import Filters
from bythebook.llm.search_tool import RetrievalToolResponse, SearchArguments, describe_passages
from bythebook.retrieval import RetrievalResult


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param("{", "not JSON", id="broken JSON"),
        pytest.param("[1]", "must be an object", id="not an object"),
        pytest.param("{}", "'query' must be", id="003: arguments must contain query"),
        pytest.param('{"query": "  "}', "'query' must be", id="an empty query"),
        pytest.param('{"query": 3}', "'query' must be", id="003: query is a text"),
        pytest.param('{"query": "x", "top_k": 0}', "from 1 to 10", id="003: top_k is at least 1"),
        pytest.param('{"query": "x", "top_k": 11}', "from 1 to 10", id="003: top_k is at most 10"),
        pytest.param('{"query": "x", "top_k": true}', "from 1 to 10", id="top_k is a number"),
        pytest.param('{"query": "x", "threshold": 1.5}', "from 0 to 1", id="003: threshold is at most 1"),
        pytest.param('{"query": "x", "threshold": -1}', "from 0 to 1", id="003: threshold is at least 0"),
        pytest.param('{"query": "x", "filters": {"colour": "red"}}', "module, chapter", id="no such filter"),
        pytest.param('{"query": "x", "limit": 3}', "unknown argument 'limit'", id="no such argument"),
    ],
)
def test_explains_what_is_wrong_with_the_arguments(arguments: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        SearchArguments.parse(arguments)


def test_parses_every_argument() -> None:
    arguments = {"query": " nodes ", "top_k": 3, "threshold": 0.7, "filters": {"module": "Basics"}}
    assert SearchArguments.parse(json.dumps(arguments)) == SearchArguments("nodes", 3, 0.7, Filters(module="Basics"))


def test_000_a_response_is_json_with_scores_to_three_decimals() -> None:
    result = RetrievalResult(
        chunk_id="c", document_id="d", text="Nodes talk over topics.", score=0.123456, position=1,
        url="https://book.example/a", title="Nodes", chunk_index=0, token_count=5,
    )  # fmt: skip
    response = RetrievalToolResponse(describe_passages([(4, result)], longest=5), query="nodes", execution_time=0.123)
    assert json.loads(response.to_json()) == {
        "results": [{"number": 4, "text": "Nodes", "url": "https://book.example/a", "title": "Nodes", "score": 0.123}],
        "total": 1,
        "query": "nodes",
        "error": None,
        "message": None,
        "execution_time": 0.12,
    }


def test_000_an_empty_result_is_not_an_error_and_an_error_has_no_results() -> None:
    assert not RetrievalToolResponse(query="nodes").is_error()
    assert RetrievalToolResponse(error="retrieval_error", message="down").is_error()
    with pytest.raises(InputError):
        RetrievalToolResponse(({"number": 1},), error="retrieval_error")
