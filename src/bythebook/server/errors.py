"""Failures: whatever goes wrong becomes an ErrorResponse that echoes no input and tells no secret."""

from __future__ import annotations

import logging
import math
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from bythebook.errors import BookError, InputError, NotFound
from bythebook.serialization import error_response

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fastapi import FastAPI
    from starlette.requests import Request
    from starlette.types import Scope

log = logging.getLogger(__name__)

SPOKEN_TO_BY_OPENAI_CLIENTS = ("/v1/chat/completions", "/v1/models")


class MethodNotAllowed(InputError):
    """The address exists, but not for this."""

    code = "method_not_allowed"
    status_code = 405
    user_message = "That cannot be done here."

    def __init__(self, message: str, *, allowed: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.allowed = allowed


def handle_failures(app: FastAPI) -> None:
    """Have the app answer every error in our words."""
    app.add_exception_handler(BookError, _own)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)


async def _own(request: Request, error: Exception) -> JSONResponse:
    return failure(request.scope, error)


async def _invalid(request: Request, error: Exception) -> JSONResponse:
    flaws = error.errors() if isinstance(error, RequestValidationError) else []
    return failure(request.scope, InputError(_said(flaws)))


async def _http(request: Request, error: Exception) -> JSONResponse:
    status = error.status_code if isinstance(error, HTTPException) else 500
    if status == 404:
        return failure(request.scope, NotFound("there is no such address. /docs lists those there are."))
    if status < 500:
        return failure(request.scope, InputError("the body could not be read. Send JSON."))
    return failure(request.scope, error)


def failure(scope: Scope, error: Exception) -> JSONResponse:
    """The response to a request that failed. What is not ours is logged and told to nobody."""
    headers = {"allow": ", ".join(error.allowed)} if isinstance(error, MethodNotAllowed) else {}
    return failed(scope, described(error, request_id=request_id(scope)), headers=headers)


def failed(scope: Scope, said: Mapping[str, Any], *, headers: Mapping[str, str] = MappingProxyType({})) -> JSONResponse:
    """The response that tells of an error, in the words of whoever asks."""
    told = dict(headers)
    if said["retry_after"] is not None:
        told["retry-after"] = str(said["retry_after"])
    if said["status_code"] == 401:
        told["www-authenticate"] = "Bearer"
    body = _for_openai(said) if scope["path"] in SPOKEN_TO_BY_OPENAI_CLIENTS else dict(said)
    return JSONResponse(body, said["status_code"], headers=told)


def described(error: BaseException, *, request_id: str | None) -> dict[str, Any]:
    """The error as an ErrorResponse. `retry_after` is whole seconds, as it stands in the header."""
    if not isinstance(error, BookError):
        log.error("a request failed unexpectedly", exc_info=error)
        error = BookError("an unexpected error; the log of the server has it under this request_id.")
    said = error_response(error)
    wait = said["retry_after"]
    return said | {"retry_after": None if wait is None else max(1, math.ceil(wait)), "request_id": request_id}


def request_id(scope: Scope) -> str | None:
    found: str | None = scope.get("state", {}).get("request_id")
    return found


def _said(flaws: Sequence[Any]) -> str:
    """What is wrong with a body, without a word of what was in it."""
    if not flaws:
        return "the request could not be understood."
    first = flaws[0]
    if first["type"] == "json_invalid":
        return "the body is not valid JSON in UTF-8."
    if first["type"] in ("model_attributes_type", "missing") and tuple(first["loc"]) == ("body",):
        return "send a JSON object, with the header 'Content-Type: application/json'."
    if first["type"] == "extra_forbidden":
        return "the request has a field that is not known. /docs lists those there are."
    # The first part is where to look: in the body, the address or its query.
    place = ".".join(map(str, first["loc"][1:]))
    return f"{place}: {first['msg']}" if place else str(first["msg"])


def _for_openai(said: Mapping[str, Any]) -> dict[str, Any]:
    """The same error as clients of OpenAI expect one; ours is in it, under `error`."""
    kind = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
    usual = "invalid_request_error" if said["status_code"] < 500 else "server_error"
    ours = {name: value for name, value in said.items() if name not in ("error", "message")}
    return {
        "error": {
            "message": said["message"],
            "type": kind.get(said["status_code"], usual),
            "param": None,
            "code": said["error"],
        }
        | ours
    }
