"""Every quote of every citation is at its offsets: in the chunk, in the page, and in the answer."""

from __future__ import annotations

import random
import re
import shutil
import tarfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from bythebook.answers import AgentResponse, Outcome
from bythebook.answers.blocks import Section
from bythebook.answers.refusal import format_links
from bythebook.chunking.spans import find_open_fence
from bythebook.chunking.splitter import ChunkSizes, split_page
from bythebook.retrieval.retriever import to_result
from tests.support.markdown_strategies import MARKDOWN, page_of
from tests.support.word_embedder import WordBook, count_words

if TYPE_CHECKING:
    from bythebook.book import Book
    from bythebook.chunking import Chunk
    from bythebook.index.provider import IndexSnapshot

SHARED = Path(__file__).parents[2].parent / "shared" / "data" / "docs"
QUESTIONS = ("the keeper turns the lamp", "oil and fog", "ROS 2", "return x", "Größe 中文", "name lamp", "horn")


async def assert_proven(response: AgentResponse, snapshot: IndexSnapshot) -> None:
    """Assert that the quotes are in the chunk, in the page and in the answer, and that the answer contains nothing
    else but the heading path above them and the links below.
    """
    if not response.grounded:
        assert response.citations == ()
        return
    chunks = await snapshot.store.fetch([citation.chunk_id for citation in response.citations])
    rest = _plain(_without_frame(response, [chunk.chunk for chunk in chunks.values()]))
    for number, citation in enumerate(response.citations, start=1):
        chunk = chunks[citation.chunk_id].chunk
        page = snapshot.catalog.get_page(chunk.url)
        assert citation.number == number
        assert citation.quote.strip()
        assert chunk.text[citation.start : citation.end] == citation.quote
        assert page
        assert page.text[chunk.start + citation.start : chunk.start + citation.end] == citation.quote
        assert citation.url.startswith(chunk.url)
        before, said, rest = rest.partition(_plain(citation.quote))
        assert said
        # Between two quotes are the numbers of the quotes before, the fence of a code block that was cut, and the
        # header of a table that was cut, which is in the page.
        between = MARK.sub("", before)
        for frame in filter(None, (_plain(chunk.fence), _plain(chunk.table_header))):
            between = between.replace(frame, "", 1)
        assert chunk.table_header in page.text
        assert set(between.strip()) <= {"`", "~"}
        assert f"[{number}]" in rest
    assert set(MARK.sub("", rest).strip()) <= {"`", "~"}, response.answer
    assert find_open_fence(response.answer) == ""


def _plain(text: str) -> str:
    """The text without the marks of the sentence that answers and of inline code."""
    return text.replace("**", "").replace("`", "")


def _without_frame(response: AgentResponse, chunks: list[Chunk]) -> str:
    """The answer without its first line, which is the heading path, and without the links to other sections."""
    path, _, body = response.answer.partition("\n\n")
    assert path in {f"**{' > '.join(chunk.heading_hierarchy)}**" for chunk in chunks}
    if response.suggestions:
        body, _, links = body.rpartition("\n\nSee also:\n")
        assert links == format_links(response.suggestions)
    return body


MARK = re.compile(r"\[\d+\]")


def write(folder: Path, pages: list[str]) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for number, markdown in enumerate(pages):
        (folder / f"page{number}.md").write_text(f"# Page {number}\n\nThe keeper is here.\n\n{markdown}", "utf-8")
    return folder


SIZES = st.builds(ChunkSizes, limit=st.sampled_from([32, 60, 220]), overlap=st.sampled_from([0, 20]))


