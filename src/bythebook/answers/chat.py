"""The model over the wire: chat completions, streamed, parsed without ceremony, called through upstream.

It is a `Model` of the Agents SDK, and half as costly as the SDK's own: a chunk is a dictionary here from the socket to
the reader, never an object that is validated for every token.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import httpx2
import openai
from agents import Model, ModelResponse, Usage
from agents.models.chatcmpl_converter import Converter
from openai.types.responses import ResponseCompletedEvent

from bythebook.answers import arrived, responses
from bythebook.answers.reply import Reply
from bythebook.answers.spoken import Began
from bythebook.errors import BookError, InputError, ProviderError
from bythebook.observe import figure
from bythebook.upstream import CallState, Upstream
from bythebook.upstream.openai import judge_openai

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable

    from agents import ModelSettings, Tool
    from agents.items import TResponseInputItem, TResponseStreamEvent

    from bythebook.answers.providers import Provider
    from bythebook.upstream import CallReport, Deadline

CONNECTIONS = httpx2.Limits(max_connections=1000, max_keepalive_connections=16)
"""An idle connection is looked at before every call, and is a file handle as long as nobody calls."""

ATTEMPTS = 3
"""How often a provider is called for one answer at most, whatever goes wrong and wherever."""


class Endpoint:
    """A provider's chat completions, for any number of requests. Learns what the provider does not understand."""

    def __init__(self, provider: Provider, *, temperature: float, max_tokens: int) -> None:
        self.provider = provider
        # Every retry is upstream's; the client's own would sleep behind the deadline's back.
        self._client = openai.AsyncOpenAI(
            base_url=provider.base_url,
            api_key=provider.api_key,
            max_retries=0,
            http_client=openai.DefaultAsyncHttpxClient(limits=CONNECTIONS),
        )
        # Looked up here, because the client imports a good part of itself for it: no deadline should pay for that.
        self._create = self._client.chat.completions.with_streaming_response.create
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
            size=_length,
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
        async for chunk in self._arriving(body):
            _refuse_error(self.provider.name, chunk)
            finished = finished or any(choice.get("finish_reason") for choice in chunk.get("choices") or ())
            yield chunk
        if not finished:
            raise ProviderError(f"{self.provider.name} stopped in the middle of its answer")

    async def _arriving(self, body: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        try:
            # Sent as it is: the client would go through every message of the conversation, for longer than a search.
            sending = self._create(model=self.provider.model, messages=[], stream=True, extra_body=body)
            async with sending as response:
                async for chunk in arrived.chunks(response.iter_bytes()):
                    yield chunk
        except httpx2.HTTPError as exc:
            # The client translates its transport's errors only as long as it reads the lines itself.
            raise ProviderError(f"the connection to {self.provider.name} broke") from exc


def _refuse_error(name: str, chunk: dict[str, Any]) -> None:
    if chunk.get("error"):
        raise ProviderError(f"{name} failed in the middle of its answer")


def _length(chunk: dict[str, Any]) -> int:
    """How much of the answer it brings. Of a chunk that brings nothing nobody notices if it comes again."""
    delta = ((chunk.get("choices") or [{}])[0]).get("delta") or {}
    return len(delta.get("content") or "")


class TurnModel(Model):
    """The model for one turn of a conversation, within its deadline, as the Agents SDK calls it."""

    def __init__(
        self, endpoint: Endpoint, *, deadline: Deadline, report: Callable[[CallReport], None], attempts: int = ATTEMPTS
    ) -> None:
        self._endpoint = endpoint
        self._attempts = attempts
        self._deadline = deadline
        self._report = report
        self.prompt_tokens = 0
        self.completion_tokens = 0

    def begun(self) -> None:
        """Note that the reader has seen the first word: only the end is still to be kept."""
        self._deadline = self._deadline.begun()

    async def say(self, messages: list[dict[str, Any]], **more: Any) -> AsyncGenerator[str | Began | Reply]:
        """The text of one answer as it comes, and at the end everything that was said.

        A stream that breaks after some of it was heard cannot be taken up again, only begun again.
        """
        attempts = _Attempts(self._report, self._attempts)
        while True:
            said = Reply()
            try:
                async with aclosing(self._chunks({"messages": messages, **more}, attempts)) as chunks:
                    async for chunk in chunks:
                        if text := said.take(chunk):
                            yield text
            except BookError as error:
                if not (said.text and error.recoverable and attempts.left and self._deadline.left()):
                    raise
                yield Began()
            else:
                break
        figure("tokens", said.prompt_tokens, kind="prompt")
        figure("tokens", said.completion_tokens, kind="completion")
        self.prompt_tokens += said.prompt_tokens
        self.completion_tokens += said.completion_tokens
        yield said

    def _chunks(self, asked: dict[str, Any], attempts: _Attempts) -> AsyncGenerator[dict[str, Any]]:
        return self._endpoint.chunks(asked, deadline=self._deadline, report=attempts, attempts=attempts.left)

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
                if isinstance(text, Began):
                    yield responses.created(model=self._endpoint.provider.model, number=number)
                elif isinstance(text, Reply):
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


class _Attempts:
    """Counts how often the provider was called for one answer."""

    def __init__(self, report: Callable[[CallReport], None], allowed: int) -> None:
        self._report = report
        self._allowed = allowed
        self._failed = 0

    def __call__(self, call: CallReport) -> None:
        self._failed += call.state in (CallState.RETRYING, CallState.FAILED_PERMANENT)
        self._report(call)

    @property
    def left(self) -> int:
        return max(0, self._allowed - self._failed)


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
