"""The API reference: one self-contained HTML page generated from the OpenAPI document, and the examples in it.

The examples are requests to a small book about a lighthouse, and their responses.
"""

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from html import escape
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any

from bythebook.answers import AgentResponse, Outcome, ResponseMetadata
from bythebook.conversations import Conversation, ConversationSummary, ConversationTurn, Message, TurnState
from bythebook.errors import InputError
from bythebook.retrieval import RetrievalContext, RetrievalResult, to_citation
from bythebook.serialization import to_json
from bythebook.server import errors
from bythebook.server.routes import completions, sessions

Json = Mapping[str, Any]


_LIMITS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "maxItems": "at most {} of them",
}


def content_security_policy(style: str) -> str:
    """The Content-Security-Policy of a page that consists of text and this style sheet."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; frame-ancestors 'none'"


def render_reference(document: Json) -> str:
    """The HTML page of an OpenAPI document."""
    calls = [
        (method.upper(), path, call) for path, methods in document["paths"].items() for method, call in methods.items()
    ]
    schemas = document["components"]["schemas"]
    title, summary, version = (escape(document["info"][name]) for name in ("title", "summary", "version"))
    contents = "".join(
        f'<li><a href="#{_id(method, path)}"><b>{method}</b> <code>{escape(path)}</code></a></li>'
        for method, path, _ in calls
    )
    main = "".join(
        [
            f"<h1>{title}</h1><p>{summary} Version {version}.</p>",
            '<p>Programs read the same as <a href="openapi.json">openapi.json</a>.</p>',
            "<p>Where a server has keys, send one with each call: <code>Authorization: Bearer KEY</code>.</p>",
            *(_call(method, path, call) for method, path, call in calls),
            "<h2>What is sent and received</h2>",
            *(_schema(name, schema) for name, schema in schemas.items()),
        ]
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><link rel="icon" href="data:,">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}: the API</title><style>{_style()}</style></head><body>"
        f'<nav aria-label="Routes"><ul>{contents}</ul></nav><main>{main}</main></body></html>'
    )


def _call(method: str, path: str, call: Json) -> str:
    scopes = [scope for scheme in call["security"] for scopes in scheme.values() for scope in scopes]
    access = f"Requires the scope <code>{scopes[0]}</code> where the server has keys." if scopes else "No key needed."
    rows = "".join(
        _row(
            parameter["name"],
            f"{parameter['in']}, {_type(parameter['schema'])}",
            parameter.get("description", ""),
            required=parameter.get("required", False),
        )
        for parameter in call.get("parameters", ())
    )
    return (
        f'<section id="{_id(method, path)}"><h2><b>{method}</b> <code>{escape(path)}</code></h2>'
        f"<p>{_prose(call.get('description', call.get('summary', '')))}</p><p>{access}</p>"
        f"{_table(rows)}{_bodies(call)}</section>"
    )


def _bodies(call: Json) -> str:
    """The request body and the responses."""
    parts = [f"<li>Body: {kind}</li>" for kind in _contents(call.get("requestBody", {}))]
    for status, response in call["responses"].items():
        kinds = " or ".join(_contents(response)) or escape(response.get("description", ""))
        parts.append(f"<li><code>{escape(status)}</code>: {kinds}</li>")
    return f"<ul>{''.join(parts)}</ul>"


def _contents(holder: Json) -> Iterator[str]:
    for kind, content in holder.get("content", {}).items():
        schema = content.get("schema") or {}
        yield _type(schema) if kind == "application/json" else f"<code>{escape(kind)}</code>"


def _schema(name: str, schema: Json) -> str:
    required = schema.get("required", ())
    rows = "".join(
        _row(field, _type(inner), inner.get("description", ""), required=field in required, limits=inner)
        for field, inner in schema.get("properties", {}).items()
    )
    about = _prose(schema.get("description", ""))
    examples = "".join(
        f'<pre tabindex="0">{escape(json.dumps(example, indent=2))}</pre>' for example in schema.get("examples", ())
    )
    return f'<section id="{escape(name)}"><h3>{escape(name)}</h3><p>{about}</p>{_table(rows)}{examples}</section>'


def _table(rows: str) -> str:
    head = "<tr><th>name</th><th>type</th><th>what it is</th></tr>"
    return (
        f'<div class="table" tabindex="0"><table><thead>{head}</thead><tbody>{rows}</tbody></table></div>'
        if rows
        else ""
    )


def _row(name: str, kind: str, description: str, *, required: bool, limits: Json = MappingProxyType({})) -> str:
    notes = [_prose(description)] if description else []
    notes += [words.format(escape(str(limits[limit]))) for limit, words in _LIMITS.items() if limit in limits]
    if required:
        notes.append("required")
    return f"<tr><td><code>{escape(name)}</code></td><td>{kind}</td><td>{'; '.join(notes)}</td></tr>"


def _type(schema: Json) -> str:
    """A short name of the type, with a link if the page has a section for it."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#{name}">{name}</a>'
    if inner := schema.get("anyOf") or schema.get("oneOf"):
        return " or ".join(map(_type, inner))
    if "enum" in schema:
        return " or ".join(f"<code>{escape(str(value))}</code>" for value in schema["enum"])
    if "const" in schema:
        return f"<code>{escape(str(schema['const']))}</code>"
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return escape(str(schema.get("format") or schema.get("type") or "anything"))


