"""Conversion of dataclasses and errors to JSON, shared by the command line, HTTP and MCP."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from bythebook.errors import BookError
from bythebook.telemetry import redact, request_id


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
