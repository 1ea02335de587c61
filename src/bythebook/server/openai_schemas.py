"""The request and response bodies of the OpenAI-compatible routes."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from bythebook.server.schemas import AgentResponse, ResponseModel


class ChatMessage(BaseModel):
    """A chat message in OpenAI's format. Other fields are ignored."""

    model_config = ConfigDict(extra="ignore", strict=True)

    role: str = Field(max_length=20)
    content: str | list[dict[str, Any]] | None = None


class ChatRequest(BaseModel):
    """A request for a chat completion. Other fields are ignored: the settings of the book apply."""

    model_config = ConfigDict(extra="ignore", strict=True)

    messages: list[ChatMessage] = Field(min_length=1, max_length=1000)
    model: str = Field(default="bythebook", max_length=200)
    n: Literal[1] | None = None
    stream: bool | None = None
    stream_options: dict[str, Any] | None = None


class UrlCitation(ResponseModel):
    """The source of a part of the answer."""

    url: str
    title: str
    start_index: int
    end_index: int


class Annotation(ResponseModel):
    """A citation in OpenAI's format."""

    type: Literal["url_citation"] = "url_citation"
    url_citation: UrlCitation


class ChatAnswer(ResponseModel):
    """The answer as a message."""

    role: Literal["assistant"] = "assistant"
    content: str
    refusal: str | None = None
    annotations: list[Annotation]


class Choice(ResponseModel):
    """The only choice of a completion."""

    index: Literal[0] = 0
    message: ChatAnswer
    logprobs: None = None
    finish_reason: Literal["stop"] = "stop"


class Usage(ResponseModel):
    """The tokens used by the language model; 0 without a model."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class _ChatCompletion(ResponseModel):
    """An answer in OpenAI's format, with the AgentResponse under `bythebook`."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[Choice]
    usage: Usage


ChatCompletion = create_model(
    "ChatCompletion", __base__=_ChatCompletion, __doc__=_ChatCompletion.__doc__, bythebook=(AgentResponse, ...)
)


class Model(ResponseModel):
    """A model that a client can select: the book."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str


class Models(ResponseModel):
    """The available models."""

    object: Literal["list"] = "list"
    data: list[Model]


class OpenAIError(ResponseModel):
    """An ErrorResponse in OpenAI's format. Its `error` is called `code` here."""

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


class OpenAIErrorResponse(ResponseModel):
    """What failed, in OpenAI's format."""

    error: OpenAIError


OPENAI_ERROR_RESPONSES: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": OpenAIErrorResponse},
    "5XX": {"model": OpenAIErrorResponse},
}
"""The error responses of every OpenAI-compatible route."""
