"""The book as an MCP server over streamable HTTP, used by the official client over a real socket."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import pytest_asyncio
import uvicorn
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp.types import TextContent, TextResourceContents

from bythebook.book import Book
from bythebook.mcp import server as pages
from bythebook.mcp.http import asgi_app
from bythebook.settings import Settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from mcp.types import CallToolResult

pytestmark = pytest.mark.asyncio(loop_scope="module")

HORN, CHEESE = "How often does the horn sound in fog?", "How is cheese made in Sardinia?"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def book(shelved: Path, model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Book]:
    kept = f"sqlite:///{tmp_path_factory.mktemp('kept')}/kept.db"
    async with Book.open(Settings(data_dir=shelved, model_folder=model_folder, database_url=kept)) as opened:
        yield opened


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def address(book: Book) -> AsyncIterator[str]:
    """Where the book is served."""
    app = asgi_app(book, origins=["https://reader.example"], get_user_id=lambda scope: scope["client"][0])
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_config=None))
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        server.should_exit = True
        await serving


@pytest_asyncio.fixture(loop_scope="module", params=["legacy", "auto"])
async def mode(request: pytest.FixtureRequest) -> Any:
    """The older protocol with a handshake, and the newer one without."""
    return request.param


async def call(address: str, tool: str, **arguments: Any) -> CallToolResult:
    async with Client(address) as client:
        return await client.call_tool(tool, arguments)


def said(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


async def test_there_are_two_read_only_tools(address: str, mode: Any) -> None:
    async with Client(address, mode=mode) as client:
        listed = (await client.list_tools()).tools
    assert [tool.name for tool in listed] == ["search_book", "ask_book"]
    for tool in listed:
        assert tool.annotations
        assert (tool.annotations.read_only_hint, tool.annotations.destructive_hint) == (True, False)
        assert tool.input_schema["additionalProperties"] is False
        assert tool.input_schema["properties"]["query"]["maxLength"] == 1000
        assert tool.output_schema


async def test_an_answer_has_its_quotes(address: str, mode: Any) -> None:
    async with Client(address, mode=mode) as client:
        result = await client.call_tool("ask_book", {"query": HORN})
        answer = result.structured_content
        assert (result.is_error, answer["outcome"], answer["grounded"]) == (False, "answered", True)
        assert "ninety seconds" in said(result)
        for citation in answer["citations"]:
            (page,) = [
                found.uri for found in (await client.list_resources()).resources if found.title == citation["title"]
            ]
            (text,) = (await client.read_resource(page)).contents
            assert isinstance(text, TextResourceContents)
            assert citation["quote"] in text.text


async def test_a_refused_question_is_recorded_for_its_user(address: str, book: Book) -> None:
    result = await call(address, "ask_book", query=CHEESE)
    assert (result.is_error, result.structured_content["outcome"]) == (False, "refused")
    assert "I don't have information about" in said(result)
    await book.rate(result.structured_content["id"], "down", user_id="127.0.0.1")


async def test_passages_name_their_page(address: str, book: Book) -> None:
    async with Client(address) as client:
        result = await client.call_tool("search_book", {"query": HORN, "top_k": 2})
        found = result.structured_content["passages"]
        assert [passage["text"] for passage in found] == [r.text for r in (await book.search(HORN, top_k=2)).results]
        (page,) = (await client.read_resource(found[0]["page"])).contents
        assert isinstance(page, TextResourceContents)
        assert found[0]["text"] in page.text
        nowhere = await client.call_tool("search_book", {"query": HORN, "module": "No such module"})
        assert nowhere.structured_content["passages"] == []


async def test_pages_are_listed_with_pagination(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Client(address) as client:
        every = (await client.list_resources()).resources
        monkeypatch.setattr(pages, "PAGE_SIZE", 2)
        cursor, seen = None, list[str]()
        while True:
            part = await client.list_resources(cursor=cursor)
            assert len(part.resources) <= 2
            seen += [found.uri for found in part.resources]
            cursor = part.next_cursor
            if cursor is None:
                break
    assert seen == [found.uri for found in every]
    assert len(set(seen)) == 5


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        pytest.param({}, "query: Field required", id="no question"),
        pytest.param({"query": "  "}, "at least 1 character", id="an empty question"),
        pytest.param({"query": "x" * 1001}, "at most 1000", id="a long question"),
        pytest.param({"query": 7}, "valid string", id="a number for a question"),
        pytest.param({"query": HORN, "top_k": 11}, "less than or equal to 10", id="too many passages"),
        pytest.param({"query": HORN, "top_k": "5"}, "valid integer", id="text for a number"),
        pytest.param({"query": HORN, "module": "m" * 1001}, "at most 1000", id="a long filter"),
        pytest.param({"query": HORN, "session_id": "secret"}, "not permitted", id="an unknown argument"),
    ],
)
@pytest.mark.parametrize("tool", ["search_book", "ask_book"])
async def test_rejects_invalid_arguments(address: str, tool: str, arguments: dict[str, Any], complaint: str) -> None:
    result = await call(address, tool, **arguments)
    assert result.is_error
    assert complaint in said(result)
    assert "secret" not in said(result)
    assert len(said(result)) < 300


async def test_unknown_tools_and_resources_are_errors(address: str) -> None:
    async with Client(address) as client:
        with pytest.raises(MCPError, match="no such tool"):
            await client.call_tool("delete_book", {})
        for uri in ("book://page/nowhere", "file:///etc/passwd", "book://page/%00", "book://page/" + "x" * 20_000):
            with pytest.raises(MCPError, match="no such page"):
                await client.read_resource(uri)
        with pytest.raises(MCPError, match="cursor"):
            await client.list_resources(cursor="x" * 20_000)


CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
ACCEPTED = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        pytest.param({}, 200, id="a program"),
        pytest.param({"origin": "https://reader.example"}, 200, id="a page that may"),
        pytest.param({"origin": "http://localhost:6274"}, 200, id="a page of this machine"),
        pytest.param({"host": "evil.example"}, 421, id="a foreign host"),
        pytest.param({"host": "localhost.evil.example"}, 421, id="a host that begins like ours"),
        pytest.param({"host": "localhost@evil.example"}, 421, id="a host with a user"),
        pytest.param({"host": "evil@localhost"}, 421, id="a user at our host"),
        pytest.param({"host": "localhost:http"}, 421, id="a port that is none"),
        pytest.param({"host": ""}, 421, id="no host"),
        pytest.param({"origin": "https://evil.example"}, 403, id="a foreign page"),
        pytest.param({"origin": "https://reader.example.evil.example"}, 403, id="an origin that begins like ours"),
        pytest.param({"origin": "http://reader.example"}, 403, id="another scheme"),
        pytest.param({"origin": "https://reader.example:444"}, 403, id="another port"),
        pytest.param({"origin": "null"}, 403, id="a page without an origin"),
        pytest.param({"origin": ""}, 403, id="an empty origin"),
    ],
)
async def test_rejects_foreign_hosts_and_origins(address: str, headers: dict[str, str], status: int) -> None:
    async with httpx.AsyncClient() as client:
        response = await client.post(address, json=CALL, headers=ACCEPTED | headers)
    assert response.status_code == status


async def test_accepts_only_post_within_the_size_limit(address: str) -> None:
    async with httpx.AsyncClient() as client:
        for method in ("GET", "DELETE", "PUT"):
            assert (await client.request(method, address, headers=ACCEPTED)).status_code == 405
        huge = json.dumps(CALL | {"params": {"cursor": "x" * 1_000_001}})
        assert (await client.post(address, content=huge, headers=ACCEPTED)).status_code == 413
        assert (await client.post(address, content="{", headers=ACCEPTED)).status_code == 400
        assert (await client.post(address, json=CALL, headers={"content-type": "text/plain"})).status_code in (400, 406)


async def test_handles_concurrent_clients(address: str) -> None:
    results = await asyncio.gather(*(call(address, "search_book", query=HORN, top_k=k) for k in (1, 2, 3, 1, 2, 3)))
    assert [len(result.structured_content["passages"]) for result in results] == [1, 2, 3, 1, 2, 3]
