"""What clients of OpenAI send and are told, in the types that the reference at `/docs` shows."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from bythebook.server.schemas import AgentResponse, Told


class ChatMessage(BaseModel):
    """A message as OpenAI's chat has it. What is not read here is passed over."""

    model_config = ConfigDict(extra="ignore", strict=True)

    role: str = Field(max_length=20)
    content: str | list[dict[str, Any]] | None = None


class ChatRequest(BaseModel):
    """A request for a chat completion. Only these fields matter; others are passed over, since the book decides."""

    model_config = ConfigDict(extra="ignore", strict=True)

    messages: list[ChatMessage] = Field(min_length=1, max_length=1000)
    model: str = Field(default="bythebook", max_length=200)
    n: Literal[1] | None = None
    stream: bool | None = None
    stream_options: dict[str, Any] | None = None


class UrlCitation(Told):
    """Where the words come from that a part of the answer rests on."""

    url: str
    title: str
    start_index: int
    end_index: int


class Annotation(Told):
    """A citation as OpenAI's clients know one."""

    type: Literal["url_citation"] = "url_citation"
    url_citation: UrlCitation


class ChatAnswer(Told):
    """The answer as a message."""

    role: Literal["assistant"] = "assistant"
    content: str
    refusal: str | None = None
    annotations: list[Annotation]


class Choice(Told):
    """The one answer there is."""

    index: Literal[0] = 0
    message: ChatAnswer
    logprobs: None = None
    finish_reason: Literal["stop"] = "stop"


class Usage(Told):
    """The tokens of the model behind the book; none where it has no model."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class ChatCompletion(Told):
    """An answer as OpenAI's clients expect one, with ours beside it."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[Choice]
    usage: Usage
    bythebook: AgentResponse


class Model(Told):
    """A model that can be asked: the book."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str


class Models(Told):
    """The models there are."""

    object: Literal["list"] = "list"
    data: list[Model]


class OpenAIError(Told):
    """An ErrorResponse as OpenAI's clients know an error: `code` is what `error` is there."""

    message: str
    type: str
    param: None
    code: str
    user_message: str
    detail: str | None
    status_code: int = Field(ge=400, le=599)
    retry_after: float | None
    recoverable: bool
    request_id: str | None


class OpenAIErrorResponse(Told):
    """What failed, for a client of OpenAI."""

    error: OpenAIError


OPENAI_FAILURES: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": OpenAIErrorResponse},
    "5XX": {"model": OpenAIErrorResponse},
}
"""What every route for such clients may answer with instead."""
