"""Admission control, rate limits by key and address, and the daily quota of a site (S7)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, cast

import pytest
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from bythebook.access import ANONYMOUS, Caller
from bythebook.access import Scope as AccessScope
from bythebook.access.api_keys import ApiKeyStore
from bythebook.errors import Unavailable
from bythebook.server.admission import AdmissionController
from bythebook.server.auth import Authenticator
from bythebook.server.endpoints import RouteTable, requires
from bythebook.server.middleware import AuthMiddleware
from bythebook.testing import Fault, ScriptedReply
from tests.support.server import ServeBook, ServedBook, wait_until

pytestmark = pytest.mark.asyncio(loop_scope="session")

QUESTION = {"query": "How often does the fog horn sound?"}


async def refused_after(house: ServedBook, most: int, **headers: str) -> int:
    """The number of requests that are accepted before one is rejected."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    for number in range(most):
        response = await house.client.get("/v1/models", headers=named)
        if response.status_code == 429:
            error = response.json()["error"]
            assert error["code"] == "rate_limit"
            assert response.headers["retry-after"] == str(error["retry_after"])
            return number
    return most


async def test_requests_over_capacity_are_rejected_immediately(served: ServeBook) -> None:
    async with served(ScriptedReply(fault=Fault.HANG), retrieval_mode="prefetch", max_concurrent_requests=2) as book:
        assert book.model
        asking = [asyncio.create_task(book.client.post("/v1/ask", json=QUESTION)) for _ in range(2)]
        await wait_until(lambda: book.app.state.context.admission.active == 2)
        for body in (QUESTION, QUESTION | {"stream": True}):
            refused = await book.client.post("/v1/ask", json=body)
            assert (refused.status_code, refused.json()["error"]) == (503, "unavailable")
            assert refused.headers["retry-after"] == str(refused.json()["retry_after"])
        assert (await book.client.get("/health/live")).status_code == 200
        assert (await book.client.post("/v1/sessions")).status_code == 201
        for task in asking:
            task.cancel()
        await wait_until(lambda: book.app.state.context.admission.active == 0)


async def test_a_burst_over_capacity_is_rejected_before_authentication() -> None:
    looked_up, known, admitted = list[str](), asyncio.Event(), list[str]()

    class SlowAuthenticator:
        async def authenticate(self, scope: Scope, _headers: object) -> Caller:
            looked_up.append(scope["reader"])
            await known.wait()
            return ANONYMOUS

    async def app(scope: Scope, _receive: Receive, _send: Send) -> None:
        admitted.append(scope["reader"])

    async def endpoint() -> None: ...

    async def send_request(reader: str) -> None:
        scope = {"type": "http", "method": "POST", "path": "/v1/ask", "headers": [], "state": {}, "reader": reader}
        await middleware(scope, nothing, nothing)

    async def nothing(*_: object) -> Any: ...

    routes = RouteTable([Route("/v1/ask", requires(AccessScope.ASK, admission=True)(endpoint), methods=["POST"])])
    async with AdmissionController(capacity=2) as admission:
        slow = cast("Authenticator", SlowAuthenticator())
        middleware = AuthMiddleware(app, routes=routes, authenticator=slow, admission=admission)
        burst = [asyncio.create_task(send_request(reader)) for reader in "abcde"]
        rejected = [await asyncio.gather(each, return_exceptions=True) for each in burst[2:]]
        assert [type(error) for (error,) in rejected] == [Unavailable] * 3
        assert (looked_up, admitted) == (["a", "b"], [])
        known.set()
        await asyncio.gather(*burst[:2])
        await send_request("f")
    assert admitted == ["a", "b", "f"]


async def test_rate_limits_apply_by_key_and_by_address(served: ServeBook) -> None:
    limits = {"rate_limit_key": "7/hour", "rate_limit_address": "5/hour", "trusted_proxies": ("127.0.0.1",)}
    async with served(**limits) as book:
        # Requests from this machine are not limited while the server is open.
        assert await refused_after(book, 12) == 12
        assert await refused_after(book, 12, x_forwarded_for="203.0.113.7") == 5
        # An entry forged by the client is left of the entry of the proxy.
        assert await refused_after(book, 3, x_forwarded_for="198.51.100.1, 203.0.113.7") == 0
        assert await refused_after(book, 12, x_forwarded_for="2001:db8:1:2::1") == 5
        assert await refused_after(book, 3, x_forwarded_for="2001:db8:1:2:ffff::9") == 0
        assert await refused_after(book, 3, x_forwarded_for="2001:db8:1:3::1") == 3

        key_store = ApiKeyStore(await book.book.database())
        keys = [(await key_store.create(name))[1] for name in ("one", "two")]
        for key in keys:
            assert await refused_after(book, 12, authorization=f"Bearer {key}") == 7
        assert await refused_after(book, 3, authorization=f"Bearer {keys[0]}", x_forwarded_for="192.0.2.9") == 0
        # Guessing keys is limited by address.
        assert await refused_after(book, 12, authorization="Bearer guess", x_forwarded_for="192.0.2.10") == 5


async def test_a_server_without_trusted_proxies_ignores_forwarded_headers(served: ServeBook) -> None:
    async with served(rate_limit_address="3/hour") as book:
        count = [await refused_after(book, 1, x_forwarded_for=f"203.0.113.{number}") for number in range(6)]
    assert count == [1, 1, 1, 0, 0, 0]


async def test_a_site_is_charged_only_for_answered_questions(served: ServeBook) -> None:
    async with served(rate_limit_address="1000/hour") as book:
        site = "https://docs.example"
        _, token = await ApiKeyStore(await book.book.database()).create_site("docs", [site], budget=2)
        headers = {"authorization": f"Bearer {token}", "origin": site, "x-reader": "ab" * 16}

        async def ask(body: Mapping[str, object], **more: str) -> tuple[int, str | None]:
            response = await book.client.post("/v1/ask", json=body, headers=headers | more)
            return response.status_code, response.headers.get("retry-after")

        assert (await ask({"query": ""}))[0] == 400
        assert (await ask(QUESTION | {"session_id": "absent"}))[0] == 404
        assert (await ask(QUESTION, **{"idempotency-key": "once"}))[0] == 200
        assert (await ask(QUESTION, **{"idempotency-key": "once"}))[0] == 200
        assert (await ask(QUESTION))[0] == 200
        status, wait = await ask(QUESTION | {"stream": True})
        assert status == 429
        assert wait
        assert int(wait) <= 86400
