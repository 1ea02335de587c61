"""Sessions over HTTP."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from bythebook.server.maintenance import delete_stale_rows
from tests.support.server import ServedBook

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def begun(house: ServedBook) -> str:
    response = await house.client.post("/v1/sessions")
    assert response.status_code == 201
    session_id: str = response.json()["id"]
    assert response.headers["location"] == f"/v1/sessions/{session_id}"
    return session_id


async def test_a_session_stores_questions_and_answers(house: ServedBook) -> None:
    session_id = await begun(house)
    fresh = (await house.client.get(f"/v1/sessions/{session_id}")).json()
    assert (fresh["status"], fresh["turn_count"], fresh["user_id"]) == ("created", 0, "")

    for number, query in enumerate(("How often does the fog horn sound?", "How long is each blast of it?"), start=1):
        said = (await house.client.post("/v1/ask", json={"query": query, "session_id": session_id})).json()
        assert (said["session_id"], said["turn_number"]) == (session_id, number)

    found = (await house.client.get(f"/v1/sessions/{session_id}/messages")).json()
    assert [message["role"] for message in found["messages"]] == ["user", "assistant"] * 2
    (first, *_), answer = found["messages"][3]["citations"], found["messages"][3]
    assert first["quote"].startswith("The horn gives")
    assert answer["metadata"]["response_id"] == said["id"]
    assert answer["metadata"]["sections"][first["chunk_id"]][0] == "Fog signals"
    assert (await house.client.get(f"/v1/sessions/{session_id}")).json()["turn_count"] == 2


async def test_the_system_message_is_not_returned(house: ServedBook) -> None:
    session_id = await begun(house)
    assert (await house.client.get(f"/v1/sessions/{session_id}/messages")).json()["messages"] == []


async def test_a_reset_session_keeps_its_id_and_loses_its_history(house: ServedBook) -> None:
    session_id = await begun(house)
    await house.client.post("/v1/ask", json={"query": "How often does the fog horn sound?", "session_id": session_id})
    reset = await house.client.post(f"/v1/sessions/{session_id}/reset")
    assert (reset.status_code, reset.json()["id"], reset.json()["turn_count"]) == (200, session_id, 1)
    assert (await house.client.get(f"/v1/sessions/{session_id}/messages")).json()["messages"] == []


async def test_a_deleted_session_is_gone_with_its_stored_answers(house: ServedBook) -> None:
    session_id = await begun(house)
    question = {"query": "How often does the fog horn sound?", "session_id": session_id}
    await house.client.post("/v1/ask", json=question, headers={"idempotency-key": session_id})
    assert (await house.client.delete(f"/v1/sessions/{session_id}")).status_code == 204
    assert (await house.client.get(f"/v1/sessions/{session_id}")).status_code == 404
    again = await house.client.post("/v1/ask", json=question, headers={"idempotency-key": session_id})
    assert (again.status_code, again.json()["error"]) == (404, "not_found")


@pytest.mark.parametrize("session_id", ["0b9b7d1c-3f57-4c33-8f0e-5d6d7a1c2b3e", "no-id-at-all", "%00", "%ff", "é"])
@pytest.mark.parametrize(("method", "below"), [("GET", ""), ("GET", "/messages"), ("POST", "/reset"), ("DELETE", "")])
async def test_an_unknown_session_is_not_found(house: ServedBook, method: str, below: str, session_id: str) -> None:
    response = await house.client.request(method, f"/v1/sessions/{session_id}{below}")
    assert (response.status_code, response.json()["error"]) == (404, "not_found")


async def test_a_new_session_rejects_fields(house: ServedBook) -> None:
    assert (await house.client.post("/v1/sessions", json={})).status_code == 201
    refused = await house.client.post("/v1/sessions", json={"user_id": "somebody else"})
    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_input")


async def test_idle_sessions_expire_if_configured(house: ServedBook) -> None:
    old, new = await begun(house), await begun(house)
    database = await house.book.database()
    before = {"then": (datetime.now(UTC) - timedelta(days=3)).replace(tzinfo=None).isoformat(" "), "this": old}
    await database.write(
        lambda connection: connection.execute(
            text("UPDATE conversations SET updated_at = :then WHERE id = :this"), before
        )
    )
    assert await delete_stale_rows(house.book, session_days=0) == 0
    assert (await house.client.get(f"/v1/sessions/{old}")).status_code == 200
    assert await delete_stale_rows(house.book, session_days=2) == 1
    assert (await house.client.get(f"/v1/sessions/{old}")).status_code == 404
    assert (await house.client.get(f"/v1/sessions/{new}")).status_code == 200
