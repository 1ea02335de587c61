"""What goes over the wire, in the types that the reference at `/docs` shows.

Requests are checked against these. Responses are written by `bythebook.serialization`; a test holds the two together.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from bythebook import answers, index


class _Given(BaseModel):
    """Something a stranger sends: unknown fields are refused, and nothing is taken for what it is not."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Filters(_Given):
    """Which part of the book to look in."""

    module: str = Field(default="", max_length=1000)
    chapter: str = Field(default="", max_length=1000)
    url_prefix: str = Field(default="", max_length=2000)

    def noun(self) -> index.Filters:
        return index.Filters(module=self.module, chapter=self.chapter, url_prefix=self.url_prefix)


class AgentRequest(_Given):
    """A question to the book."""

    query: str = Field(min_length=1, max_length=10_000, description="The question, 1 to 1,000 characters when trimmed.")
    top_k: int | None = Field(
        default=None, ge=1, le=10, description="How many passages to find. None: the book's own setting."
    )
    include_sources: bool = Field(
        default=True, description="Whether the passages that were found come with the answer."
    )
    session_id: str | None = Field(
        default=None, max_length=100, description="The conversation the question belongs to."
    )
    filters: Filters = Filters()
    selected_text: str = Field(default="", max_length=5000, description="What the reader has marked on the page.")
    selection_mode: Literal["only", "boost"] = "boost"
    stream: bool = Field(
        default=False, description="Whether to send events. `Accept: text/event-stream` says the same."
    )

    def noun(self) -> answers.AgentRequest:
        return answers.AgentRequest(**dict(self) | {"filters": self.filters.noun()})


class SearchRequest(_Given):
    """A search of the book's passages, without an answer."""

    query: str = Field(min_length=1, max_length=10_000)
    top_k: int | None = Field(default=None, ge=1, le=10)
    filters: Filters = Filters()


class SessionRequest(_Given):
    """A new session needs nothing but to be wanted."""


class FeedbackRequest(_Given):
    """What a reader thinks of an answer."""

    response_id: str = Field(max_length=100, description="The `id` of the answer.")
    rating: Literal["up", "down"]
    reason: str = Field(default="", max_length=2000)


class Told(BaseModel):
    """Something we send."""

    model_config = ConfigDict(extra="forbid")


class Citation(Told):
    """The very words an answer rests on, and where they stand."""

    number: int
    title: str
    url: str
    score: float
    chunk_id: str
    quote: str
    start: int
    end: int
    verified: bool
    excerpt: str


class RetrievalResult(Told):
    """A passage that was found."""

    chunk_id: str
    document_id: str
    text: str
    score: float
    position: int
    url: str
    title: str
    chunk_index: int
    token_count: int
    heading_hierarchy: list[str]
    module_name: str
    chapter_id: str
    anchor: str
    rerank_score: float
    start: int
    fence: str


class RetrievalContext(Told):
    """What was found for a query, best first."""

    query: str
    results: list[RetrievalResult]
    retrieved_at: datetime
    filter_applied: str
    cache_hit: bool
    total_tokens: int


class SentenceProof(Told):
    """What became of one sentence of a model, and why."""

    text: str
    verdict: Literal["kept", "marked", "removed"]
    reason: str
    citations: list[int]
    confidence: float
    checked: list[str]


class ResponseMetadata(Told):
    """How the answer came about. Every time was measured."""

    response_time_ms: float
    index_generation: str
    embedding_time_ms: float
    retrieval_time_ms: float
    generation_time_ms: float
    proof_time_ms: float
    first_token_ms: float | None
    chunk_count: int
    cache_hit: bool
    searches: int
    passages_left_out: int
    exchanges_left_out: int
    removed: list[str]
    proof: list[SentenceProof]
    confidence: float | None


class AgentResponse(Told):
    """An answer with everything it rests on."""

    answer: str
    outcome: Literal["answered", "refused", "clarify"]
    citations: list[Citation]
    sources: list[RetrievalResult]
    model: str
    metadata: ResponseMetadata
    suggestions: list[str]
    turn_number: int
    tokens_used: int
    session_id: str | None
    id: str
    created_at: datetime
    grounded: bool
    retrieval_performed: bool
    retrieval_count: int
    retrieved_sources: list[str]


class ErrorResponse(Told):
    """What failed, for whoever calls and for whoever reads."""

    error: str
    message: str
    user_message: str
    detail: str | None
    status_code: int = Field(ge=400, le=599)
    retry_after: float | None
    recoverable: bool
    request_id: str | None


class Session(Told):
    """A conversation: whose it is and how far it has come."""

    id: str
    user_id: str
    model: str
    status: Literal["created", "active", "completed"]
    created_at: datetime
    turn_count: int
    retrieval_count: int
    total_tokens: int
    max_history: int


class ToolCall(Told):
    """A tool the model called."""

    id: str
    name: str
    arguments: str


class Message(Told):
    """Something that was said."""

    id: str
    role: Literal["user", "assistant", "tool"]
    content: str
    timestamp: datetime
    citations: list[Citation]
    token_count: int
    tool_calls: list[ToolCall]
    tool_call_id: str | None
    name: str | None
    metadata: dict[str, Any]


class Messages(Told):
    """What was said in a session since it was last reset, oldest first."""

    session_id: str
    messages: list[Message]


class Feedback(Told):
    """A rating as it was kept."""

    response_id: str
    rating: Literal["up", "down"]
    reason: str
    rated_at: datetime


class Health(Told):
    """Whether this process runs, and whether it can answer."""

    status: Literal["alive", "ready"]


FAILURES: dict[int | str, dict[str, Any]] = {"4XX": {"model": ErrorResponse}, "5XX": {"model": ErrorResponse}}
"""What every route may answer with instead."""

_EVENT = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "description": "What `Last-Event-ID` takes."},
        "event": {"enum": ["state", "sources", "delta", "answer", "error"]},
        "data": {"type": "string", "description": "JSON, on one line."},
    },
    "required": ["data"],
}
EVENTS: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": {"itemSchema": _EVENT}}}}
"""What a route may answer with that can also tell as it goes along."""
