"""A scripted HTTP/1.1 server on a local socket. It writes the bytes by hand, so that a fault is exact to the byte."""

import asyncio
import json
import math
import socket
import struct
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self, cast

HOST = "127.0.0.1"
_MAX_BODY = 16 * 1024 * 1024
_MAX_HEAD = 64 * 1024


class ClientDisconnected(ConnectionError):
    """The client closed the connection."""


class MalformedRequest(ValueError):
    """The bytes are not an HTTP request that this server can parse."""


@dataclass(frozen=True, slots=True)
class RawRequest:
    """An HTTP request as received."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def route(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def bearer_token(self) -> str:
        return self.headers.get("authorization", "").removeprefix("Bearer ")


class Connection(asyncio.Protocol):
    """Reads requests, writes complete or partial replies, and records when the client disconnects."""

    def __init__(self, on_open: Callable[["Connection"], None]) -> None:
        self._on_open = on_open
        self._inbox = asyncio.StreamReader(limit=_MAX_HEAD)
        self._closed = asyncio.Event()
        self.closed_at = math.inf

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._on_open(self)

    def data_received(self, data: bytes) -> None:
        self._inbox.feed_data(data)

    def eof_received(self) -> None:
        self._record_close()

    def connection_lost(self, _exc: Exception | None) -> None:
        self._record_close()

    def _record_close(self) -> None:
        if not self._closed.is_set():
            self.closed_at = asyncio.get_running_loop().time()
            self._closed.set()
            self._inbox.feed_eof()

    async def receive(self) -> RawRequest | None:
        """The next request, or None at the end of the connection."""
        try:
            head = await self._inbox.readuntil(b"\r\n\r\n")
            first, *lines = head.decode("latin-1").split("\r\n")
            method, path, version = first.split(" ")
            headers = {
                name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
            }
            length = int(headers.get("content-length", "0"))
            if not version.startswith("HTTP/1.") or not 0 <= length <= _MAX_BODY:
                raise MalformedRequest(first)
            return RawRequest(method, path.partition("?")[0], headers, await self._inbox.readexactly(length))
        except asyncio.IncompleteReadError:
            return None
        except (ValueError, asyncio.LimitOverrunError) as exc:
            raise MalformedRequest("not an HTTP request with a length") from exc

    async def pause(self, seconds: float) -> None:
        """Sleep. Raise ClientDisconnected as soon as the client disconnects."""
        if seconds <= 0:
            await asyncio.sleep(0)
        else:
            try:
                async with asyncio.timeout(seconds):
                    await self._closed.wait()
            except TimeoutError:
                return
        if self._closed.is_set():
            raise ClientDisconnected

    async def hang(self) -> None:
        """Wait until the client disconnects."""
        await self._closed.wait()
        raise ClientDisconnected

    def send(self, data: bytes) -> None:
        self._transport.write(data)

    def send_head(self, status: int, headers: Mapping[str, str]) -> None:
        lines = [
            f"HTTP/1.1 {status} {_reason_phrase(status)}",
            *(f"{name}: {value}" for name, value in headers.items()),
        ]
        self.send("\r\n".join([*lines, "", ""]).encode("latin-1"))

    def send_json(self, body: Any, *, status: int = 200, headers: Mapping[str, str] = {}) -> None:
        data = json.dumps(body).encode()
        self.send_head(status, {"content-type": "application/json", "content-length": str(len(data)), **headers})
        self.send(data)

    def send_chunk(self, data: bytes) -> None:
        """Send one chunk of a chunked body. An empty chunk ends the body."""
        self.send(b"%x\r\n%s\r\n" % (len(data), data))

    def reset(self) -> None:
        """Reset the connection with RST, as a crashed machine or a firewall does."""
        sock = self._transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()

    async def half_close(self) -> None:
        """Close the sending side and wait until the client disconnects."""
        self._transport.write_eof()
        await self._closed.wait()

    def close(self) -> None:
        self._transport.close()

    def abort(self) -> None:
        self._transport.abort()


def _reason_phrase(status: int) -> str:
    return HTTPStatus(status).phrase if status in {entry.value for entry in HTTPStatus} else "Unknown"


@dataclass(kw_only=True, eq=False)
class ScriptedHTTPServer:
    """Base of the scripted servers. It listens from `async with` to its end and passes each request to `_answer`.

    An exception in `_answer` ends the `async with`.
    """

    key: str = ""
    """The only key that is accepted; empty for any."""
    port: int = 0
    """The requested port. If that is 0, the assigned one once the server listens."""
    counters: Counter[str] = field(default_factory=Counter, init=False)
    """The number of requests under `requests`, and of each outcome under its name."""
    _connections: set[Connection] = field(default_factory=set, init=False)
    _number: int = field(default=0, init=False)
    _request_counted: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    @property
    def root_url(self) -> str:
        return f"http://{HOST}:{self.port}"

    async def _answer(self, connection: Connection, received: RawRequest) -> None:
        raise NotImplementedError

    def _accepts(self, received: RawRequest) -> bool:
        """True if the request has the key of this server, or if the server needs none."""
        return not self.key or received.headers.get("authorization") == f"Bearer {self.key}"

    def _count_request(self) -> int:
        """Count a request and return its number, starting at 1."""
        self._number += 1
        self.counters["requests"] += 1
        self._request_counted.set()
        return self._number

    async def wait_for_requests(self, requests: int) -> None:
        """Wait until that many requests have been received."""
        while self._number < requests:
            self._request_counted.clear()
            await self._request_counted.wait()

    async def __aenter__(self) -> Self:
        self._tasks = await asyncio.TaskGroup().__aenter__()
        loop = asyncio.get_running_loop()
        self._listening = await loop.create_server(lambda: Connection(self._on_open), HOST, self.port)
        self.port = self._listening.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listening.close()
        for connection in self._connections:
            connection.abort()
        # Only a cancellation is passed to the task group. Other exceptions of the body reach the caller unwrapped.
        cancelled = kind is not None and issubclass(kind, asyncio.CancelledError)
        await (self._tasks.__aexit__(kind, exc, trace) if cancelled else self._tasks.__aexit__(None, None, None))
        await self._listening.wait_closed()

    def _on_open(self, connection: Connection) -> None:
        self._connections.add(connection)
        self._tasks.create_task(self._serve(connection))

    async def _serve(self, connection: Connection) -> None:
        try:
            while received := await connection.receive():
                await self._answer(connection, received)
        except ClientDisconnected:
            pass
        except MalformedRequest as exc:
            connection.send_json({"error": {"message": str(exc)}, "message": str(exc)}, status=400)
        finally:
            connection.close()
            self._connections.discard(connection)


def parse_json(data: bytes) -> Any:
    """Parse a request body. None if it is not JSON."""
    try:
        return json.loads(data)
    except ValueError:
        return None
