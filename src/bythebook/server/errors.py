"""Error responses: every exception becomes an ErrorResponse that echoes no input and reveals no secret."""

import logging
import math
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import Scope

from bythebook.errors import BookError, InputError, NotFound
from bythebook.serialization import error_to_dict
from bythebook.telemetry import redact

logger = logging.getLogger(__name__)

_OPENAI_PATH = re.compile(r".*/v1/(?:chat/completions|responses|models)(?:/.*)?")
"""The paths whose clients expect errors in OpenAI's format."""


_MOST_FIELDS, _LONGEST_NAME = 20, 60
_NAME = re.compile(r"[A-Za-z_]\w{0,39}")


class MethodNotAllowed(InputError):
    """The address exists, but does not support the method."""

    code = "method_not_allowed"
    status_code = 405
    user_message = "That cannot be done here."

    def __init__(self, message: str, *, allowed: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.allowed = allowed


def install_error_handlers(app: FastAPI) -> None:
    """Make the app answer every error with an ErrorResponse."""
    for kind in (BookError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, _handle_error)


async def _handle_error(request: Request, error: Exception) -> JSONResponse:
    if isinstance(error, RequestValidationError):
        error = InputError(_describe_validation_errors(error.errors()))
    elif isinstance(error, HTTPException) and error.status_code == 404:
        error = NotFound("there is no such address. /docs lists the routes.")
    elif isinstance(error, HTTPException) and error.status_code < 500:
        error = InputError("the body could not be read. Send JSON.")
    return error_to_response(request.scope, error)


def error_to_response(scope: Scope, error: Exception) -> JSONResponse:
    """The response to a failed request. Details of unexpected errors are logged, not sent."""
    headers = {"allow": ", ".join(error.allowed)} if isinstance(error, MethodNotAllowed) else {}
    return make_error_response(scope, describe_error(error, request_id=get_request_id(scope)), headers=headers)


def make_error_response(
    scope: Scope, error: Mapping[str, Any], *, headers: Mapping[str, str] = MappingProxyType({})
) -> JSONResponse:
    """The response with this ErrorResponse, in the format that the client of this path expects."""
    all_headers = dict(headers)
    if error["retry_after"] is not None:
        all_headers["retry-after"] = str(error["retry_after"])
    if error["status_code"] == 401:
        all_headers["www-authenticate"] = "Bearer"
    body = to_openai_error(error) if _OPENAI_PATH.fullmatch(scope["path"]) else dict(error)
    return JSONResponse(body, error["status_code"], headers=all_headers)


def describe_error(error: BaseException, *, request_id: str | None) -> dict[str, Any]:
    """The error as an ErrorResponse. `retry_after` is in whole seconds, equal to the header."""
    if not isinstance(error, BookError):
        logger.error("a request failed unexpectedly", exc_info=error)
        error = BookError("an unexpected error; the log of the server has it under this request_id.")
    described = error_to_dict(error)
    wait = described["retry_after"]
    return described | {"retry_after": None if wait is None else max(1, math.ceil(wait)), "request_id": request_id}


def get_request_id(scope: Scope) -> str | None:
    found: str | None = scope.get("state", {}).get("request_id")
    return found


def _describe_validation_errors(details: Sequence[Any]) -> str:
    """Every wrong field of a request by its name, without its value."""
    if not details:
        return "the request could not be understood."
    first = details[0]
    if first["type"] == "json_invalid":
        return "the body is not valid JSON in UTF-8."
    if first["type"] in ("model_attributes_type", "missing") and tuple(first["loc"]) == ("body",):
        return "send a JSON object, with the header 'Content-Type: application/json'."
    return redact("; ".join(dict.fromkeys(map(_describe_field, details[:_MOST_FIELDS]))))


def _describe_field(detail: Mapping[str, Any]) -> str:
    # The first item of the location is where the field is: body, path or query.
    *parts, last = map(str, detail["loc"][1:] or ("",))
    if detail["type"] == "extra_forbidden":
        # Its name is input, which is only repeated if it can be the name of a field.
        return f"{'.'.join([*parts, last])}: there is no such field" if _NAME.fullmatch(last) else "an unknown field"
    place = ".".join([*parts, last])[:_LONGEST_NAME]
    return f"{place}: {detail['msg']}" if place else str(detail["msg"])


def to_openai_error(error: Mapping[str, Any]) -> dict[str, Any]:
    """The error in OpenAI's format, with the fields of the ErrorResponse added under `error`."""
    types = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
    default = "invalid_request_error" if error["status_code"] < 500 else "server_error"
    return {
        "error": {
            "message": error["message"],
            "type": types.get(error["status_code"], default),
            "param": None,
            "code": error["error"],
        }
        | {name: value for name, value in error.items() if name not in ("error", "message")}
    }
