"""What a failure means: what the caller is told, whether trying again can help, and after how long.

Verdicts on the errors of `httpx`.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Protocol

import httpx

from bythebook.errors import BookError, ContextOverflow, DeadlineExceeded, ProviderAuthError, ProviderError, RateLimited

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


# Of the refusals (4xx), only these say nothing about the request itself: it came too slowly, or too often.
_REQUEST_TIMEOUT = 408
_TOO_MANY_REQUESTS = 429
_TOO_LARGE = 413
_UNAUTHENTICATED, _FORBIDDEN = 401, 403


@dataclass(frozen=True, slots=True)
class Failure:
    """A foreign error in our terms."""

    error: BookError
    """What the caller gets when this was the last attempt."""
    again: bool
    """Whether another attempt can help."""
    counts: bool
    """Whether it is a sign of an ill service, which the circuit breaker counts. Refusals and rate limits are not."""


class Judge(Protocol):
    """An adapter's verdict on what its client library raised."""

    def __call__(self, upstream: str, error: Exception, /) -> Failure | None:
        """The error in our terms, or None where it is no failure of the upstream and must pass as it is."""
        ...


def judge_ours(_upstream: str, error: Exception, /) -> Failure | None:
    """Our own errors are taken at their word, any other is nobody's failure but the program's."""
    if not isinstance(error, BookError):
        return None
    return Failure(error, again=error.recoverable, counts=error.recoverable and error.status_code >= 500)


def judge_status(
    upstream: str, status: int, *, headers: Mapping[str, str], error: type[BookError] = ProviderError, reason: str = ""
) -> Failure:
    """What an HTTP status of 400 or more means.

    Tried again: 408, 429 and every 5xx. Not tried again: every other 4xx, 409 among them, because the same request
    would be refused the same way.
    """
    said = f"HTTP {status}, {reason}" if reason else f"HTTP {status}"
    wait = retry_after(headers)
    if status in (_UNAUTHENTICATED, _FORBIDDEN):
        auth = ProviderAuthError(
            f"{upstream} did not accept the API key ({said}). Check it, and what it may be used for."
        )
        return Failure(auth, again=False, counts=False)
    if status == _TOO_MANY_REQUESTS:
        return Failure(RateLimited(f"{upstream} is busy ({said})", retry_after=wait), again=True, counts=False)
    if status == _TOO_LARGE:
        return Failure(ContextOverflow(f"{upstream} found the request too large ({said})"), again=False, counts=False)
    if status >= 500 or status == _REQUEST_TIMEOUT:
        ill = error(f"{upstream} failed ({said})", retry_after=wait)
        return Failure(ill, again=True, counts=status >= 500)
    return Failure(error(f"{upstream} refused the request ({said})"), again=False, counts=False)


def retry_after(headers: Mapping[str, str], *, clock: Callable[[], float] = time.time) -> float | None:
    """The seconds a response asks us to wait, or None where it asks for nothing that can be understood.

    A date is measured from the response's own `Date` where it has one, so that a wrong clock here or there is harmless.
    """
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        seconds = _number(headers.get(name, ""))
        if seconds is not None:
            return max(0.0, seconds * unit)
    then = _moment(headers.get("retry-after", ""))
    if then is None:
        return None
    sent = _moment(headers.get("date", ""))
    return max(0.0, then - (clock() if sent is None else sent))


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _moment(text: str) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        return None


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
