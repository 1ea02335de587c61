"""Access to every route (S5, S6, S7): a new route fails here until it is in the table with its scope."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from starlette.routing import BaseRoute, Route

from bythebook.access import SITE_SCOPES, Scope
from bythebook.access.api_keys import ApiKeyStore
from bythebook.server.endpoints import RoutePolicy, RouteTable, public, requires
from tests.support.server import ServedBook, serve_book, settings_for

pytestmark = pytest.mark.asyncio(loop_scope="session")

SITE = "https://docs.example"
READER = "ab" * 16
QUESTION = {"query": "How often does the fog horn sound?"}
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}

# The body of a call of each route. Ids are filled in.
CALLS: dict[tuple[str, str], Any] = {
    ("POST", "/v1/ask"): QUESTION,
    ("POST", "/v1/sessions"): {},
    ("GET", "/v1/sessions"): None,
    ("GET", "/v1/sessions/{session_id}"): None,
    ("GET", "/v1/sessions/{session_id}/messages"): None,
    ("GET", "/v1/sessions/{session_id}/turns"): None,
    ("POST", "/v1/sessions/{session_id}/reset"): None,
    ("DELETE", "/v1/sessions/{session_id}"): None,
    ("POST", "/v1/search"): {"query": "fog horn"},
    ("POST", "/v1/feedback"): {"response_id": "ID", "rating": "up"},
    ("POST", "/v1/chat/completions"): {"messages": [{"role": "user", "content": QUESTION["query"]}]},
    ("GET", "/v1/models"): None,
    ("GET", "/v1/models/{model_id}"): None,
    ("POST", "/mcp"): HELLO,
    ("GET", "/metrics"): None,
    ("GET", "/health"): None,
    ("GET", "/health/live"): None,
    ("GET", "/health/ready"): None,
    ("GET", "/"): None,
    ("GET", "/widget.js"): None,
    ("GET", "/v1/questions"): None,
    ("GET", "/read/{chunk_id}"): None,
    ("GET", "/docs"): None,
    ("GET", "/openapi.json"): None,
}
UNLIMITED = {"rate_limit_key": "1000000/minute", "rate_limit_address": "1000000/minute"}
PUBLIC = RoutePolicy(None)
ASK = RoutePolicy(Scope.ASK)
POLICIES: dict[tuple[str, str], RoutePolicy] = {
    ("POST", "/v1/ask"): RoutePolicy(Scope.ASK, admission=True),
    ("POST", "/v1/sessions"): ASK,
    ("GET", "/v1/sessions"): ASK,
    ("GET", "/v1/sessions/{session_id}"): ASK,
    ("GET", "/v1/sessions/{session_id}/turns"): ASK,
    ("GET", "/v1/sessions/{session_id}/messages"): ASK,
    ("POST", "/v1/sessions/{session_id}/reset"): ASK,
    ("DELETE", "/v1/sessions/{session_id}"): ASK,
    ("POST", "/v1/search"): RoutePolicy(Scope.SEARCH, admission=True),
    ("POST", "/v1/feedback"): RoutePolicy(Scope.FEEDBACK),
    ("POST", "/v1/chat/completions"): RoutePolicy(Scope.ASK, admission=True),
    ("GET", "/v1/models"): ASK,
    ("GET", "/v1/models/{model_id}"): ASK,
    ("POST", "/mcp"): RoutePolicy(Scope.ASK, admission=True, site_tokens=False),
    ("GET", "/metrics"): RoutePolicy(Scope.METRICS),
    ("GET", "/health"): PUBLIC,
    ("GET", "/health/live"): PUBLIC,
    ("GET", "/health/ready"): PUBLIC,
    ("GET", "/"): PUBLIC,
    ("GET", "/widget.js"): PUBLIC,
    ("GET", "/v1/questions"): RoutePolicy(Scope.ASK, admission=True),
    ("GET", "/read/{chunk_id}"): PUBLIC,
    ("GET", "/docs"): PUBLIC,
    ("GET", "/openapi.json"): PUBLIC,
}
ROUTES = [pytest.param(*route, id=" ".join(route)) for route in POLICIES if "chunk_id" not in route[1]]
"""The pages of the book have a rule of their own, which `test_pages_of_the_book.py` tests."""


@dataclass(frozen=True, slots=True)
class Closed:
    """A server with keys, and the headers of each kind of caller."""

    served: ServedBook
    headers: dict[str, dict[str, str]]

    async def call(self, who: str, method: str, path: str, body: Any = None, **more: str) -> httpx.Response:
        accept = {"accept": "application/json, text/event-stream"} if path == "/mcp" else {}
        sent = self.headers[who] | accept | {name.replace("_", "-"): value for name, value in more.items()}
        return await self.served.client.request(method, path, json=body, headers=sent)

    async def session(self, who: str) -> str:
        response = await self.call(who, "POST", "/v1/sessions")
        assert response.status_code == 201, response.text
        session_id: str = response.json()["id"]
        return session_id

    async def answer(self, who: str) -> str:
        response = await self.call(who, "POST", "/v1/ask", QUESTION)
        assert response.status_code == 200, response.text
        answer_id: str = response.json()["id"]
        return answer_id


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def closed(shelved: Path, model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Closed]:
    folder = tmp_path_factory.mktemp("closed")
    settings = settings_for(shelved, model_folder, folder, cors_origins=("https://app.example",), **UNLIMITED)
    async with serve_book(settings) as served:
        key_store = ApiKeyStore(await served.book.database())
        every = frozenset(Scope) - {Scope.ADMIN}
        secrets = {name: (await key_store.create(name, scopes=every))[1] for name in ("A", "B")}
        gone, secrets["revoked"] = await key_store.create("revoked", scopes=every)
        await key_store.revoke(gone.id)
        for scope in every:
            secrets[f"without {scope}"] = (await key_store.create("", scopes=every - {scope}))[1]
        secrets["admin"] = (await key_store.create("admin", scopes=[Scope.ADMIN]))[1]
        secrets["site"] = (await key_store.create_site("site", [SITE], budget=10_000))[1]
        headers = {name: {"authorization": f"Bearer {secret}"} for name, secret in secrets.items()}
        headers["elsewhere"] = headers["site"]
        headers["site"] = headers["site"] | {"origin": SITE, "x-reader": READER}
        headers["nobody"] = {}
        headers["forged"] = {"authorization": "Bearer btb_000000000000_" + "x" * 43}
        headers["site as key"] = {"authorization": headers["site"]["authorization"].replace("btbsite", "btb")}
        yield Closed(served, headers)


def every_route(routes: Iterable[BaseRoute]) -> Iterator[tuple[str, str]]:
    """The method and path of all routes, whether or not they are in the OpenAPI document."""
    for route in routes:
        if included := getattr(route, "original_router", None):
            yield from every_route(included.routes)
        else:
            assert isinstance(route, Route), f"{route} cannot be looked into"
            yield from ((method, route.path) for method in (route.methods or {"POST"}) - {"HEAD"})


async def test_every_route_is_in_the_table_of_this_test_with_its_scope(closed: Closed) -> None:
    assert set(every_route(closed.served.app.routes)) == set(POLICIES) == set(CALLS)
    assert closed.served.app.state.context.routes.policies == POLICIES


async def test_a_route_without_a_policy_is_an_error() -> None:
    async def undeclared() -> None: ...

    with pytest.raises(TypeError, match="declares no access policy"):
        RouteTable([Route("/open", undeclared)])
    assert RouteTable([Route("/open", public(undeclared))]).policies == {("GET", "/open"): PUBLIC}
    assert RouteTable([Route("/ask", requires(Scope.ASK)(undeclared))]).policies == {("GET", "/ask"): ASK}


async def path_for(closed: Closed, who: str, method: str, path: str) -> tuple[str, Any]:
    """The path and body of a call with ids of this caller."""
    body = CALLS[method, path]
    path = path.replace("{model_id}", "bythebook")
    if "{session_id}" in path:
        path = path.replace("{session_id}", await closed.session(who))
    if path == "/v1/feedback":
        body = body | {"response_id": await closed.answer(who)}
    return path, body


@pytest.mark.parametrize(("method", "path"), ROUTES)
async def test_a_key_with_the_scope_may_call_a_route(closed: Closed, method: str, path: str) -> None:
    for who in ("A", "admin"):
        address, body = await path_for(closed, who, method, path)
        response = await closed.call(who, method, address, body)
        # Metrics are collected only by `serve`.
        expected = {404} if path == "/metrics" else {200, 201, 204}
        assert response.status_code in expected, (who, response.text)


@pytest.mark.parametrize(("method", "path"), ROUTES)
async def test_a_route_rejects_missing_and_invalid_keys_and_scopes(closed: Closed, method: str, path: str) -> None:
    scope = POLICIES[method, path].scope
    address = path.replace("{session_id}", str(uuid.uuid4()))
    for who in ("nobody", "revoked", "forged", "site as key"):
        response = await closed.call(who, method, address, CALLS[method, path])
        if scope is None:
            assert response.status_code == 200
        else:
            assert response.status_code == 401, who
            assert "'Authorization', behind the word Bearer" in response.text
            assert "bearer" in response.headers["www-authenticate"].lower()
    if scope is not None:
        response = await closed.call(f"without {scope}", method, address, CALLS[method, path])
        assert response.status_code == 403


@pytest.mark.parametrize(("method", "path"), ROUTES)
async def test_a_site_token_works_only_from_its_origin_and_for_its_scopes(
    closed: Closed, method: str, path: str
) -> None:
    scope = POLICIES[method, path].scope
    if scope is None:
        return
    if scope in SITE_SCOPES and POLICIES[method, path].site_tokens:
        address, body = await path_for(closed, "site", method, path)
        response = await closed.call("site", method, address, body)
        assert response.status_code in {200, 201, 204}, response.text
        assert response.headers["access-control-allow-origin"] == SITE
    else:
        address, body = path, CALLS[method, path]
        assert (await closed.call("site", method, address, body)).status_code == 403
    for origin in ("https://evil.example", "https://docs.example.evil.example", "null", "https://docs.example:8443"):
        response = await closed.call("elsewhere", method, address, body, origin=origin)
        assert response.status_code == 403
        assert "access-control-allow-origin" not in response.headers
    assert (await closed.call("elsewhere", method, address, body)).status_code == 403


OWNED = [route for route in POLICIES if "{session_id}" in route[1]]


@pytest.mark.parametrize(("method", "path"), OWNED, ids=[" ".join(route) for route in OWNED])
async def test_a_session_of_another_caller_is_reported_as_not_found(closed: Closed, method: str, path: str) -> None:
    foreign = await closed.session("B")
    for who in ("A", "site", "admin"):
        received = []
        for session_id in (foreign, str(uuid.uuid4())):
            response = await closed.call(who, method, path.replace("{session_id}", session_id))
            received.append((response.status_code, response.json() | {"request_id": None}))
        assert received[0] == received[1]
        assert received[0][0] == 404
    assert (await closed.call("B", "GET", f"/v1/sessions/{foreign}")).status_code == 200


async def test_sessions_ratings_and_idempotency_keys_belong_to_one_caller(closed: Closed) -> None:
    asked = [
        await closed.call("A", "POST", "/v1/ask", QUESTION | {"session_id": session_id})
        for session_id in (await closed.session("B"), str(uuid.uuid4()))
    ]
    rated = [
        await closed.call("A", "POST", "/v1/feedback", {"response_id": answer_id, "rating": "up"})
        for answer_id in (await closed.answer("B"), str(uuid.uuid4()))
    ]
    keyed = [
        await closed.call(
            "A", "POST", "/v1/ask", QUESTION | {"session_id": session_id}, idempotency_key=uuid.uuid4().hex
        )
        for session_id in (await closed.session("B"), str(uuid.uuid4()))
    ]
    for foreign, absent in (asked, rated, keyed):
        assert foreign.status_code == absent.status_code == 404
        assert foreign.json() | {"request_id": ""} == absent.json() | {"request_id": ""}

    ids = set()
    for who in ("A", "B", "site"):
        said = await closed.call(who, "POST", "/v1/ask", QUESTION, idempotency_key="the same")
        assert said.status_code == 200
        ids.add(said.json()["id"])
    assert len(ids) == 3


async def test_readers_of_one_site_have_separate_sessions(closed: Closed) -> None:
    mine = await closed.session("site")
    assert (await closed.call("site", "GET", f"/v1/sessions/{mine}")).status_code == 200
    assert (await closed.call("site", "GET", f"/v1/sessions/{mine}", x_reader="cd" * 16)).status_code == 404


async def test_a_stream_of_another_caller_cannot_be_resumed(closed: Closed) -> None:
    first = await closed.call("A", "POST", "/v1/ask", QUESTION | {"stream": True})
    lost = first.text.split("id: ")[2].split("\n")[0]
    mine = await closed.call("A", "POST", "/v1/ask", QUESTION | {"stream": True}, last_event_id=lost)
    theirs = await closed.call("B", "POST", "/v1/ask", QUESTION | {"stream": True}, last_event_id=lost)
    assert lost.split(".")[0] in mine.text
    assert lost.split(".")[0] not in theirs.text


async def test_preflight_requests_are_answered_for_listed_origins_only(closed: Closed) -> None:
    asking = {"access-control-request-method": "POST", "access-control-request-headers": "authorization"}
    for origin in (SITE, "https://app.example"):
        received = await closed.served.client.options("/v1/ask", headers=asking | {"origin": origin})
        assert (received.status_code, received.headers["access-control-allow-origin"]) == (204, origin)
        assert "access-control-allow-credentials" not in received.headers
    for origin in ("https://evil.example", "null", "https://DOCS.example", "http://docs.example", f"{SITE}:444"):
        received = await closed.served.client.options("/v1/ask", headers=asking | {"origin": origin})
        assert "access-control-allow-origin" not in received.headers


async def test_an_error_response_has_cors_headers(closed: Closed) -> None:
    response = await closed.call("nobody", "POST", "/v1/ask", QUESTION, origin="https://app.example")
    assert (response.status_code, response.headers["access-control-allow-origin"]) == (401, "https://app.example")


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "", "[::2]"])
async def test_rejects_an_unknown_host(closed: Closed, host: str) -> None:
    assert (await closed.call("A", "GET", "/v1/models", host=host)).status_code == 403


@pytest.mark.parametrize("host", ["localhost:8000", "127.0.0.1", "[::1]:80", "LOCALHOST"])
async def test_accepts_the_loopback_hosts(closed: Closed, host: str) -> None:
    assert (await closed.call("A", "GET", "/v1/models", host=host)).status_code == 200


@pytest.mark.parametrize("path", [path for method, path in POLICIES if method == "GET" and "{" not in path])
async def test_head_has_the_status_and_headers_of_get(closed: Closed, path: str) -> None:
    for who in ("nobody", "A"):
        whole, head = [await closed.call(who, method, path) for method in ("GET", "HEAD")]
        assert (head.status_code, head.content) == (whole.status_code, b"")
        assert head.headers["content-type"] == whole.headers["content-type"]


async def test_unknown_paths_and_methods_get_error_responses(closed: Closed) -> None:
    absent = await closed.call("nobody", "GET", "/v1/nothing")
    assert (absent.status_code, absent.json()["error"]) == (404, "not_found")
    wrong = await closed.call("nobody", "PUT", "/v1/ask")
    assert (wrong.status_code, wrong.json()["error"]) == (405, "method_not_allowed")
    assert wrong.headers["allow"] == "POST"
