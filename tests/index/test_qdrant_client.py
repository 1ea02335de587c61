"""Failures of a Qdrant server, over a real socket and with the Qdrant client library."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator

import pytest

from bythebook.errors import (
    BookError,
    ConfigurationError,
    DeadlineExceeded,
    QdrantConnectionError,
    RateLimited,
    Unavailable,
)
from bythebook.index.qdrant.client import QdrantAddress, QdrantServer, open_server
from bythebook.index.qdrant.generations import ServerGenerations
from tests.support.qdrant_server import Fault, QdrantHere, running_qdrant

KEY = "a-secret-key"


@pytest.fixture
def here() -> Iterator[QdrantHere]:
    with running_qdrant(api_key=KEY) as running:
        yield running


@pytest.fixture
async def server(here: QdrantHere) -> AsyncIterator[QdrantServer]:
    async with open_server(QdrantAddress(here.url, KEY), reading_seconds=30.0) as opened:
        yield opened


async def current(server: QdrantServer) -> str:
    return await ServerGenerations(server, "book").current()


async def test_sends_the_key_and_never_prints_it(here: QdrantHere, server: QdrantServer) -> None:
    assert await current(server) == ""
    assert KEY not in repr(QdrantAddress(here.url, KEY)) + str(QdrantAddress(here.url, KEY))


@pytest.mark.parametrize("key", ["", "another"], ids=["no key", "another key"])
async def test_a_rejected_key_is_reported_and_not_retried(here: QdrantHere, key: str) -> None:
    async with open_server(QdrantAddress(here.url, key), reading_seconds=30.0) as server:
        with pytest.raises(ConfigurationError, match=r"did not accept the key \(HTTP 401\)\. Set QDRANT_API_KEY"):
            await current(server)
    assert len(here.requests) == 1


@pytest.mark.parametrize(
    ("fault", "error", "said", "attempts"),
    [
        pytest.param(Fault(403), ConfigurationError, "did not accept the key", 1, id="forbidden"),
        pytest.param(
            Fault(400, body=b'{"status":{"error":"Wrong input: so"}}'), QdrantConnectionError, "Wrong input: so", 1,
            id="refused",
        ),
        pytest.param(Fault(404, body=b"<html>"), QdrantConnectionError, "HTTP 404", 1, id="not there"),
        pytest.param(Fault(500), QdrantConnectionError, "HTTP 500", 3, id="failed"),
        pytest.param(Fault(503), QdrantConnectionError, "HTTP 503", 3, id="down"),
        pytest.param(Fault(reset=True), QdrantConnectionError, "broke", 3, id="the connection is cut"),
        pytest.param(Fault(200, body=b"<html>"), QdrantConnectionError, "not one of Qdrant", 3, id="a web page"),
        pytest.param(Fault(200, body=b'{"result": 7}'), QdrantConnectionError, "not one of Qdrant", 3, id="other JSON"),
        pytest.param(Fault(301), QdrantConnectionError, "not one of Qdrant", 1, id="a redirect"),
        pytest.param(Fault(429), RateLimited, "HTTP 429", 3, id="busy"),
        pytest.param(Fault(429, {"retry-after": "600"}), RateLimited, "busy", 1, id="busy for long"),
        pytest.param(
            Fault(429, {"retry-after": "soon"}), QdrantConnectionError, "not one of Qdrant", 3,
            id="busy for words",
        ),
    ],
)  # fmt: skip
async def test_classifies_failures_and_retries_the_transient_ones(
    here: QdrantHere, server: QdrantServer, fault: Fault, error: type[BookError], said: str, attempts: int
) -> None:
    here.always = fault
    with pytest.raises(error, match=said) as caught:
        await current(server)
    assert type(caught.value) is error
    assert len(here.requests) == attempts
    assert caught.value.stage == "finding the book"


@pytest.mark.parametrize(
    "fault",
    [Fault(500), Fault(reset=True), Fault(429, {"retry-after": "0"}), Fault(502, body=b"bad gateway")],
    ids=["failed", "cut", "busy", "a gateway"],
)
async def test_retries_a_transient_failure(here: QdrantHere, server: QdrantServer, fault: Fault) -> None:
    here.faults = [fault]
    assert await current(server) == ""
    assert here.requests[0] == here.requests[1]


async def test_a_hanging_server_fails_at_the_deadline(here: QdrantHere) -> None:
    here.always = Fault(hang=True)
    async with open_server(QdrantAddress(here.url, KEY), reading_seconds=0.5) as server:
        with pytest.raises(DeadlineExceeded, match="did not answer in time"):
            await current(server)
    assert 1 <= len(here.requests) <= 3


async def test_a_failing_server_opens_the_circuit_breaker(here: QdrantHere, server: QdrantServer) -> None:
    here.always = Fault(500)
    for _ in range(5):
        with pytest.raises(QdrantConnectionError):
            await current(server)
    asked = len(here.requests)
    with pytest.raises(Unavailable, match="keeps failing"):
        await current(server)
    assert len(here.requests) == asked


async def test_names_an_unreachable_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    async with open_server(QdrantAddress(f"http://127.0.0.1:{port}"), reading_seconds=30.0) as server:
        with pytest.raises(QdrantConnectionError, match=rf"127\.0\.0\.1:{port} cannot be reached\. Is it running"):
            await current(server)


async def test_a_cancelled_request_leaves_no_task(here: QdrantHere, server: QdrantServer) -> None:
    here.faults = [Fault(hang=True)]
    task = asyncio.create_task(current(server))
    async with asyncio.timeout(60):
        while not here.requests:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await current(server) == ""


async def test_rejects_a_server_of_an_old_version() -> None:
    with running_qdrant(version="1.15.4") as here:
        async with open_server(QdrantAddress(here.url), reading_seconds=30.0) as server:
            with pytest.raises(ConfigurationError, match=r"version 1\.15\.4, and a book needs 1\.19 or newer"):
                await server.check_version()
