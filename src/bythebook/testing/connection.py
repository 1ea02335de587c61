"""One client's connection: HTTP/1.1 by hand, because a fault must be exact to the byte.

A socket that scripted servers listen on.
"""

from __future__ import annotations

import asyncio
import json
import math
import socket
import struct
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from types import TracebackType
    from typing import Self


_LARGEST_BODY = 16 * 1024 * 1024
_LARGEST_HEAD = 64 * 1024


class ClientLeftError(ConnectionError):
    """The client is gone, so there is nobody to go on for."""


class UnreadableError(ValueError):
    """What came is not a request this server can read."""


@dataclass(frozen=True, slots=True)
class Received:
    """A request as it came over the wire."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class Connection(asyncio.Protocol):
    """Reads requests, writes replies or half of them, and knows the moment at which the client left."""

    def __init__(self, opened: Callable[[Connection], None]) -> None:
        self._opened = opened
        self._inbox = asyncio.StreamReader(limit=_LARGEST_HEAD)
        self._gone = asyncio.Event()
        self.gone_at = math.inf
        self.answered_at = math.inf

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._opened(self)

    def data_received(self, data: bytes) -> None:
        self._inbox.feed_data(data)

    def eof_received(self) -> None:
        self._leave()

    def connection_lost(self, _exc: Exception | None) -> None:
        self._leave()

    def _leave(self) -> None:
        if not self._gone.is_set():
            self.gone_at = asyncio.get_running_loop().time()
            self._gone.set()
            self._inbox.feed_eof()

    async def receive(self) -> Received | None:
        """The next request, or None when there will be none."""
        try:
            head = await self._inbox.readuntil(b"\r\n\r\n")
            first, *lines = head.decode("latin-1").split("\r\n")
            method, path, version = first.split(" ")
            headers = {
                name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
            }
            length = int(headers.get("content-length", "0"))
            if not version.startswith("HTTP/1.") or not 0 <= length <= _LARGEST_BODY:
                raise UnreadableError(first)
            return Received(method, path.partition("?")[0], headers, await self._inbox.readexactly(length))
        except asyncio.IncompleteReadError:
            return None
        except (ValueError, asyncio.LimitOverrunError) as exc:
            raise UnreadableError("not an HTTP request with a length") from exc

    async def pause(self, seconds: float) -> None:
        """Wait, unless the client leaves first."""
        if seconds <= 0:
            await asyncio.sleep(0)
        else:
            try:
                async with asyncio.timeout(seconds):
                    await self._gone.wait()
            except TimeoutError:
                return
        if self._gone.is_set():
            raise ClientLeftError

    async def hang(self) -> None:
        """Do nothing until the client leaves."""
        await self._gone.wait()
        raise ClientLeftError

    def send(self, data: bytes) -> None:
        self._transport.write(data)

    def send_head(self, status: int, headers: Mapping[str, str]) -> None:
        self.answered_at = asyncio.get_running_loop().time()
        lines = [f"HTTP/1.1 {status} {_phrase(status)}", *(f"{name}: {value}" for name, value in headers.items())]
        self.send("\r\n".join([*lines, "", ""]).encode("latin-1"))

    def send_json(self, body: Any, *, status: int = 200, headers: Mapping[str, str] = {}) -> None:
        data = json.dumps(body).encode()
        self.send_head(status, {"content-type": "application/json", "content-length": str(len(data)), **headers})
        self.send(data)

    def send_chunk(self, data: bytes) -> None:
        """A part of a body of unknown length. An empty part ends it."""
        self.send(b"%x\r\n%s\r\n" % (len(data), data))

    def reset(self) -> None:
        """Reset the connection, as a crashing machine or a strict firewall does."""
        sock = self._transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()

    async def half_close(self) -> None:
        """Say that no more will be sent, and go on listening until the client has had enough."""
        self._transport.write_eof()
        await self._gone.wait()

    def close(self) -> None:
        self._transport.close()

    def abort(self) -> None:
        self._transport.abort()


def _phrase(status: int) -> str:
    return HTTPStatus(status).phrase if status in {known.value for known in HTTPStatus} else "Unknown"


HOST = "127.0.0.1"


class Listener:
    """Hands every request that comes to `answer`, from `async with` to its end. An error in there ends it."""

    def __init__(self, answer: Callable[[Connection, Received], Awaitable[None]], *, port: int) -> None:
        self._answer = answer
        self.port = port
        """The one that was asked for; with 0, once it listens, the one it has."""
        self._connections: set[Connection] = set()

    async def __aenter__(self) -> Self:
        self._tasks = await asyncio.TaskGroup().__aenter__()
        loop = asyncio.get_running_loop()
        self._listening = await loop.create_server(lambda: Connection(self._opened), HOST, self.port)
        self.port = self._listening.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listening.close()
        for connection in self._connections:
            connection.abort()
        # The group is told only of its own cancelling: what failed in the body is for the caller to see as it is.
        ours = kind is not None and issubclass(kind, asyncio.CancelledError)
        await (self._tasks.__aexit__(kind, exc, trace) if ours else self._tasks.__aexit__(None, None, None))
        await self._listening.wait_closed()

    def _opened(self, connection: Connection) -> None:
        self._connections.add(connection)
        self._tasks.create_task(self._serve(connection))

    async def _serve(self, connection: Connection) -> None:
        try:
            while received := await connection.receive():
                await self._answer(connection, received)
        except ClientLeftError:
            pass
        except UnreadableError as exc:
            connection.send_json({"error": {"message": str(exc)}, "message": str(exc)}, status=400)
        finally:
            connection.close()
            self._connections.discard(connection)
