"""The chat page, the widget's script, and answers as HTML: what the server sends to the reader's side."""

from __future__ import annotations

import gzip
import re

import pytest

from tests.support.server import ServedBook, ask_for_events

pytestmark = pytest.mark.asyncio(loop_scope="session")

QUESTION = "How often does the fog horn sound?"
HTML = {"prefer": "render=html"}


async def test_the_page_has_the_name_sections_and_questions_of_the_book(house: ServedBook) -> None:
    page = await house.client.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "<title>The Lighthouse Handbook</title>" in page.text
    assert 'data-sections="Keeping|Signals"' in page.text
    assert "How do I tend the lamp?|" in page.text
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


async def test_the_widget_is_one_small_cacheable_file(house: ServedBook) -> None:
    script = await house.client.get("/widget.js")
    assert script.headers["content-type"].startswith("text/javascript")
    assert len(gzip.compress(script.content)) < 30_000
    again = await house.client.get("/widget.js", headers={"if-none-match": script.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


async def test_an_answer_has_html_only_on_request(house: ServedBook) -> None:
    plain = (await house.client.post("/v1/ask", json={"query": QUESTION})).json()
    shown = (await house.client.post("/v1/ask", json={"query": QUESTION}, headers=HTML)).json()
    assert "html" not in plain
    assert shown["html"].startswith("<p>The horn gives two blasts")
    assert '<span class="cite">1</span>' in shown["html"]
    assert shown["citations"][0]["html"].startswith("<p>The horn gives two blasts")


async def test_streamed_html_ends_as_the_html_of_the_answer(house: ServedBook) -> None:
    events = await ask_for_events(house, {"query": QUESTION}, prefer="render=html")
    deltas = [event.data for event in events if event.name == "delta"]
    blocks: list[str] = []
    for delta in deltas:
        blocks[delta["settled"] :] = [delta["html"]]
    assert "The horn gives two blasts of three seconds every ninety seconds" in "".join(blocks)
    assert events[-1].data["html"].startswith("<p>The horn gives two blasts")


async def test_stored_messages_can_be_read_as_html(house: ServedBook) -> None:
    session = (await house.client.post("/v1/sessions", json={})).json()["id"]
    await house.client.post("/v1/ask", json={"query": QUESTION, "session_id": session})
    read = await house.client.get(f"/v1/sessions/{session}/messages", headers=HTML)
    question, answer = read.json()["messages"]
    assert question["html"] == f"<p>{QUESTION}</p>\n"
    assert '<span class="cite">1</span>' in answer["html"]


async def test_a_server_without_an_index_serves_the_page(served: object, tmp_path: object) -> None:
    async with served(data_dir=tmp_path) as empty:  # type: ignore[operator]
        page = await empty.client.get("/")
        assert (page.status_code, "By the Book" in page.text) == (200, True)


async def test_the_reference_is_complete_and_self_contained(house: ServedBook) -> None:
    page = await house.client.get("/docs")
    document = (await house.client.get("/openapi.json")).json()
    for path, methods in document["paths"].items():
        for method in methods:
            assert f"<b>{method.upper()}</b> <code>{path}</code>" in page.text
    for name, schema in document["components"]["schemas"].items():
        assert f'<section id="{name}">' in page.text
        assert all(f"<td><code>{field}</code></td>" in page.text for field in schema.get("properties", ()))
    assert all(to.startswith(("#", "data:", "openapi.json")) for to in re.findall(r'(?:src|href)="([^"]*)"', page.text))
    assert "<script" not in page.text
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "unsafe" not in page.headers["content-security-policy"]
