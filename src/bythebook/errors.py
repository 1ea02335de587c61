"""Every error a caller can meet.

    BookError
    ├── ConfigurationError      a setting or key is missing or wrong
    ├── InputError              the question or argument cannot be used
    │   ├── TooLarge            there is more of it than is read
    │   └── Conflict            it contradicts what was asked before
    ├── AccessDenied            the caller's key is missing or not good
    │   └── Forbidden           the caller's key is good, but not for this
    ├── NotFound                no such book, session or page
    ├── RetrievalError          the index could not be searched
    │   ├── QdrantConnectionError
    │   └── CohereAPIError
    ├── ProviderError           the model's provider failed
    │   └── ProviderAuthError   the model's provider does not accept our key
    ├── RateLimited             somebody asked us to wait
    ├── Unavailable             a part is down or shutting down
    ├── DeadlineExceeded        the time allowed ran out
    └── ContextOverflow         the conversation no longer fits the model

An error that knows them carries the `stage` of the request it happened in and, in `retry_after`, the seconds to wait
before asking again.

Adapters translate foreign errors into these at the seam; doors turn them into an exit code, a status or an event.
"""

from __future__ import annotations

import math
from typing import ClassVar


class BookError(Exception):
    """Something failed that a person can act on. The message says what, which one, and what to do."""

    code: ClassVar[str] = "error"
    status_code: ClassVar[int] = 500
    recoverable: ClassVar[bool] = False
    user_message: ClassVar[str] = "Something went wrong. Please try again."

    def __init__(self, message: str = "", *, stage: str = "", retry_after: float | None = None) -> None:
        super().__init__(message)
        self.stage = stage
        self.retry_after = retry_after

    @property
    def said_to_reader(self) -> str:
        """`user_message` with the seconds to wait filled in, rounded up so that nobody comes back too early."""
        return self.user_message.format(retry_after=max(1, math.ceil(self.retry_after or 0)))


class ConfigurationError(BookError):
    """A setting, a key or a file the program needs is missing or wrong."""

    code = "configuration_error"
    user_message = "The book is not set up correctly. Please tell its owner."


class InputError(BookError):
    """What was asked cannot be used as it is."""

    code = "invalid_input"
    status_code = 400
    user_message = "Your question couldn't be processed. Please rephrase."


class TooLarge(InputError):
    """There is more of it than is read."""

    status_code = 413
    user_message = "That is too much at once. Please send less."


class Conflict(InputError):
    """It contradicts what was asked before."""

    code = "conflict"
    status_code = 409
    user_message = "That contradicts an earlier request. Please try again."


class AccessDenied(BookError):
    """The caller has no key, or one that is not good."""

    code = "auth_error"
    status_code = 401
    user_message = "Authentication failed. Please check your API keys."


class Forbidden(AccessDenied):
    """The caller's key is good, but not for this."""

    status_code = 403


class NotFound(BookError):
    """The thing named does not exist."""

    code = "not_found"
    status_code = 404
    user_message = "That could not be found."


class RetrievalError(BookError):
    """The index could not be searched."""

    code = "retrieval_error"
    status_code = 503
    recoverable = True
    user_message = "Could not search the book content. Please try again."


class QdrantConnectionError(RetrievalError):
    """The Qdrant server did not answer as it should."""


class CohereAPIError(RetrievalError):
    """Cohere did not embed the text."""


class ProviderError(BookError):
    """The model's provider failed."""

    code = "api_error"
    status_code = 502
    recoverable = True
    user_message = "There was a problem connecting to the AI service. Please try again."


class ProviderAuthError(ProviderError):
    """The model's provider does not accept our key, or not for what we asked."""

    code = "provider_auth"
    recoverable = False
    user_message = "Authentication failed. Please check your API keys."


class RateLimited(BookError):
    """Somebody asked us to slow down."""

    code = "rate_limit"
    status_code = 429
    recoverable = True
    user_message = "The service is busy. Please wait {retry_after} seconds and try again."


class Unavailable(BookError):
    """A part is down, or the service is shutting down."""

    code = "unavailable"
    status_code = 503
    recoverable = True
    user_message = "The book is not available right now. Please try again in a moment."


class DeadlineExceeded(BookError):
    """The time allowed for a request ran out."""

    code = "timeout"
    status_code = 504
    recoverable = True
    user_message = "The answer took too long. Please try again."


class ContextOverflow(BookError):
    """The conversation no longer fits into the model's window."""

    code = "context_overflow"
    status_code = 413
    user_message = "Your conversation is too long. Type 'clear' to start fresh."
