"""Every quote of every citation stands where it says it does: in the chunk, in the page, and in the answer."""

from __future__ import annotations

import random
import shutil
import tarfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from bythebook.answers import AgentResponse, Outcome
from bythebook.answers.extractive import cite, extract
from bythebook.chunking.spans import left_open, units
from bythebook.chunking.splitter import Sizes, split
from bythebook.index.terms import Words
from bythebook.retrieval.evidence import Weighed
from bythebook.retrieval.retriever import result_of
from tests.support.markdown_strategies import MARKDOWN, page_of
from tests.support.word_embedder import WordBook, count_words

if TYPE_CHECKING:
    from bythebook.book import Book
    from bythebook.index.provider import Edition

SHARED = Path(__file__).parents[2].parent / "shared" / "data" / "docs"
WORDS = Words(20.0)
QUESTIONS = ("the keeper turns the lamp", "oil and fog", "ROS 2", "return x", "Größe 中文", "name lamp", "horn")


async def assert_proven(response: AgentResponse, edition: Edition) -> None:
    """The quotes are in the chunk, in the page, and in the answer, and nothing else is in the answer."""
    if not response.grounded:
        assert response.citations == ()
        return
    chunks = await edition.store.fetch([citation.chunk_id for citation in response.citations])
    rest = response.answer
    for number, citation in enumerate(response.citations, start=1):
        chunk = chunks[citation.chunk_id].chunk
        page = edition.catalogue.page(chunk.url)
        assert citation.number == number
        assert citation.quote.strip()
        assert chunk.text[citation.start : citation.end] == citation.quote
        assert page
        assert page.text[chunk.start + citation.start : chunk.start + citation.end] == citation.quote
        assert citation.url.startswith(chunk.url)
        before, said, rest = rest.partition(citation.quote)
        assert said
        assert before.strip(" \n0123456789.)*+-") in ("", chunk.fence, f"{chunk.fence}\n".strip())
        closing, mark, rest = rest.partition(f"[{number}]")
        assert mark
        assert closing.strip() == "" or set(closing.strip()) <= {"`", "~"}
    assert rest == ""
    assert left_open(response.answer) == ""


def write(folder: Path, pages: list[str]) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for number, markdown in enumerate(pages):
        (folder / f"page{number}.md").write_text(f"# Page {number}\n\nThe keeper is here.\n\n{markdown}", "utf-8")
    return folder


SIZES = st.builds(Sizes, limit=st.sampled_from([32, 60, 220]), overlap=st.sampled_from([0, 20]))


@settings(max_examples=80, deadline=None)
@given(markdown=MARKDOWN, sizes=SIZES, shuffle=st.randoms(use_true_random=False))
def test_of_any_page_whichever_sentences_are_best(markdown: str, sizes: Sizes, shuffle: random.Random) -> None:
    page = page_of(markdown)
    chunks = {chunk.chunk_id: chunk for chunk in split(page, count=count_words, sizes=sizes)}
    results = [result_of(c, position=1, score=0.5, rerank_score=0.5) for c in chunks.values()]
    ranked = [Weighed(found, unit, 1.0) for found in results for unit in units(found.text, fence=found.fence)]
    shuffle.shuffle(ranked)
    quotes = extract(ranked, WORDS)
    answer, citations = cite(quotes)

    assert len(citations) == len(quotes)
    for citation in citations:
        chunk = chunks[citation.chunk_id]
        assert chunk.text[citation.start : citation.end] == citation.quote
        assert page.text[chunk.start + citation.start : chunk.start + citation.end] == citation.quote
        assert citation.quote in answer
    assert left_open(answer) == ""


# A smaller example would take minutes to find, and the failing one says enough.
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
@given(pages=st.lists(MARKDOWN, min_size=4, max_size=8), sizes=SIZES)
async def test_of_any_book(pages: list[str], sizes: Sizes, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("any")
    book = WordBook(folder / "index", sizes)
    await book.ingest(write(folder / "pages", pages))
    own = [line[:200] for page in pages for line in page.splitlines()[::3] if len(line.strip()) > 10]
    with book.shelf() as shelf:
        async with shelf.edition() as edition:
            for response in await book.ask(*QUESTIONS, *own[:20], top_k=10):
                await assert_proven(response, edition)
    shutil.rmtree(folder)


async def test_of_a_real_book_with_the_real_model(book: Book, lighthouse: Path) -> None:
    await book.ingest(lighthouse)
    questions = {
        "How often does the fog horn sound?": Outcome.ANSWERED,
        "What oil does the lamp burn?": Outcome.ANSWERED,
        "What is written into the log?": Outcome.ANSWERED,
        "Which flag is raised?": Outcome.ANSWERED,
        "How do I bake sourdough bread?": Outcome.REFUSED,
        "What is it?": Outcome.CLARIFY,
    }
    async with book.edition() as edition:
        for question, outcome in questions.items():
            response = await book.ask(question)
            assert response.outcome is outcome, question
            await assert_proven(response, edition)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the real documents are not on this machine")
@pytest.mark.parametrize(
    ("name", "below", "most"),
    [
        pytest.param("physical_ai_textbook", "docs", 40, id="Docusaurus"),
        pytest.param("rust_book", "src", 25, id="mdBook"),
        pytest.param("fastapi_docs_en", "docs", 40, id="MkDocs"),
        pytest.param("site_mkdocs_material_docs", "", 20, id="HTML"),
    ],
)
async def test_of_real_documents(tmp_path: Path, name: str, below: str, most: int) -> None:
    with tarfile.open(SHARED / f"{name}.tar.gz") as archive:
        pages = [m for m in archive.getmembers() if m.name.startswith(f"./{below}") and m.name.endswith(("md", "html"))]
        for page in pages[:most]:
            # By hand: Python before 3.11.4 knows no filter for what it takes out of an archive.
            place = tmp_path / "pages" / page.name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(cast("IO[bytes]", archive.extractfile(page)).read())
    book = WordBook(tmp_path / "index", Sizes(limit=220))
    report = await book.ingest(tmp_path / "pages")
    assert report.pages > 0.8 * min(most, len(pages))
    with book.shelf() as shelf:
        async with shelf.edition() as edition:
            asked = edition.catalogue.all_chunk_ids()[:: max(report.chunks // 60, 1)]
            chunks = (await edition.store.fetch(asked)).values()
            questions = [" ".join((passage.chunk.title, passage.chunk.text[:90])) for passage in chunks]
            answers = await book.ask(*questions, top_k=10)
            for response in answers:
                await assert_proven(response, edition)
    assert sum(len(response.citations) for response in answers) > len(questions)
