"""The reference: the API described for people, on one page made of the OpenAPI document that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from bythebook.server.permissions import PUBLIC, SCOPES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Json = Mapping[str, Any]

_LIMITS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "maxItems": "at most {} of them",
}


def policy() -> str:
    """What a browser may do on this page: show it with its own style."""
    digest = base64.b64encode(hashlib.sha256(_style().encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; frame-ancestors 'none'"


def reference(document: Json) -> str:
    """The whole page."""
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
    needed = SCOPES.get((method, path), PUBLIC)
    who = (
        "Open to everyone." if needed == PUBLIC else f"Where keys are needed, one with the scope <code>{needed}</code>."
    )
    named = [
        (given["name"], given["in"], given["schema"], given.get("required", False), given.get("description", ""))
        for given in call.get("parameters", ())
    ]
    rows = "".join(
        _row(name, f"{place}, {_type(schema)}", said, required=required)
        for name, place, schema, required, said in named
    )
    return (
        f'<section id="{_id(method, path)}"><h2><b>{method}</b> <code>{escape(path)}</code></h2>'
        f"<p>{_prose(call.get('description', call.get('summary', '')))}</p><p>{who}</p>"
        f"{_table(rows)}{_bodies(call)}</section>"
    )


def _bodies(call: Json) -> str:
    """What the body is, and what comes back."""
    parts = [f"<li>Body: {kind}</li>" for kind in _contents(call.get("requestBody", {}))]
    for status, told in call["responses"].items():
        kinds = " or ".join(_contents(told)) or escape(told.get("description", ""))
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
    shown = "".join(
        f'<pre tabindex="0">{escape(json.dumps(example, indent=2))}</pre>' for example in schema.get("examples", ())
    )
    return f'<section id="{escape(name)}"><h3>{escape(name)}</h3><p>{about}</p>{_table(rows)}{shown}</section>'


def _table(rows: str) -> str:
    head = "<tr><th>name</th><th>type</th><th>what it is</th></tr>"
    return (
        f'<div class="table" tabindex="0"><table><thead>{head}</thead><tbody>{rows}</tbody></table></div>'
        if rows
        else ""
    )


def _row(name: str, kind: str, said: str, *, required: bool, limits: Json | None = None) -> str:
    told = [_prose(said)] if said else []
    told += [
        words.format(escape(str((limits or {})[limit]))) for limit, words in _LIMITS.items() if limit in (limits or {})
    ]
    if required:
        told.append("required")
    return f"<tr><td><code>{escape(name)}</code></td><td>{kind}</td><td>{'; '.join(told)}</td></tr>"


def _type(schema: Json) -> str:
    """A type in a few words, with a link where it has a section of its own."""
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
    """A description, in which only code is marked."""
    parts = escape(" ".join(text.split())).split("`")
    return "".join(f"<code>{part}</code>" if at % 2 else part for at, part in enumerate(parts))


def _id(method: str, path: str) -> str:
    return escape(f"{method.lower()}{path}".replace("/", "-").replace("{", "").replace("}", ""))


def _style() -> str:
    return (files("bythebook.server") / "static" / "reference.css").read_text(encoding="utf-8")
