"""Entries: what a first question is answered from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from bythebook.retrieval.entries import describe_front, look_up
from bythebook.sources.projects import find_book_name
from tests.support.word_embedder import WordBook

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from bythebook.index.provider import IndexSnapshot

PAGES = {
    "mkdocs.yml": "site_name: Beacon\n",
    "index.md": "Light on!\n\n# Welcome to Beacon\n\nBeacon is a lamp for ships. It burns oil, shines at night "
    "and turns once in a minute, so that sailors know it.\n\n## Reporting bugs\n\nOpen an issue.",
    "guide/quick-start.md": "# Quick Start\n\nLight the lamp.\n\n## Install Beacon\n\nRun pip install beacon.",
    "guide/horn.md": "# Horns\n\n## Install\n\nScrew the horn to the wall.\n\nA diaphone is a horn with a piston.",
    "guide/care.md": "# Care\n\n## Cleaning and storage\n\nUse a cloth.\n\n## Example\n\nWipe the lens.",
    "guide/terms.md": "# Terms\n\nBull's-eye\n\nThe thick lens in the middle.\n\nWick\n\nThe burning cord.",
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def snapshot(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[IndexSnapshot]:
    folder = tmp_path_factory.mktemp("entries")
    for name, text in PAGES.items():
        (folder / "pages" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "pages" / name).write_text(text)
    book = WordBook(folder / "index")
    await book.ingest(folder / "pages")
    with book.index_provider() as index_provider:
        async with index_provider.snapshot() as opened:
            yield opened


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize(
    ("question", "begins"),
    [
        pytest.param("What is Beacon?", "Beacon is a lamp", id="the name of the book"),
        pytest.param("what is this?", "Beacon is a lamp", id="only question words"),
        pytest.param("What can Beacon do?", "Beacon is a lamp", id="what it can do"),
        pytest.param("What are the features of Beacon?", "Beacon is a lamp", id="features without such a heading"),
        pytest.param("Where do I begin?", "Light the lamp", id="begin"),
        pytest.param("How do I get started with Beacon?", "Light the lamp", id="get started"),
        pytest.param("quickstart", "Light the lamp", id="a heading in another spelling"),
        pytest.param("install", "Run pip", id="the heading with the name of the book comes first"),
        pytest.param("How do I install Beacon?", "Run pip", id="a question with the name of the book"),
        pytest.param("How do I report a bug?", "Open an issue", id="a usual question in the words of the heading"),
        pytest.param("storage", "Use a cloth", id="half of a heading"),
        pytest.param("Show me an example", "Wipe the lens", id="an example"),
        pytest.param("Show me an example of a wick", "Bull's-eye", id="an example of a term"),
        pytest.param("horns", "Screw the horn", id="the beginning of a page without text below its title"),
        pytest.param("What is a diaphone?", "Screw the horn", id="a sentence that defines a term"),
        pytest.param("wick", "Bull's-eye", id="an entry of a glossary"),
    ],
)
async def test_a_first_question_names_a_section(snapshot: IndexSnapshot, question: str, begins: str) -> None:
    found = await look_up(snapshot, question)
    assert found.covered
    assert found.results[0].text.startswith(begins)


@pytest.mark.parametrize(
    "question",
    [
        pytest.param("What does Beacon cost?", id="a word without a heading"),
        pytest.param("How do I install a horn on a ship?", id="more words than the heading"),
        pytest.param("Is a zebra striped?", id="nothing of the book"),
        pytest.param("What licence is Beacon under?", id="a usual question without a heading"),
    ],
)
async def test_other_questions_name_no_section(snapshot: IndexSnapshot, question: str) -> None:
    assert (await look_up(snapshot, question)).results == ()


async def test_a_heading_that_may_answer_is_only_a_candidate(snapshot: IndexSnapshot) -> None:
    found = await look_up(snapshot, "Which Python version do I need?")
    assert found.results
    assert not found.covered


async def test_without_a_configuration_the_first_page_names_the_book(snapshot: IndexSnapshot) -> None:
    name, url = describe_front(snapshot.catalog, name="")
    assert name == "Beacon"
    assert url.endswith("index.md")


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        pytest.param("mkdocs.yml", "site_url: x\nsite_name: 'The Lamp'\n", "The Lamp", id="MkDocs"),
        pytest.param("docs/conf.py", 'import os\nproject = "Lamp"\n', "Lamp", id="Sphinx, in the folder docs"),
        pytest.param("book.toml", '[book]\ntitle = "Lamps"\n', "Lamps", id="mdBook"),
        pytest.param("docusaurus.config.js", "const c = {\n  title: 'My Lamp',\n};", "My Lamp", id="Docusaurus"),
        pytest.param("other.yml", "site_name: Lamp", "", id="no configuration"),
    ],
)
async def test_the_configuration_names_the_book(tmp_path: Path, file: str, text: str, expected: str) -> None:
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(text)
    assert find_book_name([str(tmp_path), "https://lamp.example/"]) == expected