@settings(max_examples=80, deadline=None)
@given(markdown=MARKDOWN, sizes=SIZES, shuffle=st.randoms(use_true_random=False))
def test_quotes_are_exact_for_any_block(markdown: str, sizes: ChunkSizes, shuffle: random.Random) -> None:
    page = page_of(markdown)
    chunks = list(split_page(page, count=count_words, sizes=sizes))
    for path in dict.fromkeys(chunk.heading_hierarchy for chunk in chunks):
        inside = [to_result(c, position=1, score=0.5, rerank_score=0.5) for c in chunks if c.heading_hierarchy == path]
        first, last = inside[0], inside[-1]
        if [result.chunk_index for result in inside] != list(range(first.chunk_index, last.chunk_index + 1)):
            continue
        ends = [result.start + len(result.text) for result in inside]
        if any(page.text[end : after.start].strip() for end, after in zip(ends, inside[1:], strict=False)):
            continue  # another heading of the same name is between them
        section = Section(tuple(inside), page.text[first.start : last.start + len(last.text)])
        assert [index for unit in section.units for index in unit] == list(range(len(section.blocks)))
        block = shuffle.choice(section.blocks)
        quotes = section.quotes(block.start, block.end)
        assert "".join("".join(quote.text for quote in quotes).split()) == "".join(
            section.text[block.start : block.end].split()
        )
        for quote in quotes:
            start = quote.result.start + quote.start
            assert page.text[start : start + len(quote.text)] == quote.text


# Shrinking an example would take minutes, and the failing one is enough.
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
@given(pages=st.lists(MARKDOWN, min_size=4, max_size=8), sizes=SIZES)
async def test_quotes_are_exact_for_any_book(
    pages: list[str], sizes: ChunkSizes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("any")
    book = WordBook(folder / "index", sizes)
    await book.ingest(write(folder / "pages", pages))
    own = [line[:200] for page in pages for line in page.splitlines()[::3] if len(line.strip()) > 10]
    with book.index_provider() as index_provider:
        async with index_provider.snapshot() as snapshot:
            for response in await book.ask(*QUESTIONS, *own[:20], top_k=10):
                await assert_proven(response, snapshot)
    shutil.rmtree(folder)


async def test_quotes_are_exact_for_a_real_book_with_the_real_embedder(book: Book, lighthouse: Path) -> None:
    await book.ingest(lighthouse)
    questions = {
        "How often does the fog horn sound?": Outcome.ANSWERED,
        "What oil does the lamp burn?": Outcome.ANSWERED,
        "What is written into the log?": Outcome.ANSWERED,
        "Which flag is raised?": Outcome.ANSWERED,
        "How do I bake sourdough bread?": Outcome.REFUSED,
        "What is it?": Outcome.CLARIFY,
    }
    async with book.snapshot() as snapshot:
        for question, outcome in questions.items():
            response = await book.ask(question)
            assert response.outcome is outcome, question
            await assert_proven(response, snapshot)


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
async def test_quotes_are_exact_for_real_documents(tmp_path: Path, name: str, below: str, most: int) -> None:
    with tarfile.open(SHARED / f"{name}.tar.gz") as archive:
        pages = [m for m in archive.getmembers() if m.name.startswith(f"./{below}") and m.name.endswith(("md", "html"))]
        for page in pages[:most]:
            # Python before 3.11.4 has no extraction filter for archives.
            place = tmp_path / "pages" / page.name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(cast("IO[bytes]", archive.extractfile(page)).read())
    book = WordBook(tmp_path / "index", ChunkSizes(limit=220))
    report = await book.ingest(tmp_path / "pages")
    assert report.pages > 0.8 * min(most, len(pages))
    with book.index_provider() as index_provider:
        async with index_provider.snapshot() as snapshot:
            asked = snapshot.catalog.all_chunk_ids()[:: max(report.chunks // 60, 1)]
            chunks = (await snapshot.store.fetch(asked)).values()
            questions = [" ".join((passage.chunk.title, passage.chunk.text[:90])) for passage in chunks]
            answers = await book.ask(*questions, top_k=10)
            for response in answers:
                await assert_proven(response, snapshot)
    assert sum(len(response.citations) for response in answers) > len(questions)
