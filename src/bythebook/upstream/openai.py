"""Classification of the errors of the `openai` client, for any provider."""

import json
import re

import openai

from bythebook.errors import BookError, ContextOverflow, DeadlineExceeded, ProviderError
from bythebook.upstream.classify import ClassifiedError, classify_status

# OpenAI and Groq send a code; vLLM, llama.cpp and OpenRouter send a sentence.
_CONTEXT_OVERFLOW = re.compile(
    r"context_length_exceeded|exceed_context_size|(maximum context|context) (length|size|window)", re.I
)
# It has the status of a rate limit, but waiting does not help: the account needs credit.
_OUT_OF_CREDIT = "insufficient_quota"
# The only part of a provider's error that is repeated: other text may contain keys, prompts or addresses.
_IDENTIFIER = re.compile(r"[a-z]+(_[a-z]+)*")


def classify_openai_error(
    upstream: str, exc: Exception, /, *, error: type[BookError] = ProviderError
) -> ClassifiedError | None:
    """Classify an error of the client. Failures of the service become an `error`."""
    if isinstance(exc, openai.APIStatusError):
        return _classify_status(upstream, exc, error)
    if isinstance(exc, openai.APITimeoutError):
        return ClassifiedError.failure(DeadlineExceeded(f"{upstream} did not answer in time"))
    if isinstance(exc, openai.APIConnectionError):
        return ClassifiedError.failure(error(f"the connection to {upstream} broke"))
    if isinstance(exc, openai.APIError):
        code = _identifier(exc)
        return ClassifiedError.failure(error(f"{upstream} failed while answering" + (f" ({code})" if code else "")))
    if isinstance(exc, json.JSONDecodeError | UnicodeDecodeError):
        # The client parses the response and does not translate the parser's error.
        return ClassifiedError.failure(error(f"{upstream} sent something that is not JSON"))
    return None


def _classify_status(upstream: str, exc: openai.APIStatusError, error: type[BookError]) -> ClassifiedError:
    if exc.status_code < 500 and _CONTEXT_OVERFLOW.search(f"{exc.code} {exc.type} {exc.message}"):
        overflow = ContextOverflow(f"the conversation no longer fits the model of {upstream}")
        return ClassifiedError.rejection(overflow)
    if exc.code == _OUT_OF_CREDIT:
        failure = error(f"{upstream} refuses the request: the account has no credit left ({_OUT_OF_CREDIT})")
        return ClassifiedError.rejection(failure)
    return classify_status(
        upstream, exc.status_code, headers=exc.response.headers, error=error, reason=_identifier(exc)
    )


def _identifier(exc: openai.APIError) -> str:
    """The provider's own code for the error, if it is a plain identifier."""
    return next((name for name in (exc.code, exc.type) if name and _IDENTIFIER.fullmatch(name)), "")
