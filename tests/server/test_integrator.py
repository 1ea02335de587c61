"""What an integrator meets in the HTTP API."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from bythebook.access.api_keys import ApiKeyStore
from tests.conftest import copied
from tests.support.server import ServeBook, ServedBook, ask_for_events

pytestmark = pytest.mark.asyncio(loop_scope="session")

QUESTION = {"query": "How often does the fog horn sound?"}


async def test_a_first_answer_can_be_followed_up(served: ServeBook) -> None:
    async with served() as house:
        first = (await house.client.post("/v1/ask", json={"query": "How long does a mantle last?"})).json()
        following = {"query": "How do I change it?", "session_id": first["session_id"]}
        second = (await house.client.post("/v1/ask", json=following)).json()
        assert (second["outcome"], second["turn_number"]) == ("answered", 2)
        alone = (await house.client.post("/v1/ask", json=QUESTION | {"store": False})).json()
        assert alone["session_id"] is None


async def test_an_answer_without_a_model_is_streamed(served: ServeBook) -> None:
    async with served() as house:
        events = await ask_for_events(house, QUESTION)
    names = [event.name for event in events]
    assert names[-3:] == ["delta", "state", "answer"]
    assert events[-2].data == {"state": "completed"}
    assert "".join(event.data["text"] for event in events if event.name == "delta") == events[-1].data["answer"]


async def test_sessions_turns_and_messages_are_listed_in_pages(served: ServeBook) -> None:
    async with served() as house:
        client = house.client
        ids = [(await client.post("/v1/ask", json=QUESTION)).json()["session_id"] for _ in range(3)]
        page = (await client.get("/v1/sessions", params={"limit": 2})).json()
        assert ([each["id"] for each in page["sessions"]], page["has_more"]) == ([ids[2], ids[1]], True)
        assert page["sessions"][0]["title"] == QUESTION["query"]
        rest = (await client.get("/v1/sessions", params={"after": ids[1]})).json()
        assert ([each["id"] for each in rest["sessions"]], rest["has_more"]) == ([ids[0]], False)

        await client.post("/v1/ask", json={"query": "How long is each blast?", "session_id": ids[0]})
        turns = (await client.get(f"/v1/sessions/{ids[0]}/turns", params={"limit": 1})).json()
        assert (turns["turns"][0]["number"], turns["has_more"]) == (1, True)
        after = turns["turns"][0]["id"]
        turns = (await client.get(f"/v1/sessions/{ids[0]}/turns", params={"after": after})).json()
        assert [(turn["number"], turn["state"]) for turn in turns["turns"]] == [(2, "completed")]
        assert turns["turns"][0]["response"]["answer"]

        messages = (await client.get(f"/v1/sessions/{ids[0]}/messages", params={"limit": 3})).json()
        assert ([each["role"] for each in messages["messages"]], messages["has_more"]) == (
            ["user", "assistant", "user"],
            True,
        )
        unknown = await client.get(f"/v1/sessions/{ids[0]}/messages", params={"after": ids[0]})
        assert unknown.status_code == 404


async def test_a_backend_names_its_readers(served: ServeBook, shelved: Path, tmp_path: Path) -> None:
    # A key closes the data folder, which other tests share.
    async with served(data_dir=copied(shelved, tmp_path / "data")) as house:
        _, secret = await ApiKeyStore(await house.book.database()).create("backend")
        key = {"authorization": f"Bearer {secret}"}
        ada, bob = key | {"x-reader": "ada@example.org"}, key | {"x-reader": "bob@example.org"}
        session = (await house.client.post("/v1/ask", json=QUESTION, headers=ada)).json()["session_id"]
        assert (await house.client.get(f"/v1/sessions/{session}", headers=ada)).status_code == 200
        for stranger in (bob, key):
            assert (await house.client.get(f"/v1/sessions/{session}", headers=stranger)).status_code == 404
            assert (await house.client.get("/v1/sessions", headers=stranger)).json()["sessions"] == []


async def test_sessions_of_an_open_server_are_not_listed_for_other_machines(served: ServeBook) -> None:
    async with served(trusted_proxies=["127.0.0.1"]) as house:
        elsewhere = {"x-forwarded-for": "203.0.113.7"}
        assert (await house.client.get("/v1/sessions", headers=elsewhere)).status_code == 403
        named = elsewhere | {"x-reader": "ada"}
        assert (await house.client.get("/v1/sessions", headers=named)).json()["sessions"] == []


async def test_an_error_names_every_wrong_field(house: ServedBook) -> None:
    body = {"query": "", "top_k": 99, "zebra": 1, "filters": {"modul": "x"}}
    refused = (await house.client.post("/v1/ask", json=body)).json()
    assert refused["error"] == "invalid_input"
    for name in ("query:", "top_k:", "zebra: there is no such field", "filters.modul: there is no such field"):
        assert name in refused["message"]


async def test_a_padded_question_passes_and_a_long_one_does_not(house: ServedBook) -> None:
    padded = {"query": " " * 2000 + QUESTION["query"]}
    assert (await house.client.post("/v1/ask", json=padded)).status_code == 200
    assert (await house.client.post("/v1/ask", json={"query": "why " * 300})).status_code == 400
    reference = (await house.client.get("/openapi.json")).json()
    assert reference["components"]["schemas"]["AgentRequest"]["properties"]["query"]["maxLength"] == 1000


async def test_rate_limits_are_announced(served: ServeBook) -> None:
    async with served(rate_limit_address="2/minute", trusted_proxies=["127.0.0.1"]) as house:
        elsewhere = {"x-forwarded-for": "203.0.113.8"}
        seen = [await house.client.get("/v1/models", headers=elsewhere) for _ in range(3)]
    assert [response.status_code for response in seen] == [200, 200, 429]
    assert {response.headers["ratelimit-policy"] for response in seen} == {'"requests";q=2;w=60'}
    assert [response.headers["ratelimit"].split(";")[1] for response in seen] == ["r=1", "r=0", "r=0"]


async def test_responses_are_private_and_compressed(house: ServedBook) -> None:
    answer = await house.client.post("/v1/ask", json=QUESTION)
    assert answer.headers["cache-control"] == "no-store"
    async with house.client.stream("GET", "/openapi.json", headers={"accept-encoding": "gzip"}) as response:
        raw = b"".join([block async for block in response.aiter_raw()])
    assert response.headers["content-encoding"] == "gzip"
    assert gzip.decompress(raw).startswith(b'{"openapi"')


async def test_health_and_the_model_have_an_address(house: ServedBook) -> None:
    assert (await house.client.get("/health")).json() == {"status": "ready"}
    (listed,) = (await house.client.get("/v1/models")).json()["data"]
    assert (await house.client.get("/v1/models/bythebook")).json() == listed
    missing = await house.client.get("/v1/models/gpt-4o")
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "not_found")


@pytest.mark.parametrize(
    "wish",
    [
        {"tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}]},
        {"tool_choice": "required"},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}}},
    ],
    ids=["tools", "a required tool", "a JSON schema"],
)
async def test_what_cannot_be_honoured_is_refused(house: ServedBook, wish: dict[str, object]) -> None:
    chat = {"messages": [{"role": "user", "content": QUESTION["query"]}]}
    refused = await house.client.post("/v1/chat/completions", json=chat | wish)
    assert (refused.status_code, refused.json()["error"]["type"]) == (400, "invalid_request_error")
    assert next(iter(wish)) in refused.json()["error"]["message"]
    allowed = {"tools": [], "tool_choice": "auto", "response_format": {"type": "text"}, "temperature": 0.1}
    assert (await house.client.post("/v1/chat/completions", json=chat | allowed)).status_code == 200


async def test_a_search_has_a_threshold_and_up_to_twenty_passages(house: ServedBook) -> None:
    found = (await house.client.post("/v1/search", json={"query": "fog horn", "top_k": 20})).json()["results"]
    assert len(found) > 10
    limit = {"query": "fog horn", "top_k": 20, "threshold": found[0]["score"]}
    assert len((await house.client.post("/v1/search", json=limit)).json()["results"]) < len(found)
