"""The book for clients of OpenAI: any program that can chat with a model can ask it.

Such a client cannot take back what it has shown, so it is told only what is proven: a stream of it begins when the
answer is whole. Instructions, tools and temperatures in a request change nothing; the book's own settings hold.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from fastapi import APIRouter, Request, Response
from starlette.responses import JSONResponse

from bythebook.answers import AgentRequest
from bythebook.conversations import Message
from bythebook.conversations.followups import Exchange
from bythebook.conversations.openai_format import read
from bythebook.errors import InputError, NotFound
from bythebook.llm.context_budget import count
from bythebook.server import errors
from bythebook.server.auth import Purse
from bythebook.server.dependencies import TheCaller, TheDoor
from bythebook.server.middleware import StrictRoute
from bythebook.server.openai_schemas import OPENAI_FAILURES, ChatCompletion, ChatMessage, ChatRequest, Models
from bythebook.server.schemas import EVENTS
from bythebook.server.streams import Asked, happenings, last_event

router = APIRouter(route_class=StrictRoute, tags=["openai"])

MODEL = "bythebook"

_MARK = re.compile(r"\[(\d{1,4})\]")
_WORD = re.compile(r"\s*\S+\s*")


@router.post("/v1/chat/completions", response_model=ChatCompletion, responses=OPENAI_FAILURES | EVENTS)
async def complete(body: ChatRequest, request: Request, door: TheDoor, caller: TheCaller) -> Response:
    """Answer the last message. Those before it are the conversation, which is remembered by the client alone."""
    question, history = _read(body.messages)
    asked = Asked(caller.user_id, "", errors.request_id(request.scope))
    shown = history[-(door.settings.max_history // 2) :]
    events = door.book.stream(AgentRequest(question), user_id=caller.user_id, history=shown)
    purse = await Purse.opened(await door.gate.budgets(), caller)
    stream = door.desk.begin(asked, purse.spent_on(happenings(events, sources=False)))
    end = await last_event(stream, request.receive)
    said = json.loads(end.data)
    if end.name == "error":
        return errors.failed(request.scope, said)
    completion = _completion(said)
    if not body.stream:
        return JSONResponse(completion)
    usage = bool((body.stream_options or {}).get("include_usage"))
    lines = [json.dumps(chunk, ensure_ascii=False) for chunk in _chunks(completion, usage=usage)]
    text = "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"])
    return Response(text, media_type="text/event-stream", headers={"cache-control": "no-store"})


@router.get("/v1/models", response_model=Models, responses=OPENAI_FAILURES)
async def models(door: TheDoor) -> Response:
    """The book, as the one model there is, dated by when it was last read in."""
    try:
        async with door.book.edition() as edition:
            published = int(datetime.fromisoformat(edition.catalogue.fact("published_at")).timestamp())
    except NotFound:
        return JSONResponse({"object": "list", "data": []})
    book = {"id": MODEL, "object": "model", "created": published, "owned_by": MODEL}
    return JSONResponse({"object": "list", "data": [book]})


def _read(messages: list[ChatMessage]) -> tuple[str, list[Exchange]]:
    """The question, and the exchanges before it."""
    said = [(message.role, read(message.model_dump())["content"]) for message in messages]
    if said[-1][0] != "user":
        raise InputError("the last message must be the user's: it is the question.")
    history: list[Exchange] = []
    waiting = ""
    for role, content in said[:-1]:
        if role == "user":
            waiting = content.strip()
        elif role == "assistant" and waiting and content.strip():
            # The same rules as for a conversation that is kept here.
            history.append(Exchange(Message("user", waiting).content, Message("assistant", content).content))
            waiting = ""
    return said[-1][1], history


def _completion(said: dict[str, Any]) -> dict[str, Any]:
    written = min(count(said["answer"]), said["tokens_used"])
    return {
        "id": f"chatcmpl-{said['id']}",
        "object": "chat.completion",
        "created": int(datetime.fromisoformat(said["created_at"]).timestamp()),
        "model": MODEL,
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": said["answer"],
                    "refusal": None,
                    "annotations": list(_annotations(said)),
                },
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": said["tokens_used"] - written,
            "completion_tokens": written,
            "total_tokens": said["tokens_used"],
        },
        "bythebook": said,
    }


def _annotations(said: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Each mark in the answer with the citation it stands for."""
    cited = {citation["number"]: citation for citation in said["citations"]}
    for mark in _MARK.finditer(said["answer"]):
        if citation := cited.get(int(mark[1])):
            place = {"start_index": mark.start(), "end_index": mark.end()}
            yield {
                "type": "url_citation",
                "url_citation": {"url": citation["url"], "title": citation["title"]} | place,
            }


def _chunks(completion: dict[str, Any], *, usage: bool) -> Iterator[dict[str, Any]]:
    """The completion as a stream has it: who speaks, word by word, the citations, the end."""
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
