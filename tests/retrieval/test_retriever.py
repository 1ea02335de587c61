"""The retriever and the evidence check."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from bythebook.index import NO_FILTERS, Filters
from bythebook.retrieval import RetrievalContext
from bythebook.retrieval.evidence import score_evidence
from bythebook.retrieval.retriever import Retriever
from tests.support.word_embedder import WordBook, WordEmbedder, vector_of

if TYPE_CHECKING:
    from bythebook.index.provider import IndexSnapshot

PAGES = {
    "keeping/lamp.md": "# The Lamp\n\nThe lamp burns colza oil.\n\n## Lighting\n\nLight the lamp at dusk.",
    "keeping/copy.md": "# The Lamp\n\nThe lamp burns colza oil!\n\n## Lighting\n\nLight the lamp at dusk.",
    "keeping/another.md": "# The Lamp\n\n“The lamp burns colza oil.”",
    "signals/horn.md": "# The Horn\n\nThe horn warns ships in fog.\n\n## Pattern\n\nTwo blasts of the horn.",
    "signals/flags.md": "# Flags\n\nIs danger a red flag? A red flag is danger.",
    "zoo.md": "# Zoo\n\nA zebra has stripes.",
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def snapshot(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[IndexSnapshot]:
    folder = tmp_path_factory.mktemp("retriever")
    for name, text in PAGES.items():
        (folder / "pages" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "pages" / name).write_text(text)
    book = WordBook(folder / "index")
    await book.ingest(folder / "pages")
    with book.index_provider() as index_provider:
        async with index_provider.snapshot() as opened:
            yield opened


pytestmark = pytest.mark.asyncio(loop_scope="module")


async def find(
    snapshot: IndexSnapshot, query: str, *, top_k: int = 5, filters: Filters = NO_FILTERS
) -> RetrievalContext:
    return (await Retriever(WordEmbedder()).retrieve(snapshot, query, top_k=top_k, filters=filters)).context


def said(found: RetrievalContext) -> list[str]:
    return [result.text for result in found.results]


async def test_the_best_passage_comes_first_with_position_and_cosine(snapshot: IndexSnapshot) -> None:
    found = await find(snapshot, "Is the red flag danger?")
    best = found.results[0]

    assert best.text == PAGES["signals/flags.md"].partition("\n\n")[2]
    assert (best.title, best.heading_hierarchy, best.module_name, best.chapter_id) == (
        "Flags", ("Flags",), "Signals", "signals/flags",
    )  # fmt: skip
    assert best.url.endswith("/signals/flags.md")
    assert [result.position for result in found.results] == list(range(1, len(found.results) + 1))
    cosine = float(vector_of("Flags\n" + best.text) @ vector_of("Is the red flag danger?"))
    assert best.score == pytest.approx(cosine, abs=1e-5)
    scores = [result.rerank_score for result in found.results]
    assert scores == sorted(scores, reverse=True)


async def test_near_duplicates_are_returned_once(snapshot: IndexSnapshot) -> None:
    found = await find(snapshot, "colza oil lamp", top_k=10)
    assert len([text for text in said(found) if "colza" in text]) == 1
    assert len([text for text in said(found) if "dusk" in text]) == 1
    assert len(found.results) == 6


async def test_forty_duplicates_leave_room_for_other_passages(tmp_path: Path) -> None:
    pages = tmp_path / "pages"
    pages.mkdir()
    for number in range(40):
        (pages / f"copy{number}.md").write_text(f"# Version {number}\n\nThe lamp burns colza oil.")
    for word in ("wick", "lens", "stair"):
        (pages / f"{word}.md").write_text(f"# Parts\n\nThe {word} of the tower.")
    book = WordBook(tmp_path / "index")
    await book.ingest(pages)
    with book.index_provider() as index_provider:
        async with index_provider.snapshot() as opened:
            found = await find(opened, "Which colza oil does the lamp burn?", top_k=4)

    assert sorted(said(found)) == [
        "The lamp burns colza oil.", "The lens of the tower.", "The stair of the tower.", "The wick of the tower.",
    ]  # fmt: skip


async def test_returns_at_most_top_k_results(snapshot: IndexSnapshot) -> None:
    assert [len((await find(snapshot, "lamp", top_k=top_k)).results) for top_k in (1, 2, 10)] == [1, 2, 6]


async def test_a_higher_top_k_extends_the_same_results(snapshot: IndexSnapshot) -> None:
    two, six = [said(await find(snapshot, "horn in fog", top_k=top_k)) for top_k in (2, 6)]
    assert six[:2] == two


async def test_filters_restrict_results_to_a_part_of_the_book(snapshot: IndexSnapshot) -> None:
    found = await find(snapshot, "lamp", filters=Filters(module="Signals"))
    assert {result.module_name for result in found.results} == {"Signals"}
    assert found.filter_applied == "module=Signals"
    assert (await find(snapshot, "lamp", filters=Filters(module="Nowhere"))).results == ()


async def test_a_repeated_query_is_answered_from_the_cache(snapshot: IndexSnapshot) -> None:
    embedder = WordEmbedder()
    retriever = Retriever(embedder)
    first, second = [await retriever.retrieve(snapshot, "lamp", top_k=3, filters=NO_FILTERS) for _ in range(2)]

    assert embedder.asked == ["lamp"]
    assert (first.context.cache_hit, second.context.cache_hit) == (False, True)
    assert first.context.results == second.context.results
    assert first.embedding_time_ms > 0 == second.embedding_time_ms
    for top_k, filters in ((4, NO_FILTERS), (3, Filters(module="Signals"))):
        again = await retriever.retrieve(snapshot, "lamp", top_k=top_k, filters=filters)
        assert not again.context.cache_hit


async def test_the_query_cache_is_bounded(snapshot: IndexSnapshot) -> None:
    retriever = Retriever(WordEmbedder())
    for number in range(257):
        await retriever.retrieve(snapshot, f"lamp {number}", top_k=1, filters=NO_FILTERS)

    hits = [
        (await retriever.retrieve(snapshot, f"lamp {number}", top_k=1, filters=NO_FILTERS)).context.cache_hit
        for number in (256, 1, 0)
    ]
    assert hits == [True, True, False]


async def test_the_order_is_deterministic(snapshot: IndexSnapshot) -> None:
    assert len({(await find(snapshot, "the lamp and the horn")).results for _ in range(5)}) == 1


async def test_a_statement_ranks_before_a_question(snapshot: IndexSnapshot) -> None:
    embedder = WordEmbedder()
    found = await Retriever(embedder).retrieve(snapshot, "red flag danger", top_k=5, filters=NO_FILTERS)
    evidence = await score_evidence(snapshot, embedder, found)

    assert evidence.spans[0].text == "A red flag is danger."
    features = evidence.features
    assert features.passage_overlap == pytest.approx(1.0)
    assert 0.0 <= features.span_cosine <= 1.0
    assert [unit.score for unit in evidence.spans] == sorted((unit.score for unit in evidence.spans), reverse=True)


async def test_covered_questions_have_a_higher_confidence(snapshot: IndexSnapshot) -> None:
    embedder = WordEmbedder()
    sure = []
    for question in ("a red flag is danger", "mortgage rate fixed bank"):
        found = await Retriever(embedder).retrieve(snapshot, question, top_k=5, filters=NO_FILTERS)
        sure.append((await score_evidence(snapshot, embedder, found)).confidence)
    assert 0.0 <= sure[1] < sure[0] <= 1.0


async def test_without_passages_there_is_no_evidence(snapshot: IndexSnapshot) -> None:
    embedder = WordEmbedder()
    found = await Retriever(embedder).retrieve(snapshot, "lamp", top_k=5, filters=Filters(module="Nowhere"))
    evidence = await score_evidence(snapshot, embedder, found)
    assert evidence.spans == ()
    assert evidence.confidence < 0.01
