"""The book as other programs use it over the network: the official MCP client at the server's own address (S10)."""

from __future__ import annotations

import pytest
from mcp import Client

from tests.support.server import ServedBook

pytestmark = pytest.mark.asyncio(loop_scope="session")

LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
ACCEPTED = {"accept": "application/json, text/event-stream"}


async def test_the_official_mcp_client_can_ask_the_server(house: ServedBook) -> None:
    async with Client(f"{house.url}/mcp") as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["search_book", "ask_book"]
        result = await client.call_tool("ask_book", {"query": "How often does the fog horn sound?"})
        assert (result.is_error, result.structured_content["outcome"]) == (False, "answered")
        assert len((await client.list_resources()).resources) == 5


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        pytest.param({}, 200, id="a program"),
        pytest.param({"host": "evil.example"}, 403, id="a foreign name"),
        pytest.param({"origin": "https://evil.example"}, 403, id="a foreign page"),
        pytest.param({"origin": "null"}, 403, id="a page without an origin"),
    ],
)
async def test_rejects_foreign_hosts_and_origins(house: ServedBook, headers: dict[str, str], status: int) -> None:
    response = await house.client.post("/mcp", json=LIST, headers=ACCEPTED | headers)
    assert response.status_code == status


async def test_rejects_a_body_over_the_limit(house: ServedBook) -> None:
    huge = LIST | {"params": {"cursor": "x" * 1_000_001}}
    assert (await house.client.post("/mcp", json=huge, headers=ACCEPTED)).status_code == 413
