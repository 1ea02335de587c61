"""The book for clients of OpenAI: any program that can chat with a model can ask it.

Such a client cannot take back text that it has shown, so it gets only the verified answer: a stream begins when the
answer is complete. Instructions, tools and temperatures of a request are ignored; the book's settings apply.
"""

import json
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Literal

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field, create_model
from starlette.responses import JSONResponse

from bythebook.access import Scope
from bythebook.answers import AgentRequest
from bythebook.book import Book
from bythebook.conversations.openai_format import parse_message
from bythebook.errors import InputError, NotFound
from bythebook.llm.context_budget import count_tokens
from bythebook.server import errors
from bythebook.server.endpoints import CallerDep, ContextDep, StrictJsonRoute, requires
from bythebook.server.schemas import EVENT_STREAM_RESPONSE, AgentResponse, ErrorFields, ResponseModel
from bythebook.server.streams import StreamKey, run_question, wait_for_last_event

router = APIRouter(route_class=StrictJsonRoute, tags=["openai"])

MODEL = "bythebook"

_MARK = re.compile(r"\[(\d{1,4})\]")
_WORD = re.compile(r"\s*\S+\s*")


class ChatMessage(BaseModel):
    """A chat message in OpenAI's format. Other fields are ignored."""

    model_config = ConfigDict(extra="ignore", strict=True)

    role: str = Field(max_length=20)
    content: str | list[dict[str, Any]] | None = None


class TextFormat(BaseModel):
    """The only format of answers."""

    type: Literal["text"]


class ChatRequest(BaseModel):
    """A request for a chat completion. Other fields are ignored: the settings of the book apply."""

    model_config = ConfigDict(extra="ignore", strict=True)

    tools: list[Any] | None = Field(default=None, max_length=0, description="The book calls no tools.")
    functions: list[Any] | None = Field(default=None, max_length=0, description="The book calls no functions.")
    tool_choice: Literal["none", "auto"] | None = Field(default=None, description="No tool can be required.")
    response_format: TextFormat | None = Field(default=None, description="The book answers in text.")
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


class OpenAIError(ErrorFields):
    """An ErrorResponse in OpenAI's format. Its `error` is called `code` here."""

    type: str
    param: None
    code: str


class OpenAIErrorResponse(ResponseModel):
    """What failed, in OpenAI's format."""

    error: OpenAIError


OPENAI_ERROR_RESPONSES: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": OpenAIErrorResponse},
    "5XX": {"model": OpenAIErrorResponse},
}
"""The error responses of every OpenAI-compatible route."""


@router.post(
    "/v1/chat/completions", response_model=ChatCompletion, responses=OPENAI_ERROR_RESPONSES | EVENT_STREAM_RESPONSE
)
@requires(Scope.ASK, admission=True)
async def complete(body: ChatRequest, request: Request, context: ContextDep, caller: CallerDep) -> Response:
    """Answer the last message. The messages before it are the conversation; only the client keeps it."""
    question, history = _split_messages(body.messages)
    asked = AgentRequest(question, store=False)
    events = context.book.stream(asked, user_id=caller.user_id, history=history[-context.settings.max_history :])
    refund = await context.authenticator.charge(caller)
    key = StreamKey(caller.user_id, "", errors.get_request_id(request.scope))
    stream = context.admission.start(key, lambda stream: run_question(stream, events, refund=refund))
    last = await wait_for_last_event(stream, request.receive)
    answer = json.loads(last.data)
    if last.name == "error":
        return errors.make_error_response(request.scope, answer)
    completion = to_completion(answer)
    if not body.stream:
        return JSONResponse(completion)
    usage = bool((body.stream_options or {}).get("include_usage"))
    lines = [json.dumps(chunk, ensure_ascii=False) for chunk in _chunks(completion, usage=usage)]
    text = "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"])
    return Response(text, media_type="text/event-stream", headers={"cache-control": "no-store"})


@router.get("/v1/models/{model_id}", response_model=Model, responses=OPENAI_ERROR_RESPONSES)
@requires(Scope.ASK)
async def read_model(model_id: str, context: ContextDep) -> Response:
    """The book as a model."""
    published = await _read_publication_time(context.book)
    if model_id != MODEL or published is None:
        raise NotFound(f"the only model is {MODEL!r}, once a book is ingested.")
    return JSONResponse(list_book(published=published)["data"][0])


@router.get("/v1/models", response_model=Models, responses=OPENAI_ERROR_RESPONSES)
@requires(Scope.ASK)
async def models(context: ContextDep) -> Response:
    """The book as the only model. Its date is the date of the last ingest."""
    published = await _read_publication_time(context.book)
    return JSONResponse({"object": "list", "data": []} if published is None else list_book(published=published))


async def _read_publication_time(book: Book) -> int | None:
    try:
        async with book.snapshot() as snapshot:
            return int(datetime.fromisoformat(snapshot.catalog.get_fact("published_at")).timestamp())
    except NotFound:
        return None


def _split_messages(messages: list[ChatMessage]) -> tuple[str, list[dict[str, Any]]]:
    """The question, and the messages before it."""
    *history, last = [message.model_dump() for message in messages]
    if last["role"] != "user":
        raise InputError("the last message must be the user's: it is the question.")
    return parse_message(last)["content"], history


def list_book(*, published: int) -> dict[str, Any]:
    """The list of models: the book, with the time of its publication."""
    book = {"id": MODEL, "object": "model", "created": published, "owned_by": MODEL}
    return {"object": "list", "data": [book]}


def to_completion(answer: dict[str, Any]) -> dict[str, Any]:
    """The completion that contains this answer."""
    # Without a model no token was used, and its vocabulary need not be loaded.
    written = min(count_tokens(answer["answer"]), answer["tokens_used"]) if answer["tokens_used"] else 0
    return {
        "id": f"chatcmpl-{answer['id']}",
        "object": "chat.completion",
        "created": int(datetime.fromisoformat(answer["created_at"]).timestamp()),
        "model": MODEL,
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": answer["answer"],
                    "refusal": None,
                    "annotations": list(_annotations(answer)),
                },
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": answer["tokens_used"] - written,
            "completion_tokens": written,
            "total_tokens": answer["tokens_used"],
        },
        "bythebook": answer,
    }


def _annotations(answer: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The citation of each mark in the answer, with the position of the mark."""
    cited = {citation["number"]: citation for citation in answer["citations"]}
    for mark in _MARK.finditer(answer["answer"]):
        if citation := cited.get(int(mark[1])):
            place = {"start_index": mark.start(), "end_index": mark.end()}
            yield {
                "type": "url_citation",
                "url_citation": {"url": citation["url"], "title": citation["title"]} | place,
            }


def _chunks(completion: dict[str, Any], *, usage: bool) -> Iterator[dict[str, Any]]:
    """The chunks of a streamed completion: the role, word by word the text, the citations, the end."""
    common = {name: completion[name] for name in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    message = completion["choices"][0]["message"]

    def chunk(delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return common | {"choices": [choice]}

    yield chunk({"role": "assistant", "content": ""})
    for word in _WORD.findall(message["content"]):
        yield chunk({"content": word})
    yield chunk({"annotations": message["annotations"]})
    yield chunk({}, "stop") | {"bythebook": completion["bythebook"]}
    if usage:
        yield common | {"choices": [], "usage": completion["usage"]}
