"""How our nouns look as JSON, the same at every door."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bythebook.errors import BookError
from bythebook.telemetry import masked, request_id

if TYPE_CHECKING:
    from collections.abc import Iterator


def as_json(value: Any) -> Any:
    """A value of ours in JSON's own types: nouns with their fields and properties, times in ISO 8601."""
    if is_dataclass(value) and not isinstance(value, type):
        names = [known.name for known in fields(value)] + _properties(type(value))
        return {name: as_json(getattr(value, name)) for name in names}
    if isinstance(value, dict):
        return {str(name): as_json(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(inner) for inner in value]
    if isinstance(value, frozenset):
        return sorted(as_json(inner) for inner in value)
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value) if isinstance(value, Path) else value


def _properties(kind: type) -> list[str]:
    return [name for name, member in vars(kind).items() if isinstance(member, property)]


def error_response(error: BookError) -> dict[str, Any]:
    """An ErrorResponse: what failed, in words for whoever runs the book and for whoever reads it."""
    return {
        "error": error.code,
        "message": masked(str(error)),
        "user_message": error.said_to_reader,
        "detail": f"while {error.stage}" if error.stage else None,
        "status_code": error.status_code,
        "retry_after": error.retry_after,
        "recoverable": error.recoverable,
        "request_id": request_id.get() or None,
    }


def as_error(response: dict[str, Any]) -> BookError:
    """What an ErrorResponse of ours tells of, as the error it was."""
    kind = next((kind for kind in _kinds(BookError) if kind.code == response["error"]), BookError)
    return kind(response["message"], retry_after=response["retry_after"])


def _kinds(family: type[BookError]) -> Iterator[type[BookError]]:
    yield family
    for kind in family.__subclasses__():
        yield from _kinds(kind)
