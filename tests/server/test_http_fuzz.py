"""The HTTP front sees the same requests as uvicorn's own protocol, in whatever pieces bytes arrive. (HARDENING S15)"""

from __future__ import annotations

import asyncio
import random
import socket
from typing import TYPE_CHECKING, Any

import pytest
from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from bythebook.server.http_protocol import MAX_HEAD_BYTES, HttpProtocol

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

Request = tuple[str, str, bytes]
HEADERS = [
    *["Connection: Upgrade", "Upgrade: h2c", "Upgrade: websocket", "Connection: close", "Connection: keep-alive"],
    *["Expect: 100-continue", "Host: b", "Content-Length: 5", "Content-Length: 7", "Content-Length: 5, 5", "X:\tq"],
    *["Content-Length: -1", "Content-Length: +5", "Transfer-Encoding: chunked", "Transfer-Encoding: gzip, chunked"],
    *["Transfer-Encoding : chunked", "Transfer-Encoding: identity", " folded: x", "X", ": x", "Cookie: " + "x" * 3000],
]
BODIES = [
    b"",
    b"hello",
    b"hello, w",
    b"5\r\nhello\r\n0\r\n\r\n",
    b"5;a=b\r\nhello\r\n0\r\nT: x\r\n\r\n",
    b"zz\r\nhello",
    b"0\r\n\r\n",
]


def make_request(chance: random.Random) -> bytes:
    headers = chance.sample(HEADERS, chance.randint(0, 4))
    line = chance.choice(
        ["GET / HTTP/1.1", "POST /a HTTP/1.1", "POST /b?c HTTP/1.0", "HEAD / HTTP/1.1", "CONNECT a:1 HTTP/1.1"]
    )
    end = chance.choice(["\r\n", "\r\n", "\r\n", "\n"])
    raw = end.join([line, *(["Host: a"] if chance.random() < 0.9 else []), *headers, "", ""]).encode()
    raw += chance.choice(BODIES)
    if chance.random() < 0.2:
        at = chance.randrange(len(raw))
        raw = raw[:at] + bytes([chance.randrange(256)]) + raw[at + chance.randint(0, 1) :]
    return raw


class Recorder:
    """Connections to one protocol class whose application notes the requests."""

    def __init__(self, protocol: type[H11Protocol]) -> None:
        self._config = Config(
            self._answer,
            log_config=None,
            ws="none",
            interface="asgi3",
            h11_max_incomplete_event_size=MAX_HEAD_BYTES,
        )
        self._config.load()
        self._protocol = protocol
        self.seen: list[Request] = []

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = b""
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message["body"]
            if not message["more_body"]:
                break
        self.seen.append((scope["method"], scope["path"], body))
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    async def requests(self, pieces: list[bytes]) -> list[Request]:
        """The requests that are seen when these pieces arrive, each after the answer to the one before."""
        self.seen = []
        client, server = socket.socketpair()
        client.setblocking(False)
        state: Any = ServerState()
        loop = asyncio.get_running_loop()
        transport, _ = await loop.connect_accepted_socket(lambda: self._protocol(self._config, state, {}), sock=server)
        with client:
            for piece in pieces:
                try:
                    client.send(piece)
                except ConnectionError:
                    break
                for _ in range(8):
                    await asyncio.sleep(0)
            transport.abort()
        return self.seen


@pytest.mark.filterwarnings("ignore::ResourceWarning")
async def test_the_same_requests_are_seen(pytestconfig: pytest.Config) -> None:
    ours, standard = Recorder(HttpProtocol), Recorder(H11Protocol)
    count = 0
    for seed in range(20_000 if pytestconfig.getoption("--full-size") else 300):
        chance = random.Random(seed)  # noqa: S311 - the same streams every time
        requests = [make_request(chance) for _ in range(chance.randint(1, 3))]
        stream = b"".join(requests)
        cuts = sorted(chance.sample(range(len(stream)), min(len(stream), chance.randint(0, 6))))
        pieces = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
        expected = await standard.requests(pieces)
        seen = await ours.requests(pieces)
        count += len(seen)
        # A request with two lengths, or before the answer to the last one, ends the connection.
        assert seen == expected[: len(seen)], seed
        if b"ncoding" not in stream and len(requests) == 1:
            assert seen == expected, seed
    assert count > 50
