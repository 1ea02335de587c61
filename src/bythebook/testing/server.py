"""`ScriptedServer`: an OpenAI-compatible server whose replies are scripted."""

import asyncio
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from bythebook.testing.completions import build_error, build_model_list, send_reply
from bythebook.testing.connection import (
    HOST,
    ClientDisconnected,
    Connection,
    RawRequest,
    ScriptedHTTPServer,
    parse_json,
)
from bythebook.testing.replies import CompletionRequest, CompletionScript, Faults, Quirk, ScriptedReply

_MAX_EXCHANGES = 10_000


@dataclass(slots=True, eq=False)
class RecordedExchange:
    """A request for a completion and its outcome. Times are those of the event loop."""

    request: CompletionRequest
    reply: ScriptedReply
    arrived_at: float
    left_at: float | None = None
    """When the client disconnected before the end of the reply."""
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def outcome(self) -> str:
        """`left` (the client disconnected), the name of the fault, the status of an error, or `ok`."""
        if self.left_at is not None and self.reply.fault is None:
            return "left"
        if self.reply.fault:
            return self.reply.fault.value
        return "ok" if self.reply.status < 400 else str(self.reply.status)


class ScriptedServer(ScriptedHTTPServer):
    """An OpenAI-compatible server on this machine. It runs from `async with` to its end.

    With a `key`, requests without that key are rejected. An exception in the script ends the `async with`.
    """

    def __init__(
        self,
        script: CompletionScript,
        *,
        faults: Faults = Faults(0.0),  # noqa: B008 - it is frozen
        quirks: Collection[Quirk] = (),
        key: str = "",
        port: int = 0,
    ) -> None:
        super().__init__(key=key, port=port)
        self._script = script
        self._faults = faults
        self._quirks = frozenset(quirks)
        self.exchanges: deque[RecordedExchange] = deque(maxlen=_MAX_EXCHANGES)
        """The latest requests for a completion, oldest first."""

    @property
    def base_url(self) -> str:
        """The base URL for a client."""
        return f"http://{HOST}:{self.port}/v1"

    async def _answer(self, connection: Connection, received: RawRequest) -> None:
        if not self._accepts(received):
            # Some providers quote the rejected key, so a client must redact their messages.
            message = f"Incorrect API key provided: {received.bearer_token}."
            connection.send_json(build_error(401, code="invalid_api_key", message=message), status=401)
        elif received.route == "POST /v1/chat/completions":
            await self._complete(connection, received)
        elif received.route == "GET /v1/models":
            connection.send_json(build_model_list(["scripted"]))
        elif received.route == "GET /counters":
            connection.send_json(self.counters)
        else:
            connection.send_json(build_error(404, message=f"There is no {received.route}."), status=404)

    async def _complete(self, connection: Connection, received: RawRequest) -> None:
        body = _parse_body(received.body)
        if isinstance(body, str):
            connection.send_json(build_error(400, message=body), status=400)
            return
        request = CompletionRequest(body, received.headers, self._count_request())
        exchange = RecordedExchange(request, self._reply(request), asyncio.get_running_loop().time())
        self.exchanges.append(exchange)
        try:
            await send_reply(connection, request, exchange.reply, quirks=self._quirks)
        except ClientDisconnected:
            exchange.left_at = connection.closed_at
            raise
        finally:
            self.counters[exchange.outcome] += 1
            exchange.ended.set()

    def _reply(self, request: CompletionRequest) -> ScriptedReply:
        """The scripted reply, or an error if a quirk rejects the request."""
        if Quirk.REJECTS_TOOLS in self._quirks and request.tools:
            return ScriptedReply(status=400, error_message="This model does not support tools.")
        if Quirk.REJECTS_STREAM_OPTIONS in self._quirks and "stream_options" in request.body:
            return ScriptedReply(status=400, error_message="Unrecognized request argument supplied: stream_options")
        script = self._script
        if isinstance(script, ScriptedReply):
            reply = script
        elif callable(script):
            reply = script(request)
        else:
            reply = script[min(request.number, len(script)) - 1]
        return self._faults.inject(reply, request.number)


def _parse_body(data: bytes) -> dict[str, Any] | str:
    """The body of a request for a completion, or an error message."""
    body = parse_json(data)
    if body is None:
        return "The body is not JSON."
    if not isinstance(body, dict) or not isinstance(body.get("messages"), list) or not body["messages"]:
        return "'messages' must be a list of at least one message."
    return body
