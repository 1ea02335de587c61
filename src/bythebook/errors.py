"""The exceptions of this package.

    BookError
    ├── ConfigurationError      a setting or key is missing or invalid
    ├── InputError              the question or argument is invalid
    │   ├── TooLarge            the input exceeds its size limit
    │   └── Conflict            the request contradicts an earlier one
    ├── AccessDenied            the key of the caller is missing or invalid
    │   └── Forbidden           the key of the caller lacks a scope
    ├── NotFound                the book, session or page does not exist
    ├── RetrievalError          the index could not be searched
    │   ├── QdrantConnectionError
    │   └── CohereAPIError
    ├── ProviderError           the model's provider failed
    │   └── ProviderAuthError   the model's provider rejected our key
    ├── RateLimited             a rate limit was exceeded
    ├── Unavailable             a component is down or shutting down
    ├── DeadlineExceeded        the deadline of the request has passed
    └── ContextOverflow         the conversation exceeds the context window

If known, an error has the `stage` of the request in which it occurred and, in `retry_after`, the seconds to wait before
a retry.

Adapters translate the exceptions of libraries into these. Entry points turn them into an exit code, a status or an
event.
"""

import math
from typing import ClassVar


class BookError(Exception):
    """A failure that a person can act on. The message says what failed, which one, and what to do."""

    code: ClassVar[str] = "error"
    status_code: ClassVar[int] = 500
    recoverable: ClassVar[bool] = False
    user_message: ClassVar[str] = "Something went wrong. Please try again."

    def __init__(self, message: str = "", *, stage: str = "", retry_after: float | None = None) -> None:
        super().__init__(message)
        self.stage = stage
        self.retry_after = retry_after

    @property
    def reader_message(self) -> str:
        """`user_message` with the seconds to wait, rounded up so that a retry is never too early."""
        return self.user_message.format(retry_after=max(1, math.ceil(self.retry_after or 0)))


class ConfigurationError(BookError):
    """A required setting, key or file is missing or invalid."""

    code = "configuration_error"
    user_message = "The book is not set up correctly. Please tell its owner."


class InputError(BookError):
    """The question or argument is invalid."""

    code = "invalid_input"
    status_code = 400
    user_message = "Your question couldn't be processed. Please rephrase."


class TooLarge(InputError):
    """The input exceeds its size limit."""

    status_code = 413
    user_message = "That is too much at once. Please send less."


class Conflict(InputError):
    """The request contradicts an earlier one."""

    code = "conflict"
    status_code = 409
    user_message = "That contradicts an earlier request. Please try again."


class AccessDenied(BookError):
    """The key of the caller is missing or invalid."""

    code = "auth_error"
    status_code = 401
    user_message = "Authentication failed. Please check your API keys."


class Forbidden(AccessDenied):
    """The key of the caller lacks the required scope."""

    status_code = 403


class NotFound(BookError):
    """The named book, session or page does not exist."""

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
    """The Qdrant server is unreachable or sent an invalid response."""


class CohereAPIError(RetrievalError):
    """Cohere failed to embed the text."""


class ProviderError(BookError):
    """The model's provider failed."""

    code = "api_error"
    status_code = 502
    recoverable = True
    user_message = "There was a problem connecting to the AI service. Please try again."


class ProviderAuthError(ProviderError):
    """The model's provider rejected our key, or the key lacks a permission."""

    code = "provider_auth"
    recoverable = False
    user_message = "Authentication failed. Please check your API keys."


class RateLimited(BookError):
    """A rate limit was exceeded."""

    code = "rate_limit"
    status_code = 429
    recoverable = True
    user_message = "The service is busy. Please wait {retry_after} seconds and try again."


class Unavailable(BookError):
    """A component is down, or the service is shutting down."""

    code = "unavailable"
    status_code = 503
    recoverable = True
    user_message = "The book is not available right now. Please try again in a moment."


class DeadlineExceeded(BookError):
    """The deadline of the request has passed."""

    code = "timeout"
    status_code = 504
    recoverable = True
    user_message = "The answer took too long. Please try again."


class ContextOverflow(BookError):
    """The conversation exceeds the context window of the model."""

    code = "context_overflow"
    status_code = 413
    user_message = "Your conversation is too long. Type 'clear' to start fresh."
