"""Verdicts on the errors of the `cohere` client."""

from __future__ import annotations

import re

from cohere.core.api_error import ApiError
from cohere.core.parse_error import ParsingError

from bythebook.errors import CohereAPIError, ConfigurationError
from bythebook.upstream.failures import Failure, judge_status
from bythebook.upstream.http import judge_http

_NOT_FOUND, _TOO_MANY_REQUESTS = 404, 429
# A trial key has its calls counted by the minute and by the month. Waiting helps with the first only.
_BY_THE_MONTH = re.compile(r"(/|per|a|each|this)\s*month|monthly", re.I)


def judge_cohere(upstream: str, exc: Exception, /, *, model: str = "") -> Failure | None:
    """What the client raised, in our terms."""
    if isinstance(exc, ParsingError):
        return Failure(CohereAPIError(f"{upstream} sent something that makes no sense"), again=True, counts=True)
    if not isinstance(exc, ApiError):
        return judge_http(upstream, exc, error=CohereAPIError)
    status = exc.status_code or 0
    if status < 400:
        return Failure(CohereAPIError(f"{upstream} sent something that is not JSON"), again=True, counts=True)
    if status == _NOT_FOUND:
        unknown = ConfigurationError(f"{upstream} has no model {model!r} (HTTP 404). Check the embedder's name.")
        return Failure(unknown, again=False, counts=False)
    if status == _TOO_MANY_REQUESTS and _BY_THE_MONTH.search(str(exc.body)):
        spent = CohereAPIError(
            f"the calls this {upstream} key has for a month are used up (HTTP 429). "
            "Use a production key, or wait for the next month."
        )
        return Failure(spent, again=False, counts=False)
    headers = {name.lower(): value for name, value in (exc.headers or {}).items()}
    return judge_status(upstream, status, headers=headers, error=CohereAPIError)
