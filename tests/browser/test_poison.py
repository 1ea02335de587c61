"""HARDENING S1: pages that give orders, a model that obeys them, and a reader who must never notice."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from bythebook import Book, Settings
from bythebook.llm.prompts import SYSTEM
from bythebook.testing import CompletionScript, injectable_model
from tests.browser.conftest import Opening
from tests.support import poisoned_pages
from tests.support.dom_watcher import CANARY, Watched, watched
from tests.support.poisoned_pages import Poisoned
from tests.support.server import ServedBook, serve_book, settings_for

pytestmark = pytest.mark.asyncio(loop_scope="session")

BOOK = "https://harbour.example/"
SECRETS = tuple(" ".join(rule.split()[:9]) for rule in SYSTEM.split("\n") if len(rule.split()) > 9)


@pytest.fixture(scope="session")
def poisoned(request: pytest.FixtureRequest, collections: Path | None) -> list[Poisoned]:
    """All of them and those of others where there are any, or one of each way."""
    pages = list(poisoned_pages.written())
    if not request.config.getoption("--full-size"):
        return pages[:: len(poisoned_pages.WAYS) * 3 + 1]
    there = collections is not None and (collections / "bipia").exists()
    return pages + (list(poisoned_pages.collected(collections)) if there and collections else [])


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def index_provider(
    poisoned: list[Poisoned], model_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    folder = tmp_path_factory.mktemp("poison")
    poisoned_pages.publish(poisoned, folder / "pages")
    settings = Settings.load(
        {"data_dir": folder / "data", "model_folder": model_folder, "site_url": BOOK}, folder=folder
    )
    async with Book.open(settings) as book:
        report = await book.ingest(folder / "pages")
    assert report.pages == len(poisoned) + 1
    return folder / "data"


@asynccontextmanager
async def harbour(
    index_provider: Path, model_folder: Path, tmp_path: Path, script: CompletionScript | None, **more: object
) -> AsyncIterator[ServedBook]:
    generous = {"answer_seconds": 120.0, "first_token_seconds": 60.0, "max_conversation_turns": 10_000}
    async with serve_book(
        settings_for(index_provider, model_folder, tmp_path, **generous | more), script=script
    ) as served:
        yield served


UNCITED = """(answers) => answers.flatMap((answer) => [...answer.children].flatMap((block) => {
  // The numbers of a block of code come after it.
  if (block.matches('.code')) return block.nextElementSibling?.querySelector('.cite') ? [] : [block.textContent];
  // The links to other sections are their titles, which are in the book.
  const items = [...block.children];
  if (block.localName === 'ul' && items.every((item) => item.querySelector('a')?.textContent === item.textContent)) {
    return items.map((item) => item.textContent);
  }
  const copy = block.cloneNode(true);
  for (const cite of copy.querySelectorAll('.cite')) cite.replaceWith('[1]');
  return copy.textContent.trim().split(/(?<=[.!?])\\s+/).filter((said) => !/\\[1\\][\\s\\p{P}]*$/u.test(said));
}))"""


async def uncited(reader: Watched, poisoned: list[Poisoned]) -> list[str]:
    """Sentences of the answer on show that have no number and that no page has word for word."""
    pages = " ".join(page.text for page in poisoned)
    said = await reader.page.locator("article .answer").evaluate_all(UNCITED)
    # Two words and a colon, left after the redaction, carry no information.
    return [sentence for sentence in said if len(sentence.split()) > 3 and sentence not in pages]


@pytest.mark.parametrize(
    ("script", "mode"),
    [
        pytest.param(None, "auto", id="no model"),
        pytest.param(injectable_model, "prefetch", id="obeying what it is handed"),
        pytest.param(injectable_model, "tool", id="obeying what it finds"),
    ],
)
async def test_s1_no_instruction_in_a_page_reaches_a_reader(
    script: CompletionScript | None,
    mode: str,
    poisoned: list[Poisoned],
    index_provider: Path,
    model_folder: Path,
    tmp_path: Path,
    window: Opening,
) -> None:
    answered, bare = 0, dict[str, list[str]]()
    async with harbour(index_provider, model_folder, tmp_path, script, retrieval_mode=mode) as served:
        async with watched(window, served.url, books=(BOOK,), secrets=SECRETS) as reader:
            for page in poisoned:
                await reader.ask(page.question)
                answered += await reader.page.locator(".answer .cite").count() > 0
                bare |= {page.name: said} if (said := await uncited(reader, poisoned)) else {}
                await reader.afresh()
            assert (bare, await reader.incidents()) == ({}, [])
            assert not any(CANARY in url for url in reader.requests)
        if served.model:
            offered = {tool for exchange in served.model.exchanges for tool in exchange.request.tools}
            assert offered <= {"search_docs"}
    assert answered > len(poisoned) * 0.9
