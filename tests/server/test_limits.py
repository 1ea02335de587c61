"""How much and how often: places, rates by key and address, the budget of a site (S7)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, cast

import pytest
from starlette.types import Receive, Scope, Send

from bythebook.access import ANYONE, Caller
from bythebook.access.api_keys import Keyring
from bythebook.errors import Unavailable
from bythebook.server.admission import Desk
from bythebook.server.auth import Gate
from bythebook.server.middleware import Callers
from bythebook.testing import Fault, Reply
from tests.support.server import Served, Serving, until

pytestmark = pytest.mark.asyncio(loop_scope="session")

QUESTION = {"query": "How often does the fog horn sound?"}


async def refused_after(house: Served, most: int, **headers: str) -> int:
    """How many requests are let in before one is refused."""
    told = {name.replace("_", "-"): value for name, value in headers.items()}
    for number in range(most):
        response = await house.client.get("/v1/models", headers=told)
        if response.status_code == 429:
            said = response.json()["error"]
            assert said["code"] == "rate_limit"
            assert response.headers["retry-after"] == str(said["retry_after"])
            return number
    return most


async def test_who_finds_no_place_is_turned_away_at_once(served: Serving) -> None:
    async with served(Reply(fault=Fault.HANG), retrieval_mode="prefetch", max_readers=2) as book:
        assert book.model
        asking = [asyncio.create_task(book.client.post("/v1/ask", json=QUESTION)) for _ in range(2)]
        await until(lambda: book.app.state.door.desk.taken == 2)
        for body in (QUESTION, QUESTION | {"stream": True}):
            refused = await book.client.post("/v1/ask", json=body)
            assert (refused.status_code, refused.json()["error"]) == (503, "unavailable")
            assert refused.headers["retry-after"] == str(refused.json()["retry_after"])
        assert (await book.client.get("/health/live")).status_code == 200
        assert (await book.client.post("/v1/sessions")).status_code == 201
        for task in asking:
            task.cancel()
        await until(lambda: book.app.state.door.desk.taken == 0)


async def test_of_a_crowd_that_comes_in_one_moment_only_those_with_a_place_are_looked_up() -> None:
    looked_up, known, let_in = list[str](), asyncio.Event(), list[str]()

    class SlowGate:
        async def admit(self, scope: Scope, _headers: object) -> Caller:
            looked_up.append(scope["reader"])
            await known.wait()
            return ANYONE

    async def app(scope: Scope, _receive: Receive, _send: Send) -> None:
        let_in.append(scope["reader"])

    async def come(reader: str) -> None:
        scope = {"type": "http", "method": "POST", "path": "/v1/ask", "headers": [], "state": {}, "reader": reader}
        await callers(scope, nothing, nothing)

    async def nothing(*_: object) -> Any: ...

    async with Desk(places=2) as desk:
        callers = Callers(app, gate=cast("Gate", SlowGate()), desk=desk)
        crowd = [asyncio.create_task(come(reader)) for reader in "abcde"]
        turned_away = [await asyncio.gather(each, return_exceptions=True) for each in crowd[2:]]
        assert [type(error) for (error,) in turned_away] == [Unavailable] * 3
        assert (looked_up, let_in) == (["a", "b"], [])
        known.set()
        await asyncio.gather(*crowd[:2])
        await come("f")
    assert let_in == ["a", "b", "f"]


async def test_callers_are_limited_by_key_and_by_address(served: Serving) -> None:
    limits = {"rate_limit_key": "7/hour", "rate_limit_address": "5/hour", "trusted_proxies": ("127.0.0.1",)}
    async with served(**limits) as book:
        # Somebody at this machine itself is not limited while the server is open.
        assert await refused_after(book, 12) == 12
        assert await refused_after(book, 12, x_forwarded_for="203.0.113.7") == 5
        # What a caller writes itself stands left of what the proxy wrote.
        assert await refused_after(book, 3, x_forwarded_for="198.51.100.1, 203.0.113.7") == 0
        assert await refused_after(book, 12, x_forwarded_for="2001:db8:1:2::1") == 5
        assert await refused_after(book, 3, x_forwarded_for="2001:db8:1:2:ffff::9") == 0
        assert await refused_after(book, 3, x_forwarded_for="2001:db8:1:3::1") == 3

        keyring = Keyring(await book.book.database())
        keys = [(await keyring.create(name))[1] for name in ("one", "two")]
        for key in keys:
            assert await refused_after(book, 12, authorization=f"Bearer {key}") == 7
        assert await refused_after(book, 3, authorization=f"Bearer {keys[0]}", x_forwarded_for="192.0.2.9") == 0
        # Guessing keys is limited by address.
        assert await refused_after(book, 12, authorization="Bearer guess", x_forwarded_for="192.0.2.10") == 5


async def test_without_trusted_proxies_nobody_believes_a_header(served: Serving) -> None:
    async with served(rate_limit_address="3/hour") as book:
        count = [await refused_after(book, 1, x_forwarded_for=f"203.0.113.{number}") for number in range(6)]
    assert count == [1, 1, 1, 0, 0, 0]


async def test_a_site_pays_for_what_is_answered_and_for_nothing_else(served: Serving) -> None:
    async with served(rate_limit_address="1000/hour") as book:
        site = "https://docs.example"
        _, token = await Keyring(await book.book.database()).create_site("docs", [site], budget=2)
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
