"""The search tool of the model: its schema, its arguments and its response."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bythebook.errors import InputError
from bythebook.index import NO_FILTERS, Filters
from bythebook.retrieval import RetrievalResult

NAME = "search_docs"
FORMER_NAME = "retrieve_context"
DESCRIPTION = (
    "Search the book. Returns numbered passages; cite them by their number, like [1]. "
    "Call it again with other words if the passages do not answer the question."
)
_LONGEST_QUERY = 1000

SCHEMA: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_bytes())


@dataclass(frozen=True, slots=True)
class SearchArguments:
    """The arguments of one search."""

    query: str
    top_k: int = 5
    threshold: float = 0.0
    filters: Filters = NO_FILTERS

    @classmethod
    def parse(cls, arguments: str) -> "SearchArguments":
        """Parse a tool call's arguments. Raises InputError with a message that helps the model to correct itself."""
        try:
            data = json.loads(arguments)
        except ValueError as exc:
            raise InputError(f"the arguments are not JSON: {exc}") from exc
        if not isinstance(data, dict):
            raise InputError("the arguments must be an object with at least 'query'")
        unknown = sorted(set(data) - set(SCHEMA["properties"]))
        if unknown:
            raise InputError(f"unknown argument {unknown[0]!r}; there are query, top_k, threshold and filters")
        return cls(_query(data), _top_k(data), _threshold(data), _filters(data))


def _query(data: dict[str, Any]) -> str:
    query = data.get("query")
    if not isinstance(query, str) or not query.strip():
        raise InputError("'query' must be a text that is not empty")
    return query.strip()[:_LONGEST_QUERY]


def _top_k(data: dict[str, Any]) -> int:
    value = data.get("top_k", 5)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 10:
        raise InputError(f"'top_k' must be a whole number from 1 to 10, not {value!r}")
    return value


def _threshold(data: dict[str, Any]) -> float:
    value = data.get("threshold", 0.0)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InputError(f"'threshold' must be a number from 0 to 1, not {value!r}")
    return float(value)


def _filters(data: dict[str, Any]) -> Filters:
    value = data.get("filters") or {}
    if not isinstance(value, dict):
        raise InputError("'filters' must be an object with texts for module, chapter or url_prefix")
    return Filters.from_mapping(value)


@dataclass(frozen=True, slots=True)
class RetrievalToolResponse:
    """The response to a tool call. An empty result is not an error."""

    results: tuple[dict[str, Any], ...] = ()
    query: str = ""
    error: str | None = None
    message: str | None = None
    execution_time: float = 0.0

    def __post_init__(self) -> None:
        if self.error is not None and self.results:
            raise InputError("a tool response with an error has no results")

    @property
    def total(self) -> int:
        return len(self.results)

    def is_error(self) -> bool:
        return self.error is not None

    def to_json(self) -> str:
        return json.dumps(
            {
                "results": list(self.results),
                "total": self.total,
                "query": self.query,
                "error": self.error,
                "message": self.message,
                "execution_time": round(self.execution_time, 2),
            },
            ensure_ascii=False,
        )


def describe_passages(
    numbered: Sequence[tuple[int, RetrievalResult]], *, longest: int = 0
) -> tuple[dict[str, Any], ...]:
    """The passages as JSON for the model, cut to `longest` characters if that is not 0."""
    return tuple(
        {
            "number": number,
            "text": result.text[:longest] if longest else result.text,
            "url": result.url,
            "title": " > ".join(result.heading_hierarchy) or result.title,
            "score": round(result.score, 3),
        }
        for number, result in numbered
    )
