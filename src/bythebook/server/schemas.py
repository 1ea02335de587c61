"""The request and response bodies of the HTTP API.

Requests are validated against these models. Response models are derived from the dataclasses that
`bythebook.serialization.to_json` writes, so that a field is declared once.
"""

import ast
import inspect
import sys
from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime
from enum import Enum
from functools import cache
from itertools import pairwise
from types import GenericAlias, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model

from bythebook import answers, conversations, feedback, index, retrieval
from bythebook.qa import suggestions


class RequestModel(BaseModel):
    """A request body: unknown fields are rejected, and values are not coerced."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


# A longer text is valid if it is short enough when trimmed, which is checked later.
_QUERY = Field(
    min_length=1,
    max_length=10_000,
    description="1 to 1,000 characters when trimmed.",
    json_schema_extra={"maxLength": answers.LONGEST_QUERY},
)


class FiltersBody(RequestModel):
    """Restricts a search to a part of the book."""

    # The name in the OpenAPI document. The class has another one, to differ from the dataclass.
    __qualname__ = "Filters"
    model_config = ConfigDict(title="Filters")

    module: str = Field(default="", max_length=1000, description="The name of a module.")
    chapter: str = Field(default="", max_length=1000, description="The id of a chapter.")
    url_prefix: str = Field(default="", max_length=2000, description="The beginning of the URLs of the pages.")

    def to_domain(self) -> index.Filters:
        return index.Filters(module=self.module, chapter=self.chapter, url_prefix=self.url_prefix)


class AskRequest(RequestModel):
    """A question to the book."""

    __qualname__ = "AgentRequest"
    model_config = ConfigDict(title="AgentRequest")

    query: str = _QUERY
    top_k: int | None = Field(
        default=None, ge=1, le=10, description="How many passages to find. None: the book's own setting."
    )
    include_sources: bool = Field(default=True, description="Whether the answer includes the passages that were found.")
    session_id: str | None = Field(
        default=None, max_length=100, description="The conversation the question belongs to."
    )
    filters: FiltersBody = Field(default=FiltersBody(), description="A part of the book.")
    selected_text: str = Field(default="", max_length=5000, description="The text selected on the page by the reader.")
    selection_mode: Literal["only", "boost"] = Field(
        default="boost", description="`only`: answer from the selected text alone; `boost`: it comes first."
    )
    stream: bool = Field(
        default=False, description="Whether to send events. `Accept: text/event-stream` has the same effect."
    )
    store: bool = Field(
        default=True, description="Whether a question without a session begins one. False leaves nothing behind."
    )

    def to_domain(self) -> answers.AgentRequest:
        return answers.AgentRequest(**dict(self) | {"filters": self.filters.to_domain()})


class SearchRequest(RequestModel):
    """A search of the book's passages, without an answer."""

    query: str = _QUERY
    top_k: int | None = Field(
        default=None, ge=1, le=20, description="How many passages to find. None: the book's own setting."
    )
    threshold: float = Field(default=0.0, ge=0, le=1, description="The minimum cosine of a passage.")
    filters: FiltersBody = Field(default=FiltersBody(), description="A part of the book.")


class SessionRequest(RequestModel):
    """A new session has no parameters."""


class FeedbackRequest(RequestModel):
    """A reader's rating of an answer."""

    response_id: str = Field(max_length=100, description="The `id` of the answer.")
    rating: Literal["up", "down"] = Field(description="A later rating replaces it.")
    reason: str = Field(default="", max_length=2000, description="What was good or bad, in the reader's words.")


class ResponseModel(BaseModel):
    """A response body."""

    model_config = ConfigDict(extra="forbid")


_NAMES = {
    "Citation": retrieval.Citation,
    "RetrievalResult": retrieval.RetrievalResult,
    "ToolCall": conversations.ToolCall,
    "Record": dict[str, Any],
    "datetime": datetime,
}
"""Types that the dataclasses import only for type checkers."""

_DERIVED: dict[type, type[ResponseModel]] = {}


def derive_model(
    source: Any, *, name: str = "", doc: str = "", only: Sequence[str] = (), **types: Any
) -> type[ResponseModel]:
    """Create a model with the fields and properties of a dataclass, or with `only` some of them.

    A type in `types` replaces the one of the dataclass, where the response is narrower.
    """
    properties = {name: member.fget for name, member in vars(source).items() if isinstance(member, property)}
    hints = get_type_hints(source, localns=_NAMES)
    hints |= {name: get_type_hints(getter, localns=_NAMES)["return"] for name, getter in properties.items()}
    docs = _field_docs(source.__module__).get(source.__name__, {})
    docs |= {name: inspect.getdoc(getter) for name, getter in properties.items()}
    chosen = only or (*(field.name for field in fields(source)), *properties)
    definitions: Any = {
        name: (types.get(name) or _to_json_type(hints[name]), Field(description=docs.get(name))) for name in chosen
    }
    model = create_model(name or source.__name__, __base__=ResponseModel, __doc__=doc or source.__doc__, **definitions)
    _DERIVED[source] = model
    return model


