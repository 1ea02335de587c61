"""What comes over a connection before it is a request: its size and its time have an end."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from uvicorn import Config
from uvicorn.server import ServerState

from bythebook.server.http_protocol import MAX_HEAD_BYTES, HttpProtocol
from bythebook.server.schemas import ErrorResponse
from tests.server.conftest import Part
from tests.support.server import ServedBook

pytestmark = pytest.mark.asyncio(loop_scope="session")

QUESTION = b'{"query": "How often does the fog horn sound?"}'


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection(*url.removeprefix("http://").split(":"))
    try:
        yield reader, writer
    finally:
        writer.close()


async def refused(house: ServedBook, sent: bytes) -> ErrorResponse:
    """The response to these bytes, up to the close of the connection."""
    async with connected(house.url) as (reader, writer):
        writer.write(sent)
        async with asyncio.timeout(60):
            head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"content-type: application/json" in head
    return ErrorResponse.model_validate(json.loads(body))


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100), id="TLS"),
        pytest.param(b"EHLO example.org\r\n\r\n", id="mail"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", id="two names of the server"),
        pytest.param(
            b"POST /v1/ask HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", id="a chunk without a size"
        ),
        pytest.param(b"GET / HTTP/1.1\r\nHost\r\n\r\n", id="a header without a value"),
        pytest.param(b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n", id="an address of other bytes"),
        pytest.param(
            b"POST /v1/ask HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", id="two lengths"
        ),
        pytest.param(
            b"POST /v1/ask HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            id="a length and chunks",
        ),
    ],
)
async def test_rejects_an_invalid_request_with_an_error_response(house: ServedBook, sent: bytes) -> None:
    said = await refused(house, sent)
    assert (said.error, said.status_code) == ("invalid_input", 400)


@pytest.mark.parametrize(
    "unending",
    [
        pytest.param(b"GET /" + b"x" * MAX_HEAD_BYTES, id="an address"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\nCookie: " + b"x" * MAX_HEAD_BYTES, id="a header"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\n" + b"A: bc\r\n" * (MAX_HEAD_BYTES // 7 + 1), id="headers"),
    ],
)
async def test_rejects_a_head_over_the_limit(house: ServedBook, unending: bytes) -> None:
    assert f"{MAX_HEAD_BYTES:,} bytes" in (await refused(house, unending)).message


async def test_an_endless_body_closes_the_connection(house: ServedBook) -> None:
    host = house.url.removeprefix("http://")
    head = f"POST /v1/ask HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked"
    chunk = f"{len(QUESTION):x}\r\n".encode() + QUESTION + b"\r\n"
    async with connected(house.url) as (reader, writer):
        writer.write(head.encode() + b"\r\n\r\n" + chunk + b"0\r\nTrailer: " + b"x" * 4 * MAX_HEAD_BYTES)
        async with asyncio.timeout(60):
            try:
                answered = await reader.read()
            except ConnectionResetError:
                answered = b""
    assert b" 200 " not in answered


async def test_the_limit_of_the_head_is_not_for_the_sum_of_pipelined_requests(house: ServedBook) -> None:
    host = house.url.removeprefix("http://")
    one = f"GET /health/live HTTP/1.1\r\nHost: {host}\r\nCookie: {'x' * (MAX_HEAD_BYTES // 2)}\r\n\r\n".encode()
    async with connected(house.url) as (reader, writer):
        for _ in range(5):
            writer.write(one)
            async with asyncio.timeout(60):
                head = await reader.readuntil(b"\r\n\r\n")
                assert head.startswith(b"HTTP/1.1 200 ")
                await reader.readuntil(b"}")


@asynccontextmanager
async def impatient(house: ServedBook) -> AsyncIterator[str]:
    """The same book for those who are quick."""

    class Impatient(HttpProtocol):
        head_timeout = 0.02
        stall_timeout = 0.1
        watch_interval = 0.01

    loop, config = asyncio.get_running_loop(), Config(house.app, log_config=None)
    server = await loop.create_server(lambda: Impatient(config, ServerState(), {}), "127.0.0.1", 0)
    async with server:
        yield "{}:{}".format(*server.sockets[0].getsockname())


async def test_closes_the_connection_when_a_head_is_not_finished_in_time(house: ServedBook) -> None:
    async with impatient(house) as host:
        whole = f"GET /health/live HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
        for sent in (b"", whole[:10], whole + whole[:10]):
            async with connected(f"http://{host}") as (reader, writer):
                writer.write(sent)
                async with asyncio.timeout(60):
                    answered = await reader.read()
            assert answered.count(b"HTTP/1.1 200 ") == sent.count(whole)


async def test_a_head_timeout_does_not_interrupt_a_response(house: ServedBook, part: Part) -> None:
    part.reply = replace(part.reply, delay_first=0.2)
    async with impatient(house) as host, connected(f"http://{host}") as (reader, writer):
        head = f"POST /v1/ask HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {len(QUESTION)}\r\n\r\n".encode() + QUESTION + b"GET /health")
        async with asyncio.timeout(60):
            assert b'"outcome":"answered"' in await reader.readuntil(b'"outcome":"answered"')


async def test_closes_the_connection_of_a_client_that_sends_less_than_a_request_after_an_answer(
    house: ServedBook,
) -> None:
    async with impatient(house) as host, connected(f"http://{host}") as (reader, writer):
        writer.write(f"GET /health/live HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        await reader.readuntil(b"}")
        writer.write(b"G")
        async with asyncio.timeout(60):
            assert await reader.read() == b""


async def test_a_client_that_reads_nothing_gives_its_place_back(house: ServedBook) -> None:
    async with impatient(house) as host:
        loop, silent, (name, port) = asyncio.get_running_loop(), socket.socket(), host.split(":")
        silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        silent.setblocking(False)
        one = f"GET /widget.js HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
        with silent:
            await loop.sock_connect(silent, (name, int(port)))
            async with asyncio.timeout(60):
                assert await _send_until_reset(silent, one)


async def _send_until_reset(client: socket.socket, request: bytes) -> bool:
    try:
        while True:
            await asyncio.get_running_loop().sock_sendall(client, request)
            await asyncio.sleep(0)
    except ConnectionError:
        return True


@pytest.mark.parametrize("pieces", ["together", "apart"])
async def test_a_request_that_does_not_wait_for_the_answer_before_is_not_read(house: ServedBook, pieces: str) -> None:
    host = house.url.removeprefix("http://")
    one = f"POST /v1/ask HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n".encode()
    one += f"Content-Length: {len(QUESTION)}\r\n\r\n".encode() + QUESTION
    async with connected(house.url) as (reader, writer):
        for part in [one * 3] if pieces == "together" else [one] * 3:
            writer.write(part)
            await asyncio.sleep(0)
        async with asyncio.timeout(60):
            assert (await reader.read()).count(b"HTTP/1.1 200 ") == 1


@pytest.mark.parametrize("upgrade", ["h2c", "websocket", "TLS/1.0"])
async def test_the_body_of_a_request_that_offers_another_protocol_is_read(house: ServedBook, upgrade: str) -> None:
    host = house.url.removeprefix("http://")
    head = f"POST /v1/ask HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
    head += f"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: {upgrade}\r\nHTTP2-Settings: AAEAAEAAAAIAAAAB\r\n"
    async with connected(house.url) as (reader, writer):
        for _ in range(2):
            writer.write(f"{head}Content-Length: {len(QUESTION)}\r\n\r\n".encode() + QUESTION)
            async with asyncio.timeout(60):
                answer = await reader.readuntil(b"\r\n\r\n")
                assert answer.startswith(b"HTTP/1.1 200 ")
                size = int(re.search(rb"content-length: (\d+)", answer)[1])  # type: ignore[index]
                assert b'"outcome":"answered"' in await reader.readexactly(size)


async def test_a_request_that_is_meant_for_a_proxy_is_refused(house: ServedBook) -> None:
    async with connected(house.url) as (reader, writer):
        writer.write(f"CONNECT example.org:443 HTTP/1.1\r\nHost: {house.url[7:]}\r\n\r\n".encode())
        async with asyncio.timeout(60):
            assert re.match(rb"HTTP/1.1 40[45] ", await reader.readuntil(b"\r\n\r\n"))
