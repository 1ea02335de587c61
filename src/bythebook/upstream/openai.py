"""Verdicts on the errors of the `openai` client, whichever provider it talks to."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import openai

from bythebook.errors import BookError, ContextOverflow, DeadlineExceeded, ProviderError
from bythebook.upstream.classify import Failure, judge_status

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from openai.types.chat import ChatCompletion, ChatCompletionChunk

# OpenAI and Groq name it; vLLM, llama.cpp and OpenRouter say it.
_TOO_LONG = re.compile(
    r"context_length_exceeded|exceed_context_size|(maximum context|context) (length|size|window)", re.I
)
# A rate limit by name only: waiting does not bring money.
_OUT_OF_MONEY = "insufficient_quota"
# What of a provider's words may be repeated. They also quote keys, prompts and addresses; this is none of those.
_IDENTIFIER = re.compile(r"[a-z]+(_[a-z]+)*")


def judge_openai(upstream: str, exc: Exception, /, *, error: type[BookError] = ProviderError) -> Failure | None:
    """What the client raised, in our terms; `error` is what this service's failures are called."""
    if isinstance(exc, openai.APIStatusError):
        return _refusal(upstream, exc, error)
    if isinstance(exc, openai.APITimeoutError):
        return Failure(DeadlineExceeded(f"{upstream} did not answer in time"), again=True, counts=True)
    if isinstance(exc, openai.APIConnectionError):
        return Failure(error(f"the connection to {upstream} broke"), again=True, counts=True)
    if isinstance(exc, openai.APIError):
        return Failure(error(f"{upstream} failed while answering{_named(exc)}"), again=True, counts=True)
    if isinstance(exc, json.JSONDecodeError | UnicodeDecodeError):
        # The client parses what came over the wire and lets the parser's error through.
        return Failure(error(f"{upstream} sent something that is not JSON"), again=True, counts=True)
    return None


def _refusal(upstream: str, exc: openai.APIStatusError, error: type[BookError]) -> Failure:
    if exc.status_code < 500 and _TOO_LONG.search(f"{exc.code} {exc.type} {exc.message}"):
        overflow = ContextOverflow(f"the conversation no longer fits the model of {upstream}")
        return Failure(overflow, again=False, counts=False)
    if exc.code == _OUT_OF_MONEY:
        broke = error(f"{upstream} refuses the request: the account has no credit left ({_OUT_OF_MONEY})")
        return Failure(broke, again=False, counts=False)
    return judge_status(upstream, exc.status_code, headers=exc.response.headers, error=error, reason=_identifier(exc))


def _named(exc: openai.APIError) -> str:
    name = _identifier(exc)
    return f" ({name})" if name else ""


def _identifier(exc: openai.APIError) -> str:
    """The provider's own name for the error, where it is one word that can be nothing else."""
    return next((name for name in (exc.code, exc.type) if name and _IDENTIFIER.fullmatch(name)), "")


async def finished_stream(
    upstream: str, chunks: AsyncIterator[ChatCompletionChunk]
) -> AsyncIterator[ChatCompletionChunk]:
    """The chunks of a streamed answer, which has failed unless one of them says that it is finished.

    The client itself takes a stream that was cut for one that has ended.
    """
    said_so = False
    async for chunk in chunks:
        said_so = said_so or any(choice.finish_reason for choice in chunk.choices)
        yield chunk
    if not said_so:
        raise ProviderError(f"{upstream} broke off in the middle of an answer")


def finished_answer(upstream: str, answer: ChatCompletion) -> ChatCompletion:
    """A whole answer, which has failed unless it has a choice that says it is finished."""
    # A provider that fails after it has said 200 sends an error here, which the client parses as an empty answer.
    if not answer.choices or not answer.choices[0].finish_reason:
        raise ProviderError(f"{upstream} sent an answer that is not finished")
    return answer
