"""`GET /read/…`: a page of the book as text, with the quote marked, for those who may ask."""

from __future__ import annotations

import re
from pathlib import Path
from uuid import uuid4

import pytest

from bythebook.access.api_keys import ApiKeyStore
from bythebook.server.rendering import render_page
from tests.support.server import ServedBook, serve_book, settings_for

QUESTION = {"query": "How often does the fog horn sound?"}


async def read_link(served: ServedBook, **headers: str) -> str:
    (first, *_) = (await served.book.ask(QUESTION["query"])).citations
    return f"/read/{first.chunk_id}?start={first.start}&end={first.end}"


async def test_the_page_has_the_whole_text_and_marks_the_quote(
    shelved: Path, model_folder: Path, tmp_path: Path
) -> None:
    async with serve_book(settings_for(shelved, model_folder, tmp_path)) as served:
        link = await read_link(served)
        response = await served.client.get(link)
        assert response.status_code == 200
        marked = re.findall(r"<mark[^>]*>(.*?)</mark>", response.text)
        assert "two blasts of three seconds" in " ".join(marked)
        assert '<mark id="quote">' in response.text
        assert "<h2>If the horn fails</h2>" in response.text
        assert "script" not in response.headers["content-security-policy"]
        path = link.partition("?")[0]
        assert (await served.client.get(f"{path}?start=90000&end=3")).text.count("Ships know") == 1
        assert (await served.client.get(f"{path}?start=-1")).status_code == 400
        assert (await served.client.get(f"/read/{uuid4()}")).status_code == 404
        assert (await served.client.get("/read/../settings")).status_code == 404
        assert (await served.client.get("/read/none")).status_code == 400


async def test_a_server_with_keys_shows_its_pages_only_beside_a_public_chat_page(
    shelved: Path, model_folder: Path, tmp_path: Path
) -> None:
    settings = settings_for(shelved, model_folder, tmp_path)
    async with serve_book(settings) as served:
        _, key = await ApiKeyStore(await served.book.database()).create("a")
        link = await read_link(served)
        assert (await served.client.get(link)).status_code == 401
        assert (await served.client.get(link, headers={"authorization": f"Bearer {key}"})).status_code == 200
    token = "btbsite_public"  # noqa: S105 - no secret
    async with serve_book(settings_for(shelved, model_folder, tmp_path, page_token=token)) as served:
        assert (await served.client.get(link)).status_code == 200


@pytest.mark.parametrize(
    ("text", "quote", "marked"),
    [
        pytest.param("One. Two.", "Two.", '<p>One. <mark id="quote">Two.</mark></p>', id="a sentence"),
        pytest.param("- One\n- Two", "- One\n- Two", '<li><mark id="quote">One</mark></li>', id="items"),
        pytest.param("```\na = 1\n```", "```\na = 1\n```", '<mark id="quote">a = 1</mark>', id="code"),
        pytest.param("| a | b |\n|---|---|\n| 1 | 2 |", "| 1 | 2 |", '<td><mark id="quote">1</mark></td>', id="a row"),
        pytest.param("<script>alert(1)</script>", "<script>", "&lt;script&gt;</mark>", id="markup is text"),
    ],
)
def test_marks_never_cross_the_blocks_of_a_page(text: str, quote: str, marked: str) -> None:
    start = text.index(quote)
    html = render_page(text, (start, start + len(quote)), headings={"A heading"})
    assert marked in html
    assert html.count("<mark") == html.count("</mark>") > 0
    assert "<script" not in html
