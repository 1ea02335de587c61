"""The model over the wire: chat completions, streamed, parsed without ceremony, called through upstream.

It is a `Model` of the Agents SDK, and half as costly as the SDK's own: a chunk is a dictionary here from the socket to
the reader, never an object that is validated for every token.
"""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import httpx2
import openai
from agents import Model, ModelResponse, Usage
from agents.models.chatcmpl_converter import Converter
from openai.types.responses import ResponseCompletedEvent

from bythebook.answers import responses
from bythebook.answers.reply import Reply
from bythebook.errors import InputError, ProviderError
from bythebook.observe import figure
from bythebook.upstream import Upstream
from bythebook.upstream.openai import judge_openai

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable

    from agents import ModelSettings, Tool
    from agents.items import TResponseInputItem, TResponseStreamEvent

    from bythebook.answers.providers import Provider
    from bythebook.upstream import CallReport, Deadline

_DONE = "[DONE]"


class Endpoint:
    """A provider's chat completions, for any number of requests. Learns what the provider does not understand."""

    def __init__(self, provider: Provider, *, temperature: float, max_tokens: int) -> None:
        self.provider = provider
        # Every retry is upstream's; the client's own would sleep behind the deadline's back.
        self._client = openai.AsyncOpenAI(base_url=provider.base_url, api_key=provider.api_key, max_retries=0)
        self._upstream = Upstream(provider.name, judge=judge_openai)
        self._always = {"model": provider.model, "temperature": temperature, "max_tokens": max_tokens}
        self._reports_usage = True

    async def close(self) -> None:
        await self._client.close()

    async def chunks(
        self, asked: dict[str, Any], *, deadline: Deadline, report: Callable[[CallReport], None], attempts: int
    ) -> AsyncGenerator[dict[str, Any]]:
        """The chunks of one answer. Raises our errors only; an answer without a finish reason is one of them."""
        body = self._always | asked
        stream = self._upstream.stream(
            lambda: self._open(body),
            deadline=deadline,
            stage="generating",
            preamble=_is_silent,
            report=report,
            attempts=attempts,
        )
        async with aclosing(stream) as chunks:
            async for chunk in chunks:
                yield chunk

    async def _open(self, body: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        try:
            async for chunk in self._as_understood(body):
                yield chunk
        except openai.BadRequestError as exc:
            if "tools" not in body:
                raise
            raise InputError(f"{self.provider.name} does not let {self.provider.model!r} call tools") from exc

    async def _as_understood(self, body: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        """With the usage at the end, unless the provider has shown that it does not know how to ask for it."""
        if self._reports_usage:
            try:
                async for chunk in self._read(body | {"stream_options": {"include_usage": True}}):
                    yield chunk
                return
            except openai.BadRequestError as exc:
                if "stream_options" not in str(exc):
                    raise
                self._reports_usage = False
        async for chunk in self._read(body):
            yield chunk

    async def _read(self, body: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        finished = False
        async for chunk in self._lines(body):
            _refuse_error(self.provider.name, chunk)
            finished = finished or any(choice.get("finish_reason") for choice in chunk.get("choices") or ())
            yield chunk
        if not finished:
            raise ProviderError(f"{self.provider.name} stopped in the middle of its answer")

    async def _lines(self, body: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        create = self._client.chat.completions.with_streaming_response.create
        try:
            async with create(**body, stream=True) as response:
                async for line in response.iter_lines():
                    data = line[5:].strip() if line.startswith("data:") else ""
                    # Read on after the last word: a connection that is left early cannot be used again.
                    if data and data != _DONE:
                        yield json.loads(data)
        except httpx2.HTTPError as exc:
            # The client translates its transport's errors only as long as it reads the lines itself.
            raise ProviderError(f"the connection to {self.provider.name} broke") from exc


def _refuse_error(name: str, chunk: dict[str, Any]) -> None:
    if chunk.get("error"):
        raise ProviderError(f"{name} failed in the middle of its answer")


def _is_silent(chunk: dict[str, Any]) -> bool:
    """Whether nobody would notice if the answer began again after this chunk."""
    delta = ((chunk.get("choices") or [{}])[0]).get("delta") or {}
    return not delta.get("content")


class TurnModel(Model):
    """The model for one turn of a conversation, within its deadline, as the Agents SDK calls it."""

    def __init__(
        self, endpoint: Endpoint, *, deadline: Deadline, report: Callable[[CallReport], None], attempts: int
    ) -> None:
        self._endpoint = endpoint
        self._attempts = attempts
        self._deadline = deadline
        self._report = report
        self.prompt_tokens = 0
        self.completion_tokens = 0

    async def say(self, messages: list[dict[str, Any]], **more: Any) -> AsyncGenerator[str | Reply]:
        """The text of one answer as it comes, and at the end everything that was said."""
        said = Reply()
        stream = self._endpoint.chunks(
            {"messages": messages, **more}, deadline=self._deadline, report=self._report, attempts=self._attempts
        )
        async with aclosing(stream) as chunks:
            async for chunk in chunks:
                if text := said.take(chunk):
                    yield text
        figure("tokens", said.prompt_tokens, kind="prompt")
        figure("tokens", said.completion_tokens, kind="completion")
        self.prompt_tokens += said.prompt_tokens
        self.completion_tokens += said.completion_tokens
        yield said

    async def stream_response(
        self,
        system_instructions: str | None,
        input: str | list[TResponseInputItem],  # noqa: A002 - the SDK's name
        model_settings: ModelSettings,  # noqa: ARG002 - the endpoint has its own
        tools: list[Tool],
        *_: Any,
        **__: Any,
    ) -> AsyncIterator[TResponseStreamEvent]:
        """What the SDK asks for. Schemas, handoffs, traces and stored prompts have no place in a chat completion."""
        messages = _messages(system_instructions, input)
        more = {"tools": [Converter.tool_to_openai(tool) for tool in tools]} if tools else {}
        item = responses.new_item()
        number = 0
        async with aclosing(self.say(messages, **more)) as heard:
            async for text in heard:
                if isinstance(text, Reply):
                    yield _completed(text, item=item, model=self._endpoint.provider.model, number=number)
                else:
                    yield responses.delta(text, item=item, number=number)
                number += 1

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        async for event in self.stream_response(*args, **kwargs):
            if isinstance(event, ResponseCompletedEvent):
                response = event.response
                usage = response.usage
                counted = Usage(
                    requests=1,
                    input_tokens=usage.input_tokens if usage else 0,
                    output_tokens=usage.output_tokens if usage else 0,
                    total_tokens=usage.total_tokens if usage else 0,
                )
                return ModelResponse(output=response.output, usage=counted, response_id=None)
        raise ProviderError(f"{self._endpoint.provider.name} gave no answer")


def _messages(system: str | None, given: str | list[TResponseInputItem]) -> list[dict[str, Any]]:
    messages: list[Any] = list(Converter.items_to_messages(given))
    return [{"role": "system", "content": system}, *messages] if system else messages


def _completed(said: Reply, *, item: str, model: str, number: int) -> ResponseCompletedEvent:
    spoken = [responses.message(said.text, item=item)] if said.text else []
    return responses.completed(
        [*spoken, *map(responses.tool_call, said.tool_calls)],
        model=model,
        number=number,
        prompt_tokens=said.prompt_tokens,
        completion_tokens=said.completion_tokens,
    )
