"""The API reference: one self-contained HTML page generated from the OpenAPI document, and the examples in it.

The examples are requests to a small book about a lighthouse, and their responses.
"""

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping
from html import escape
from importlib.resources import files
from types import MappingProxyType
from typing import Any

Json = Mapping[str, Any]


_LIMITS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "maxItems": "at most {} of them",
}


def content_security_policy() -> str:
    """The Content-Security-Policy of the page: only its own style sheet."""
    digest = base64.b64encode(hashlib.sha256(_style().encode()).digest()).decode()
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


Example = dict[str, Any]

QUESTION = "How often does the fog horn sound?"
QUOTE = "The horn gives two blasts of three seconds every ninety seconds."
PAGE = "https://lighthouse.example/signals/fog"
SESSION_ID = "03043f46-8a15-406c-88ad-adca16422897"
ANSWER_ID = "b426577c-9fd3-4d62-9b35-801226415294"
CHUNK_ID = "f632e9c3-7bce-57d6-8243-435255d094fa"
TIMESTAMP = "2026-11-16T16:49:50.658278+00:00"

CHAT: Example = {"role": "user", "content": QUESTION}

PASSAGE: Example = {
    "chunk_id": CHUNK_ID,
    "document_id": "f632e9c3-7bce-57d6-822b-1b2c05f61ba9",
    "text": f"{QUOTE} Ships know Brannock Point by this pattern.",
    "score": 0.66,
    "position": 1,
    "url": PAGE,
    "title": "Fog signals",
    "chunk_index": 1,
    "token_count": 21,
    "heading_hierarchy": ["Fog signals", "The horn's pattern"],
    "module_name": "Signals",
    "chapter_id": "signals/fog",
    "anchor": "the-horns-pattern",
    "rerank_score": 1.41,
    "start": 111,
    "fence": "",
    "table_header": "",
    "inline_code": [],
}
CONTEXT: Example = {
    "query": "fog horn",
    "results": [PASSAGE],
    "retrieved_at": TIMESTAMP,
    "filter_applied": "",
    "cache_hit": False,
    "total_tokens": 21,
}
CITATION: Example = {
    "number": 1,
    "title": "Fog signals",
    "url": f"{PAGE}#the-horns-pattern:~:text=The%20horn%20gives%20two%20blasts,ninety%20seconds.",
    "score": 0.66,
    "chunk_id": CHUNK_ID,
    "quote": QUOTE,
    "start": 0,
    "end": 64,
    "verified": True,
    "excerpt": QUOTE,
}
METADATA: Example = {
    "response_time_ms": 31.8,
    "index_generation": "g000001",
    "embedding_time_ms": 9.4,
    "retrieval_time_ms": 5.1,
    "reranking_time_ms": 92.4,
    "generation_time_ms": 12.7,
    "proof_time_ms": 0.0,
    "first_token_ms": None,
    "chunk_count": 1,
    "cache_hit": False,
    "reading": "full",
    "searches": 1,
    "passages_left_out": 0,
    "exchanges_left_out": 0,
    "removed": [],
    "proof": [],
    "confidence": 0.97,
}
ANSWER: Example = {
    "answer": f"{QUOTE} [1]",
    "outcome": "answered",
    "citations": [CITATION],
    "sources": [PASSAGE],
    "model": "extractive",
    "metadata": METADATA,
    "suggestions": [],
    "questions": [],
    "turn_number": 1,
    "tokens_used": 0,
    "session_id": SESSION_ID,
    "id": ANSWER_ID,
    "created_at": TIMESTAMP,
    "grounded": True,
    "retrieval_performed": True,
    "retrieval_count": 1,
    "retrieved_sources": [PAGE],
}
SESSION: Example = {
    "id": SESSION_ID,
    "user_id": "",
    "model": "",
    "status": "completed",
    "created_at": TIMESTAMP,
    "turn_count": 1,
    "retrieval_count": 1,
    "total_tokens": 175,
    "max_history": 20,
}
_DEFAULTS: Example = {"timestamp": TIMESTAMP, "tool_calls": [], "tool_call_id": None, "name": None, "metadata": {}}
MESSAGES: Example = {
    "session_id": SESSION_ID,
    "messages": [
        {"id": "6c1d0c0e-57a4-4a3c-8d61-0d3f6f6a2b11", **CHAT, "citations": [], "token_count": 8} | _DEFAULTS,
        {
            "id": "9a0f7d52-1c7b-4a2e-9d44-5b1c8a7e3f20",
            "role": "assistant",
            "content": ANSWER["answer"],
            "citations": [CITATION],
            "token_count": 16,
        }
        | _DEFAULTS,
    ],
}
RATING: Example = {"response_id": ANSWER_ID, "rating": "down", "reason": "It does not say why."}
FEEDBACK: Example = RATING | {"rated_at": TIMESTAMP}

ERROR: Example = {
    "error": "invalid_input",
    "message": "top_k: Input should be less than or equal to 10",
    "user_message": "Your question couldn't be processed. Please rephrase.",
    "detail": None,
    "status_code": 400,
    "retry_after": None,
    "recoverable": False,
    "request_id": "5f0c2a8be3c94c0c9f5b6a0e6d1f3a27",
}
OPENAI_ERROR: Example = {name: value for name, value in ERROR.items() if name != "error"} | {
    "message": "the last message must be the user's: it is the question.",
    "type": "invalid_request_error",
    "param": None,
    "code": ERROR["error"],
}
_URL_CITATION: Example = {"url": CITATION["url"], "title": "Fog signals", "start_index": 65, "end_index": 68}
COMPLETION: Example = {
    "id": f"chatcmpl-{ANSWER_ID}",
    "object": "chat.completion",
    "created": 1794847790,
    "model": "bythebook",
    "choices": [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": ANSWER["answer"],
                "refusal": None,
                "annotations": [{"type": "url_citation", "url_citation": _URL_CITATION}],
            },
            "logprobs": None,
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
    "bythebook": ANSWER | {"session_id": None},
}
MODELS: Example = {
    "object": "list",
    "data": [{"id": "bythebook", "object": "model", "created": 1794847780, "owned_by": "bythebook"}],
}

EXAMPLES: dict[str, list[Example]] = {
    "AgentRequest": [{"query": QUESTION}, {"query": QUESTION, "top_k": 3, "stream": True}],
    "AgentResponse": [ANSWER],
    "ChatCompletion": [COMPLETION],
    "ChatRequest": [{"model": "bythebook", "messages": [CHAT]}],
    "ErrorResponse": [ERROR],
    "Feedback": [FEEDBACK],
    "FeedbackRequest": [RATING],
    "Health": [{"status": "ready"}],
    "Messages": [MESSAGES],
    "Models": [MODELS],
    "OpenAIErrorResponse": [{"error": OPENAI_ERROR}],
    "RetrievalContext": [CONTEXT],
    "SearchRequest": [{"query": "fog horn", "top_k": 3}],
    "Session": [SESSION],
}
"""The examples of each schema by its name."""
