"""A real server that says and does what it is told."""

from __future__ import annotations

import asyncio
import json
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bythebook.testing.completions import error, models
from bythebook.testing.connection import HOST, ClientLeftError, Listener
from bythebook.testing.faults import Faults
from bythebook.testing.replay import play
from bythebook.testing.replies import Quirk, Reply, Request

if TYPE_CHECKING:
    from collections.abc import Collection
    from types import TracebackType
    from typing import Self

    from bythebook.testing.connection import Connection, Received
    from bythebook.testing.replies import Script

_REMEMBERED = 10_000


@dataclass(slots=True, eq=False)
class Exchange:
    """One request for a completion and what became of it. Times are the event loop's."""

    request: Request
    reply: Reply
    arrived_at: float
    left_at: float | None = None
    """When the client left before the reply had ended, if it did."""
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def outcome(self) -> str:
        """`left`, the name of the fault, the status of a refusal, or `ok`."""
        if self.left_at is not None and self.reply.fault is None:
            return "left"
        if self.reply.fault:
            return self.reply.fault.value
        return "ok" if self.reply.status < 400 else str(self.reply.status)


class ScriptedServer:
    """An OpenAI-compatible server on this machine, from `async with` to its end.

    With a `key`, only requests that bring it are answered. An error in a script of yours ends the `async with`.
    """

    def __init__(
        self,
        script: Script,
        *,
        faults: Faults = Faults(0.0),  # noqa: B008 - it is frozen
        quirks: Collection[Quirk] = (),
        key: str = "",
        port: int = 0,
    ) -> None:
        self._script = script
        self._faults = faults
        self._quirks = frozenset(quirks)
        self._key = key
        self._listener = Listener(self._answer, port=port)
        self._arrived = asyncio.Event()
        self._number = 0
        self.exchanges: deque[Exchange] = deque(maxlen=_REMEMBERED)
        """The last requests for a completion, oldest first."""
        self.counters: Counter[str] = Counter()
        """How many exchanges had which outcome, and under `requests` how many there were."""

    @property
    def base_url(self) -> str:
        """What to give a client."""
        return f"http://{HOST}:{self._listener.port}/v1"

    async def arrived(self, requests: int) -> None:
        """Wait until that many requests for a completion have come."""
        while self._number < requests:
            self._arrived.clear()
            await self._arrived.wait()

    async def __aenter__(self) -> Self:
        await self._listener.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._listener.__aexit__(kind, exc, trace)

    async def _answer(self, connection: Connection, received: Received) -> None:
        route = f"{received.method} {received.path}"
        if self._key and received.headers.get("authorization") != f"Bearer {self._key}":
            # Providers do quote the key they refuse, so that nobody repeats their words unread.
            given = received.headers.get("authorization", "").removeprefix("Bearer ")
            refusal = error(401, code="invalid_api_key", message=f"Incorrect API key provided: {given}.")
            connection.send_json(refusal, status=401)
        elif route == "POST /v1/chat/completions":
            await self._complete(connection, received)
        elif route == "GET /v1/models":
            connection.send_json(models(["scripted"]))
        elif route == "GET /counters":
            connection.send_json(self.counters)
        else:
            connection.send_json(error(404, message=f"There is no {route}."), status=404)

    async def _complete(self, connection: Connection, received: Received) -> None:
        body = _parsed(received.body)
        if isinstance(body, str):
            connection.send_json(error(400, message=body), status=400)
            return
        self._number += 1
        request = Request(body, received.headers, self._number)
        exchange = Exchange(request, self._reply(request), asyncio.get_running_loop().time())
        self.exchanges.append(exchange)
        self.counters["requests"] += 1
        self._arrived.set()
        try:
            await play(connection, request, exchange.reply, quirks=self._quirks)
        except ClientLeftError:
            exchange.left_at = connection.gone_at
            raise
        finally:
            self.counters[exchange.outcome] += 1
            exchange.ended.set()

    def _reply(self, request: Request) -> Reply:
        """What the script says, unless the request is one this provider does not understand."""
        if Quirk.REJECTS_TOOLS in self._quirks and request.tools:
            return Reply(status=400, error_message="This model does not support tools.")
        if Quirk.REJECTS_STREAM_OPTIONS in self._quirks and "stream_options" in request.body:
            return Reply(status=400, error_message="Unrecognized request argument supplied: stream_options")
        script = self._script
        if isinstance(script, Reply):
            reply = script
        elif callable(script):
            reply = script(request)
        else:
            reply = script[min(request.number, len(script)) - 1]
        return self._faults.spoil(reply, request.number)


def _parsed(data: bytes) -> dict[str, Any] | str:
    """The body of a request for a completion, or what is wrong with it."""
    try:
        body = json.loads(data)
    except ValueError:
        return "The body is not JSON."
    if not isinstance(body, dict) or not isinstance(body.get("messages"), list) or not body["messages"]:
        return "'messages' must be a list of at least one message."
    return body
