"""Error classification: the error for the caller, and whether it is retried and counted by the circuit breaker."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Protocol

from bythebook.errors import BookError, ContextOverflow, DeadlineExceeded, ProviderAuthError, ProviderError, RateLimited

# The only client errors (4xx) that may be retried: the request was not wrong, but too slow or too frequent.
_REQUEST_TIMEOUT = 408
_TOO_MANY_REQUESTS = 429
_TOO_LARGE = 413
_UNAUTHENTICATED, _FORBIDDEN = 401, 403


@dataclass(frozen=True, slots=True)
class ClassifiedError:
    """A foreign error, translated."""

    error: BookError
    """The error that the caller gets after the last attempt."""
    again: bool
    """Whether a retry can help."""
    counts: bool
    """Whether the circuit breaker counts it as a failure of the service. Rejections and rate limits do not count."""

    @classmethod
    def failure(cls, error: BookError) -> "ClassifiedError":
        """A failure of the service: it is retried, and it counts."""
        return cls(error, again=True, counts=True)

    @classmethod
    def rejection(cls, error: BookError) -> "ClassifiedError":
        """A request that would be rejected again: it is not retried, and it does not count."""
        return cls(error, again=False, counts=False)


class ErrorClassifier(Protocol):
    """Translates the errors of an adapter's client library."""

    def __call__(self, upstream: str, error: Exception, /) -> ClassifiedError | None:
        """The translated error, or None if it is not a failure of the service and must be raised unchanged."""
        ...


def classify_book_error(_upstream: str, error: Exception, /) -> ClassifiedError | None:
    """Classify a BookError by its own attributes. Any other error is a bug of the program."""
    if not isinstance(error, BookError):
        return None
    return ClassifiedError(error, again=error.recoverable, counts=error.recoverable and error.status_code >= 500)


def classify_status(
    upstream: str, status: int, *, headers: Mapping[str, str], error: type[BookError] = ProviderError, reason: str = ""
) -> ClassifiedError:
    """Classify an HTTP status of 400 or more.

    Retried: 408, 429 and every 5xx. Not retried: every other 4xx, including 409, because the same request would be
    rejected again.
    """
    detail = f"HTTP {status}, {reason}" if reason else f"HTTP {status}"
    wait = retry_after(headers)
    if status in (_UNAUTHENTICATED, _FORBIDDEN):
        auth = ProviderAuthError(
            f"{upstream} did not accept the API key ({detail}). Check it, and what it may be used for."
        )
        return ClassifiedError.rejection(auth)
    if status == _TOO_MANY_REQUESTS:
        return ClassifiedError(
            RateLimited(f"{upstream} is busy ({detail})", retry_after=wait), again=True, counts=False
        )
    if status == _TOO_LARGE:
        return ClassifiedError.rejection(ContextOverflow(f"{upstream} found the request too large ({detail})"))
    if status >= 500 or status == _REQUEST_TIMEOUT:
        failure = error(f"{upstream} failed ({detail})", retry_after=wait)
        return ClassifiedError(failure, again=True, counts=status >= 500)
    return ClassifiedError.rejection(error(f"{upstream} refused the request ({detail})"))


def retry_after(headers: Mapping[str, str], *, clock: Callable[[], float] = time.time) -> float | None:
    """The seconds to wait that a response asks for, or None if it has no valid value.

    A date is measured from the response's own `Date` header if it has one, so that a wrong clock does no harm.
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


def classify_http_error(
    upstream: str, exc: Exception, /, *, error: type[BookError] = ProviderError
) -> ClassifiedError | None:
    """Classify an error of `httpx`. Failures of the service become an `error`."""
    import httpx

    if isinstance(exc, httpx.HTTPStatusError):
        return classify_status(upstream, exc.response.status_code, headers=exc.response.headers, error=error)
    if isinstance(exc, httpx.TimeoutException):
        return ClassifiedError.failure(DeadlineExceeded(f"{upstream} did not answer in time"))
    if isinstance(exc, httpx.UnsupportedProtocol | httpx.LocalProtocolError):
        return None
    if isinstance(exc, httpx.TransportError | httpx.DecodingError):
        return ClassifiedError.failure(error(f"the connection to {upstream} broke ({type(exc).__name__})"))
    return None
