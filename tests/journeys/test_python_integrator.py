"""What an integrator builds on the Python API in the first hour."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from bythebook import AgentConfig, AnswerCompleted, Book, BookError, InputError, Settings, SyncBook, TextDelta
from tests.conftest import Opened
from tests.support.server import settings_for
from tests.support.word_embedder import WordEmbedder

QUESTION = "How often does the fog horn sound?"
HORN = "The horn gives two blasts of three seconds every ninety seconds."


def test_a_script_uses_the_book_without_await(shelved: Path, model_folder: Path, tmp_path: Path) -> None:
    with SyncBook(settings_for(shelved, model_folder, tmp_path)) as book:
        answer = book.ask(QUESTION, filters={"module": "Signals"})
        assert HORN in answer.answer
        assert book.ask("How long is each blast of it?", session_id=answer.session_id).turn_number == 2
        *before, last = book.stream(QUESTION)
        assert isinstance(last, AnswerCompleted)
        assert "".join(event.text for event in before if isinstance(event, TextDelta)) == last.response.answer
        assert book.pages()[0].title == "The Lighthouse Handbook"
        assert book.status().pages == 5
        assert len(book.search("fog horn", top_k=20).results) > 10
    with pytest.raises(BookError, match="closed"):
        book.ask(QUESTION)


async def test_a_program_opens_and_closes_a_book_itself(shelved: Path, model_folder: Path, tmp_path: Path) -> None:
    book = await Book.opened(settings_for(shelved, model_folder, tmp_path))
    assert (await book.ask(QUESTION)).grounded
    await book.close()
    with pytest.raises(BookError, match="not open"):
        await book.ask(QUESTION)
    with pytest.raises(BookError, match="not open"):
        await Book.open(Settings(data_dir=shelved)).search(QUESTION)


async def test_a_book_of_another_event_loop_says_so(opened: Opened) -> None:
    async with opened(None) as book:

        async def ask() -> None:
            await book.ask(QUESTION)

        with pytest.raises(BookError, match="another event loop"):
            await asyncio.to_thread(asyncio.run, ask())


async def test_the_configuration_of_the_documents_opens_a_book(
    shelved: Path, model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".bythebook").symlink_to(shelved)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(model_folder.parent.parent))
    async with Book.open(AgentConfig.from_env({"AGENT_TOP_K": "3"})) as book:
        assert len((await book.search("fog horn")).results) == 3


async def test_a_threshold_and_a_count_limit_a_search(opened: Opened) -> None:
    async with opened(None) as book:
        found = await book.search("fog horn", top_k=20)
        assert len(found.results) > 10
        best = found.results[0].score
        above = await book.search("fog horn", top_k=20, threshold=best)
        assert (above.results[0].position, above.results[0].score) == (1, best)
        assert len(above.results) < len(found.results)
        with pytest.raises(InputError, match="1 to 20"):
            await book.search("fog horn", top_k=21)
    async with opened(None, retrieval_threshold=0.5) as book:
        response = await book.ask(QUESTION)
        assert response.grounded
        assert all(source.score >= 0.5 for source in response.sources)


async def test_an_agent_gets_the_search_as_a_tool(opened: Opened) -> None:
    async with opened(None, excerpt_characters=30) as book:
        tool: Any = book.search_tool()
        found = json.loads(await tool.on_invoke_tool(None, '{"query": "fog horn", "top_k": 2}'))
        assert [result["number"] for result in found["results"]] == [1, 2]
        assert max(len(result["text"]) for result in found["results"]) <= 30
        wrong = json.loads(await tool.on_invoke_tool(None, '{"question": "fog horn"}'))
        assert "unknown argument 'question'" in wrong["message"]


async def test_an_embedder_of_ones_own_makes_and_searches_the_index(
    lighthouse: Path, model_folder: Path, tmp_path: Path
) -> None:
    settings = Settings(data_dir=tmp_path / "data", model_folder=model_folder)
    async with Book.open(settings, embedder=WordEmbedder()) as book:
        await book.ingest(lighthouse)
        assert (await book.status()).model == WordEmbedder().identity.model
        assert "horn" in (await book.search("fog horn")).results[0].text


async def test_the_library_logs_through_logging_and_is_silent_by_default(
    opened: Opened, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    async with opened(None) as book:
        await book.ask(QUESTION)
        assert capfd.readouterr().err == ""
        with caplog.at_level(logging.INFO, logger="bythebook"):
            await book.ask(QUESTION)
    assert "question" in [record.message for record in caplog.records if record.name == "bythebook"]