def _prose(text: str) -> str:
    """A description as HTML: only code in backticks is marked up."""
    parts = escape(" ".join(text.split())).split("`")
    return "".join(f"<code>{part}</code>" if at % 2 else part for at, part in enumerate(parts))


def _id(method: str, path: str) -> str:
    return escape(f"{method.lower()}{path}".replace("/", "-").replace("{", "").replace("}", ""))


def _style() -> str:
    return (files("bythebook.server") / "static" / "reference.css").read_text(encoding="utf-8")


_DATA = json.loads(Path(__file__).with_suffix(".json").read_bytes())
_TIME = datetime(2026, 11, 16, 16, 49, 50, 658278, tzinfo=UTC)
_CHAT = {"role": "user", "content": _DATA["question"]}
_PASSAGE = RetrievalResult(**_DATA["passage"])
_CITATION = to_citation(_PASSAGE, 0, len(_DATA["quote"]), number=1)
_MESSAGES = [Message(**row, timestamp=_TIME) for row in _DATA["messages"]]
_MESSAGES[-1] = replace(_MESSAGES[-1], citations=(to_json(_CITATION),))
_SESSION = Conversation(_MESSAGES, **_DATA["session"], created_at=_TIME)
_ANSWER = to_json(
    AgentResponse(
        _MESSAGES[-1].content,
        Outcome.ANSWERED,
        (_CITATION,),
        (_PASSAGE,),
        "extractive",
        ResponseMetadata(**_DATA["metadata"]),
        session_id=_SESSION.id,
        id="b426577c-9fd3-4d62-9b35-801226415294",
        created_at=_TIME,
    )
)
_SUMMARY = ConversationSummary(_SESSION.id, _DATA["question"], _TIME, _TIME, turn_count=1)
_TURN = ConversationTurn(
    _SESSION.id,
    1,
    _DATA["question"],
    _DATA["question"],
    (_PASSAGE,),
    _ANSWER,
    TurnState.COMPLETED,
    created_at=_TIME,
    duration_seconds=0.03,
    id="0d4a6c1f-3b58-4c7e-9f0e-6b1f8d2c5a77",
)
_RATING = {"response_id": _ANSWER["id"], "rating": "down", "reason": "It does not say why."}
_REQUEST_ID = "5f0c2a8be3c94c0c9f5b6a0e6d1f3a27"
_ERROR = errors.describe_error(InputError("top_k: Input should be less than or equal to 10"), request_id=_REQUEST_ID)
_NO_QUESTION = errors.describe_error(
    InputError("the last message must be the user's: it is the question."), request_id=_REQUEST_ID
)

EXAMPLES: dict[str, list[Json]] = {
    "AgentRequest": [{"query": _DATA["question"]}, {"query": _DATA["question"], "top_k": 3, "stream": True}],
    "AgentResponse": [_ANSWER],
    "ChatCompletion": [completions.to_completion(_ANSWER | {"session_id": None})],
    "ChatRequest": [{"model": "bythebook", "messages": [_CHAT]}],
    "ErrorResponse": [_ERROR],
    "Feedback": [_RATING | {"rated_at": _TIME.isoformat()}],
    "FeedbackRequest": [_RATING],
    "Health": [{"status": "ready"}],
    "Introduction": [
        {"name": _PASSAGE.title, "sections": [], "questions": [_DATA["question"]], "url": _PASSAGE.url},
    ],
    "Messages": [{"messages": [to_json(each) for each in _SESSION.messages[1:]], "has_more": False}],
    "Model": completions.list_book(published=1794847780)["data"],
    "Models": [completions.list_book(published=1794847780)],
    "OpenAIErrorResponse": [errors.to_openai_error(_NO_QUESTION)],
    "RetrievalContext": [to_json(RetrievalContext("fog horn", (_PASSAGE,), _TIME))],
    "SearchRequest": [{"query": "fog horn", "top_k": 3}],
    "Session": [sessions.to_response(_SESSION)],
    "Sessions": [{"sessions": [to_json(_SUMMARY)], "has_more": False}],
    "Turns": [{"turns": [to_json(_TURN)], "has_more": False}],
}
"""The examples of each schema by its name."""