def _to_json_type(hint: Any) -> Any:
    """The type of a field after `to_json`: models for dataclasses, literals for enums, lists for tuples."""
    if hint in _DERIVED:
        return _DERIVED[hint]
    if isinstance(hint, type) and issubclass(hint, Enum):
        return Literal[tuple(member.value for member in hint)]
    if get_origin(hint) is tuple:
        return _list_of(_to_json_type(get_args(hint)[0]))
    if get_origin(hint) in (Union, UnionType):
        return Union[tuple(map(_to_json_type, get_args(hint)))]  # noqa: UP007 - built at run time
    return hint


def _list_of(item: Any) -> Any:
    return GenericAlias(list, (item,))


@cache
def _field_docs(module: str) -> dict[str, dict[str, str | None]]:
    """The docstrings of the fields of a module's classes; empty if the source code is unavailable."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except OSError:
        return {}
    found: dict[str, dict[str, str | None]] = {}
    for kind in (node for node in tree.body if isinstance(node, ast.ClassDef)):
        for field, below in pairwise(kind.body):
            match field, below:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    found.setdefault(kind.name, {})[name] = inspect.cleandoc(text)
    return found


Citation = derive_model(retrieval.Citation)
RetrievalResult = derive_model(retrieval.RetrievalResult)
RetrievalContext = derive_model(retrieval.RetrievalContext)
SentenceProof = derive_model(answers.SentenceProof)
ResponseMetadata = derive_model(answers.ResponseMetadata)
AgentResponse = derive_model(answers.AgentResponse)
Feedback = derive_model(feedback.Feedback)
Introduction = derive_model(suggestions.Introduction)
ToolCall = derive_model(conversations.ToolCall)
# The system message is not sent, and the stored records are citations.
Message = derive_model(conversations.Message, role=Literal["user", "assistant", "tool"], citations=_list_of(Citation))
Session = derive_model(
    conversations.Conversation,
    name="Session",
    doc="A session: its owner, its state and its counters.",
    only=(
        *("id", "user_id", "model", "status", "created_at"),
        *("turn_count", "retrieval_count", "total_tokens", "total_tokens_used", "max_history"),
    ),
)
ConversationSummary = derive_model(conversations.ConversationSummary)
ConversationTurn = derive_model(conversations.ConversationTurn, response=AgentResponse | None)


def _create_page_model(name: str, doc: str, item: type[ResponseModel]) -> type[ResponseModel]:
    entries: Any = {
        name.lower(): (_list_of(item), Field(description=doc)),
        "has_more": (bool, Field(description="Whether there are more. Send the last id as `after` to get them.")),
    }
    return create_model(name, __base__=ResponseModel, __doc__=doc, **entries)


Sessions = _create_page_model("Sessions", "The sessions of the caller, the latest first.", ConversationSummary)
Messages = _create_page_model("Messages", "The messages since the last reset, oldest first.", Message)
Turns = _create_page_model("Turns", "The questions with their results, oldest first.", ConversationTurn)


class ErrorFields(ResponseModel):
    """What failed: `message` for the operator, `user_message` for the reader."""

    message: str
    user_message: str
    detail: str | None
    status_code: int = Field(ge=400, le=599)
    retry_after: float | None
    recoverable: bool
    request_id: str | None


class ErrorResponse(ErrorFields):
    """What failed: `message` for the operator, `user_message` for the reader."""

    error: str


class Health(ResponseModel):
    """Whether this process runs, and whether it can answer."""

    status: Literal["alive", "ready"]


ERROR_RESPONSES: dict[int | str, dict[str, Any]] = {"4XX": {"model": ErrorResponse}, "5XX": {"model": ErrorResponse}}
"""The error responses of every route."""


_EVENT = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "description": "The value to send as `Last-Event-ID`."},
        "event": {"enum": ["state", "sources", "delta", "answer", "error"]},
        "data": {"type": "string", "description": "JSON, on one line."},
    },
    "required": ["data"],
}
EVENT_STREAM_RESPONSE: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {"itemSchema": _EVENT}}}
}
"""The success response of a route that can stream."""
