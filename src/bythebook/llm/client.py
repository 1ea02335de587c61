"""The client of a provider's chat completions: streamed, decoded without validation, called through `upstream`.

`TurnModel` is a `Model` of the Agents SDK and costs half as much as the SDK's own: a chunk stays a dictionary from the
socket to the reader and is not turned into an object that is validated for every token. Chunks that arrive together
are merged, so a busy server sanitizes and sends several words at once.
"""

import json
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field
from typing import Any

import httpx2
import openai
from agents import Model, ModelResponse, ModelSettings, Tool, Usage
from agents.items import TResponseInputItem, TResponseStreamEvent
from agents.models.chatcmpl_converter import Converter
from openai.types.responses import ResponseCompletedEvent

from bythebook.errors import BookError, InputError, ProviderError
from bythebook.llm import GenerationStarted, agents_sdk
from bythebook.llm.context_budget import count_tokens
from bythebook.llm.providers import Provider
from bythebook.llm.search_tool import FORMER_NAME, NAME
from bythebook.telemetry import metric
from bythebook.upstream.client import CallReport, CallState, Upstream
from bythebook.upstream.deadline import Deadline
from bythebook.upstream.openai import classify_openai_error

CONNECTIONS = httpx2.Limits(max_connections=1000, max_keepalive_connections=16)
"""The client checks an idle connection before every call, and each one holds a file handle."""

ATTEMPTS = 3
"""The limit of calls to the provider for one answer, over all causes of failure."""

_DONE = "[DONE]"
_REPEATED = 2_000
"""Characters: more than any rule or table border of a book."""


@dataclass(frozen=True, slots=True)
class RequestedToolCall:
    """A tool call as the model wrote it. The arguments are not validated."""

    id: str
    name: str
    arguments: str


@dataclass(slots=True)
class ModelReply:
    """One reply of a model, assembled from its chunks."""

    text: str = ""
    calls: dict[int, dict[str, str]] = field(default_factory=dict)
    finish_reason: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def add_chunk(self, chunk: dict[str, Any]) -> str:
        """Add a chunk. Return the text that it contains."""
        usage = chunk.get("usage") or {}
        self.prompt_tokens = usage.get("prompt_tokens") or self.prompt_tokens
        self.completion_tokens = usage.get("completion_tokens") or self.completion_tokens
        choice = (chunk.get("choices") or [{}])[0]
        delta = choice.get("delta") or choice.get("message") or {}
        for position, call in enumerate(delta.get("tool_calls") or ()):
            self._add_tool_call(call, position)
        self.finish_reason = choice.get("finish_reason") or self.finish_reason
        text: str = delta.get("content") or ""
        self.text += text
        return text

    def _add_tool_call(self, call: dict[str, Any], position: int) -> None:
        known = self.calls.setdefault(call.get("index", position), {"id": "", "name": "", "arguments": ""})
        function = call.get("function") or {}
        known["id"] = known["id"] or call.get("id") or ""
        known["name"] += function.get("name") or ""
        known["arguments"] += function.get("arguments") or ""

    @property
    def tool_calls(self) -> list[RequestedToolCall]:
        """The tool calls, each with an id. A call of the tool's former name gets the current name."""
        return [
            RequestedToolCall(
                call["id"] or f"call_{uuid.uuid4().hex}",
                NAME if call["name"] == FORMER_NAME else call["name"],
                call["arguments"] or "{}",
            )
            for _, call in sorted(self.calls.items())
        ]


