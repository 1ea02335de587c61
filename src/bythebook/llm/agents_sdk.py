"""Events and items of a response for the Agents SDK, built without validation."""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING

from openai.types import responses
from openai.types.responses.response_usage import InputTokensDetails, OutputTokensDetails

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openai.types.responses.response_output_text import Annotation

    from bythebook.llm.client import RequestedToolCall


def new_item_id() -> str:
    """A new id for an output message."""
    return f"msg_{uuid.uuid4().hex}"


def make_output_message(
    text: str, *, item: str, annotations: Sequence[Annotation] = ()
) -> responses.ResponseOutputMessage:
    content = responses.ResponseOutputText(annotations=list(annotations), text=text, type="output_text", logprobs=[])
    return responses.ResponseOutputMessage(
        id=item, content=[content], role="assistant", status="completed", type="message"
    )


def make_function_call(call: RequestedToolCall) -> responses.ResponseFunctionToolCall:
    return responses.ResponseFunctionToolCall(
        call_id=call.id, name=call.name, arguments=call.arguments, type="function_call"
    )


def make_text_delta(text: str, *, item: str, number: int) -> responses.ResponseTextDeltaEvent:
    return responses.ResponseTextDeltaEvent.model_construct(
        content_index=0,
        delta=text,
        item_id=item,
        logprobs=[],
        output_index=0,
        sequence_number=number,
        type="response.output_text.delta",
    )


def make_created_event(*, model: str, number: int) -> responses.ResponseCreatedEvent:
    """The start of a response. In the middle of a stream it makes the text before it void."""
    return responses.ResponseCreatedEvent.model_construct(
        response=_response((), model=model), sequence_number=number, type="response.created"
    )


def make_completed_event(
    output: Sequence[responses.ResponseOutputItem],
    *,
    model: str,
    number: int,
    prompt_tokens: int = 0,
    completion_tokens: int = 0,
) -> responses.ResponseCompletedEvent:
    response = _response(output, model=model, usage=_usage(prompt_tokens, completion_tokens))
    return responses.ResponseCompletedEvent.model_construct(
        response=response, sequence_number=number, type="response.completed"
    )


def _response(
    output: Sequence[responses.ResponseOutputItem], *, model: str, usage: responses.ResponseUsage | None = None
) -> responses.Response:
    return responses.Response.model_construct(
        id=f"resp_{uuid.uuid4().hex}",
        created_at=time.time(),
        model=model,
        object="response",
        output=list(output),
        tool_choice="auto",
        tools=[],
        parallel_tool_calls=False,
        usage=usage,
    )


def _usage(prompt_tokens: int, completion_tokens: int) -> responses.ResponseUsage:
    return responses.ResponseUsage.model_construct(
        input_tokens=prompt_tokens,
        output_tokens=completion_tokens,
        total_tokens=prompt_tokens + completion_tokens,
        input_tokens_details=InputTokensDetails.model_construct(cached_tokens=0, cache_write_tokens=0),
        output_tokens_details=OutputTokensDetails(reasoning_tokens=0),
    )
