"""Conversion of dataclasses and errors to JSON, shared by the command line, HTTP and MCP."""

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from bythebook.errors import BookError
from bythebook.telemetry import redact, request_id

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Characters that a terminal obeys instead of showing them, without line breaks and tabs: text from outside may contain
them."""


def to_json(value: Any) -> Any:
    """Convert a value to JSON types: a dataclass to its fields and properties, a time to ISO 8601."""
    if is_dataclass(value) and not isinstance(value, type):
        properties = (name for name, member in vars(type(value)).items() if isinstance(member, property))
        names = [*(field.name for field in fields(value)), *properties]
        return {name: to_json(getattr(value, name)) for name in names}
    if isinstance(value, dict):
        return {str(name): to_json(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(inner) for inner in value]
    if isinstance(value, frozenset):
        return sorted(to_json(inner) for inner in value)
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value) if isinstance(value, Path) else value


def from_json(kind: Any, value: Any) -> Any:
    """Build a value of this type from the JSON of `to_json`. Unknown names are ignored, missing ones get defaults."""
    if value is None or isinstance(value, datetime):
        return value
    if isinstance(kind, type) and is_dataclass(kind):
        hints = _type_hints(kind)
        return kind(**{name: from_json(hint, value[name]) for name, hint in hints.items() if name in value})
    if get_origin(kind) is tuple:
        return tuple(from_json(get_args(kind)[0], each) for each in value)
    if get_origin(kind) in (Union, UnionType):
        return from_json(get_args(kind)[0], value)
    if kind is datetime:
        return datetime.fromisoformat(value)
    return kind(value) if isinstance(kind, type) and issubclass(kind, Enum) else value


@cache
def _type_hints(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {entry.name: hints[entry.name] for entry in fields(kind)}


def error_to_dict(error: BookError) -> dict[str, Any]:
    """Build an ErrorResponse: one message for the operator and one for the reader."""
    return {
        "error": error.code,
        "message": redact(str(error)),
        "user_message": error.reader_message,
        "detail": f"while {error.stage}" if error.stage else None,
        "status_code": error.status_code,
        "retry_after": error.retry_after,
        "recoverable": error.recoverable,
        "request_id": request_id.get() or None,
    }


def error_from_dict(response: dict[str, Any]) -> BookError:
    """Restore the error from an ErrorResponse."""
    kind = next((kind for kind in _error_classes(BookError) if kind.code == response["error"]), BookError)
    return kind(response["message"], retry_after=response["retry_after"])


def _error_classes(family: type[BookError]) -> Iterator[type[BookError]]:
    yield family
    for kind in family.__subclasses__():
        yield from _error_classes(kind)