def is_repetition(text: str) -> bool:
    """Whether the end of a text only repeats one short piece: a model that fails in this way does not stop."""
    tail = text[-_REPEATED:]
    period = tail.find(tail[: _REPEATED // 2], 1)
    return len(tail) == _REPEATED and period > 0 and tail[period:] == tail[:-period]


class ChunkDecoder:
    """Decodes the server-sent events of a completion, wherever its bytes are split into blocks."""

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._rest = b""
        self.finished = False
        """Whether a chunk had a finish reason. A completion without one was cut off."""

    def feed(self, block: bytes) -> Iterator[dict[str, Any]]:
        """Yield the chunks whose last byte is in this block. Neighbours that contain only text become one chunk.

        Feed a newline at the end: the last line may come without one.
        """
        *lines, self._rest = (self._rest + block).split(b"\n")
        words: list[str] = []
        for line in lines:
            data = line[5:].decode("utf-8", "replace").strip() if line.startswith(b"data:") else ""
            # Lines after [DONE] are read too: a connection that is not read to its end cannot be reused.
            if not data or data == _DONE:
                continue
            chunk = json.loads(data)
            if not isinstance(chunk, dict):
                raise json.JSONDecodeError("no object", data, 0)
            if (text := _only_text(chunk)) is not None:
                words.append(text)
                continue
            if words:
                yield _text_chunk(words)
                words.clear()
            if chunk.get("error"):
                raise ProviderError(f"{self._provider} failed in the middle of its answer")
            self.finished = self.finished or any(choice.get("finish_reason") for choice in chunk.get("choices") or ())
            yield chunk
        if words:
            yield _text_chunk(words)


def _text_chunk(words: list[str]) -> dict[str, Any]:
    return {"choices": [{"delta": {"content": "".join(words)}}]}


def _only_text(chunk: dict[str, Any]) -> str | None:
    """The text of a chunk that contains nothing else, None for any other chunk."""
    choices = chunk.get("choices") or []
    if chunk.get("usage") or chunk.get("error"):
        return None
    if len(choices) != 1 or choices[0].get("finish_reason"):
        return None
    delta = choices[0].get("delta") or {}
    text = delta.get("content")
    return text if isinstance(text, str) and text and delta.keys() <= {"content", "role"} else None


def _text_length(chunk: dict[str, Any]) -> int:
    """How much of the answer a chunk contains. A chunk without text can be sent twice without harm."""
    delta = ((chunk.get("choices") or [{}])[0]).get("delta") or {}
    return len(delta.get("content") or "")


class ChatEndpoint:
    """A provider's chat completions, for any number of requests. It learns which options the provider refuses."""

    def __init__(self, provider: Provider, *, temperature: float, max_tokens: int) -> None:
        self.provider = provider
        # Only `upstream` retries; retries of the client would ignore the deadline.
        self._client = openai.AsyncOpenAI(
            base_url=provider.base_url,
            api_key=provider.api_key,
            max_retries=0,
            http_client=openai.DefaultAsyncHttpxClient(limits=CONNECTIONS),
        )
        # Resolved here because the client then imports many of its modules: no deadline should pay for that.
        self._create = self._client.chat.completions.with_streaming_response.create
        self._upstream = Upstream(provider.name, classify=classify_openai_error)
        self._defaults = {"model": provider.model, "temperature": temperature, "max_tokens": max_tokens}
        self._reports_usage = True

    async def close(self) -> None:
        await self._client.close()

    def stream_chunks(
        self, request: dict[str, Any], *, deadline: Deadline, report: Callable[[CallReport], None], attempts: int
    ) -> AsyncGenerator[dict[str, Any]]:
        """The chunks of one answer. Raises only `BookError`; an answer without a finish reason is an error."""
        body = self._defaults | request
        return self._upstream.stream(
            lambda: self._read_chunks(body),
            deadline=deadline,
            stage="generating",
            size=_text_length,
            report=report,
            attempts=attempts,
        )

    async def _read_chunks(self, body: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        decoder = ChunkDecoder(self.provider.name)
        try:
            async with AsyncExitStack() as stack:
                response = await self._send(body, stack)
                async for block in response.iter_bytes():
                    for chunk in decoder.feed(block):
                        yield chunk
                for chunk in decoder.feed(b"\n"):
                    yield chunk
        except httpx2.HTTPError as exc:
            # The client translates transport errors only while it reads the lines itself.
            raise ProviderError(f"the connection to {self.provider.name} broke") from exc
        if not decoder.finished:
            raise ProviderError(f"{self.provider.name} stopped in the middle of its answer")

    async def _send(self, body: dict[str, Any], stack: AsyncExitStack) -> Any:
        """Send the request and return the open response. Usage is requested until the provider refuses the option."""

        async def send(**options: Any) -> Any:
            # `extra_body` is sent as it is. The client processes `messages` for longer than a search takes.
            sending = self._create(model=self.provider.model, messages=[], stream=True, extra_body=body | options)
            return await stack.enter_async_context(sending)

        try:
            if self._reports_usage:
                try:
                    return await send(stream_options={"include_usage": True})
                except openai.BadRequestError as exc:
                    if "stream_options" not in str(exc):
                        raise
                    self._reports_usage = False
            return await send()
        except openai.BadRequestError as exc:
            if "tools" not in body:
                raise
            raise InputError(f"{self.provider.name} does not let {self.provider.model!r} call tools") from exc


class TurnModel(Model):
    """The model for one turn of a conversation, within its deadline, as the Agents SDK calls it."""

    def __init__(
        self,
        endpoint: ChatEndpoint,
        *,
        deadline: Deadline,
        report: Callable[[CallReport], None],
        attempts: int = ATTEMPTS,
    ) -> None:
        self._endpoint = endpoint
        self._attempts = attempts
        self._deadline = deadline
        self._report = report
        self.prompt_tokens = 0
        self.completion_tokens = 0
        self.tokens_estimated = False

    def record_first_token_time(self) -> None:
        """Note that the reader has the first token: only the end of the deadline remains."""
        self._deadline = self._deadline.after_first_token()

    async def stream_reply(
        self, messages: list[dict[str, Any]], **options: Any
    ) -> AsyncGenerator[str | GenerationStarted | ModelReply]:
        """Yield the text of one reply as it arrives, and the whole reply at the end.

        A stream that breaks after its first text cannot be resumed, only started again.
        """
        attempts = _Attempts(self._report, self._attempts)
        request = {"messages": messages, **options}
        while True:
            reply = ModelReply()
            chunks = self._endpoint.stream_chunks(
                request, deadline=self._deadline, report=attempts, attempts=attempts.left
            )
            try:
                async with aclosing(chunks):
                    async for chunk in chunks:
                        if text := reply.add_chunk(chunk):
                            yield text
                        if text and is_repetition(reply.text):
                            reply.finish_reason = "length"
                            break
            except BookError as error:
                if not (reply.text and error.recoverable and attempts.left and self._deadline.left()):
                    raise
                yield GenerationStarted()
            else:
                break
        if not reply.prompt_tokens + reply.completion_tokens:
            self.tokens_estimated = True
            reply.prompt_tokens = count_tokens(json.dumps(request, ensure_ascii=False))
            reply.completion_tokens = count_tokens(reply.text) + sum(
                count_tokens(call.name + call.arguments) for call in reply.tool_calls
            )
        metric("tokens", reply.prompt_tokens, kind="prompt")
        metric("tokens", reply.completion_tokens, kind="completion")
        self.prompt_tokens += reply.prompt_tokens
        self.completion_tokens += reply.completion_tokens
        yield reply

    async def stream_response(
        self,
        system_instructions: str | None,
        input: str | list[TResponseInputItem],  # noqa: A002 - the SDK's name
        model_settings: ModelSettings,  # noqa: ARG002 - the endpoint has its own settings
        tools: list[Tool],
        *_: Any,
        **__: Any,
    ) -> AsyncIterator[TResponseStreamEvent]:
        """Yield the events of one reply for the SDK. Schemas, handoffs, traces and stored prompts are not supported."""
        messages = _messages(system_instructions, input)
        options = {"tools": [Converter.tool_to_openai(tool) for tool in tools]} if tools else {}
        item = agents_sdk.new_item_id()
        number = 0
        async with aclosing(self.stream_reply(messages, **options)) as parts:
            async for part in parts:
                if isinstance(part, GenerationStarted):
                    yield agents_sdk.make_created_event(model=self._endpoint.provider.model, number=number)
                elif isinstance(part, ModelReply):
                    yield _completed_event(part, item=item, model=self._endpoint.provider.model, number=number)
                else:
                    yield agents_sdk.make_text_delta(part, item=item, number=number)
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
    """Counts the failed calls to the provider for one answer."""

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


def _completed_event(reply: ModelReply, *, item: str, model: str, number: int) -> ResponseCompletedEvent:
    text = [agents_sdk.make_output_message(reply.text, item=item)] if reply.text else []
    return agents_sdk.make_completed_event(
        [*text, *map(agents_sdk.make_function_call, reply.tool_calls)],
        model=model,
        number=number,
        prompt_tokens=reply.prompt_tokens,
        completion_tokens=reply.completion_tokens,
    )
