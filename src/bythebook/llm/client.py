"""A reply: one answer of a model, put together from the chunks it comes in.

What has arrived of a streamed completion: chunks from bytes, those that came together joined.

A busy server reads several words at once. Made one, they are cleaned, sent and waited for once.

The model over the wire: chat completions, streamed, parsed without ceremony, called through upstream.

It is a `Model` of the Agents SDK, and half as costly as the SDK's own: a chunk is a dictionary here from the socket to
the reader, never an object that is validated for every token.
"""

from __future__ import annotations

import json
import uuid
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx2
import openai
from agents import Model, ModelResponse, Usage
from agents.models.chatcmpl_converter import Converter
from openai.types.responses import ResponseCompletedEvent

from bythebook.errors import BookError, InputError, ProviderError
from bythebook.llm import agents_sdk
from bythebook.llm.search_tool import FORMER_NAME, NAME
from bythebook.telemetry import figure
from bythebook.upstream import CallState, Upstream
from bythebook.upstream.openai import judge_openai

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator

    from agents import ModelSettings, Tool
    from agents.items import TResponseInputItem, TResponseStreamEvent

    from bythebook.llm.providers import Provider
    from bythebook.upstream import CallReport, Deadline


@dataclass(frozen=True, slots=True)
class Began:
    """The answer begins, or begins again: what was said before no longer counts."""


@dataclass(frozen=True, slots=True)
class ToolCallMade:
    """A tool call as the model made it, its arguments not looked at yet."""

    id: str
    name: str
    arguments: str


@dataclass(slots=True)
class Reply:
    """What has come of one answer so far."""

    text: str = ""
    calls: dict[int, dict[str, str]] = field(default_factory=dict)
    finish_reason: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def take(self, chunk: dict[str, Any]) -> str:
        """Add a chunk. Returns the text it brought."""
        usage = chunk.get("usage") or {}
        self.prompt_tokens = usage.get("prompt_tokens") or self.prompt_tokens
        self.completion_tokens = usage.get("completion_tokens") or self.completion_tokens
        choice = (chunk.get("choices") or [{}])[0]
        delta = choice.get("delta") or choice.get("message") or {}
        for position, call in enumerate(delta.get("tool_calls") or ()):
            self._take_call(call, position)
        self.finish_reason = choice.get("finish_reason") or self.finish_reason
        text: str = delta.get("content") or ""
        self.text += text
        return text

    def _take_call(self, call: dict[str, Any], position: int) -> None:
        known = self.calls.setdefault(call.get("index", position), {"id": "", "name": "", "arguments": ""})
        function = call.get("function") or {}
        known["id"] = known["id"] or call.get("id") or ""
        known["name"] += function.get("name") or ""
        known["arguments"] += function.get("arguments") or ""

    @property
    def tool_calls(self) -> list[ToolCallMade]:
        """The calls, each with an id, under the name the tool has here."""
        return [
            ToolCallMade(
                call["id"] or f"call_{uuid.uuid4().hex}",
                NAME if call["name"] == FORMER_NAME else call["name"],
                call["arguments"] or "{}",
            )
            for _, call in sorted(self.calls.items())
        ]


_DONE = "[DONE]"


async def chunks(blocks: AsyncIterator[bytes]) -> AsyncIterator[dict[str, Any]]:
    """The chunks of a stream of server-sent events, however it is cut into blocks."""
    rest = b""
    async for block in blocks:
        *lines, rest = (rest + block).split(b"\n")
        for chunk in _joined(_parsed(lines)):
            yield chunk
    for chunk in _parsed([rest]):
        yield chunk


def _parsed(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    for line in lines:
        data = line[5:].decode("utf-8", "replace").strip() if line.startswith(b"data:") else ""
        # Read on after the last word: a connection that is left early cannot be used again.
        if data and data != _DONE:
            chunk = json.loads(data)
            if not isinstance(chunk, dict):
                raise json.JSONDecodeError("no object", data, 0)
            yield chunk


def _joined(chunks: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The same chunks, neighbours that bring nothing but text made one."""
    words: list[str] = []
    for chunk in chunks:
        text = _nothing_but_text(chunk)
        if text is not None:
            words.append(text)
            continue
        yield from _said(words)
        words.clear()
        yield chunk
    yield from _said(words)


def _said(words: list[str]) -> Iterator[dict[str, Any]]:
    if words:
        yield {"choices": [{"delta": {"content": "".join(words)}}]}


def _nothing_but_text(chunk: dict[str, Any]) -> str | None:
    choices = chunk.get("choices") or []
    if chunk.get("usage") or chunk.get("error"):
        return None
    if len(choices) != 1 or choices[0].get("finish_reason"):
        return None
    delta = choices[0].get("delta") or {}
    text = delta.get("content")
    return text if isinstance(text, str) and text and delta.keys() <= {"content", "role"} else None


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
                async for chunk in chunks(response.iter_bytes()):
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
        item = agents_sdk.new_item()
        number = 0
        async with aclosing(self.say(messages, **more)) as heard:
            async for text in heard:
                if isinstance(text, Began):
                    yield agents_sdk.created(model=self._endpoint.provider.model, number=number)
                elif isinstance(text, Reply):
                    yield _completed(text, item=item, model=self._endpoint.provider.model, number=number)
                else:
                    yield agents_sdk.delta(text, item=item, number=number)
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
    spoken = [agents_sdk.message(said.text, item=item)] if said.text else []
    return agents_sdk.completed(
        [*spoken, *map(agents_sdk.tool_call, said.tool_calls)],
        model=model,
        number=number,
        prompt_tokens=said.prompt_tokens,
        completion_tokens=said.completion_tokens,
    )
