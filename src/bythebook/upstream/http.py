"""Verdicts on the errors of `httpx`."""

from __future__ import annotations

import httpx

from bythebook.errors import BookError, DeadlineExceeded, ProviderError
from bythebook.upstream.failures import Failure, judge_status


def judge_http(upstream: str, exc: Exception, /, *, error: type[BookError] = ProviderError) -> Failure | None:
    """What `httpx` raised, in our terms; `error` is what this service's failures are called."""
    if isinstance(exc, httpx.HTTPStatusError):
        return judge_status(upstream, exc.response.status_code, headers=exc.response.headers, error=error)
    if isinstance(exc, httpx.TimeoutException):
        return Failure(DeadlineExceeded(f"{upstream} did not answer in time"), again=True, counts=True)
    if isinstance(exc, httpx.UnsupportedProtocol | httpx.LocalProtocolError):
        return None
    if isinstance(exc, httpx.TransportError | httpx.DecodingError):
        return Failure(error(f"the connection to {upstream} broke ({type(exc).__name__})"), again=True, counts=True)
    return None
