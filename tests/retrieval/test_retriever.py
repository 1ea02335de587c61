"""From a question to passages."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from bythebook.index import EVERYWHERE, Filters
from bythebook.retrieval import RetrievalContext
from bythebook.retrieval.evidence import weigh
from bythebook.retrieval.retriever import Retriever
from tests.support.word_embedder import WordBook, WordEmbedder, vector_of

if TYPE_CHECKING:
    from bythebook.index.provider import Edition

PAGES = {
    "keeping/lamp.md": "# The Lamp\n\nThe lamp burns colza oil.\n\n## Lighting\n\nLight the lamp at dusk.",
    "keeping/copy.md": "# The Lamp\n\nThe lamp burns colza oil!\n\n## Lighting\n\nLight the lamp at dusk.",
    "keeping/another.md": "# The Lamp\n\n“The lamp burns colza oil.”",
    "signals/horn.md": "# The Horn\n\nThe horn warns ships in fog.\n\n## Pattern\n\nTwo blasts of the horn.",
    "signals/flags.md": "# Flags\n\nIs danger a red flag? A red flag is danger.",
    "zoo.md": "# Zoo\n\nA zebra has stripes.",
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def edition(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Edition]:
    folder = tmp_path_factory.mktemp("retriever")
    for name, text in PAGES.items():
        (folder / "pages" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "pages" / name).write_text(text)
    book = WordBook(folder / "index")
    await book.ingest(folder / "pages")
    with book.shelf() as shelf:
        async with shelf.edition() as opened:
            yield opened


pytestmark = pytest.mark.asyncio(loop_scope="module")


async def find(edition: Edition, query: str, *, top_k: int = 5, filters: Filters = EVERYWHERE) -> RetrievalContext:
    return (await Retriever(WordEmbedder()).retrieve(edition, query, top_k=top_k, filters=filters)).context


def said(found: RetrievalContext) -> list[str]:
    return [result.text for result in found.results]


async def test_the_best_passage_comes_first_with_its_place_and_cosine(edition: Edition) -> None:
    found = await find(edition, "Is the red flag danger?")
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


async def test_passages_that_say_the_same_do_not_crowd_the_list(edition: Edition) -> None:
    found = await find(edition, "colza oil lamp", top_k=10)
    assert len([text for text in said(found) if "colza" in text]) == 1
    assert len([text for text in said(found) if "dusk" in text]) == 1
    assert len(found.results) == 6


async def test_what_is_said_forty_times_leaves_room_for_the_rest(tmp_path: Path) -> None:
    pages = tmp_path / "pages"
    pages.mkdir()
    for number in range(40):
        (pages / f"copy{number}.md").write_text(f"# Version {number}\n\nThe lamp burns colza oil.")
    for word in ("wick", "lens", "stair"):
        (pages / f"{word}.md").write_text(f"# Parts\n\nThe {word} of the tower.")
    book = WordBook(tmp_path / "index")
    await book.ingest(pages)
    with book.shelf() as shelf:
        async with shelf.edition() as opened:
            found = await find(opened, "Which colza oil does the lamp burn?", top_k=4)

    assert sorted(said(found)) == [
        "The lamp burns colza oil.", "The lens of the tower.", "The stair of the tower.", "The wick of the tower.",
    ]  # fmt: skip


async def test_no_more_than_wanted_and_no_more_than_there_is(edition: Edition) -> None:
    assert [len((await find(edition, "lamp", top_k=top_k)).results) for top_k in (1, 2, 10)] == [1, 2, 6]


async def test_more_wanted_are_the_same_ones_and_some_more(edition: Edition) -> None:
    two, six = [said(await find(edition, "horn in fog", top_k=top_k)) for top_k in (2, 6)]
    assert six[:2] == two


async def test_filters_keep_to_a_part_of_the_book(edition: Edition) -> None:
    found = await find(edition, "lamp", filters=Filters(module="Signals"))
    assert {result.module_name for result in found.results} == {"Signals"}
    assert found.filter_applied == "module=Signals"
    assert (await find(edition, "lamp", filters=Filters(module="Nowhere"))).results == ()


async def test_the_same_question_is_not_embedded_or_searched_twice(edition: Edition) -> None:
    embedder = WordEmbedder()
    retriever = Retriever(embedder)
    first, second = [await retriever.retrieve(edition, "lamp", top_k=3, filters=EVERYWHERE) for _ in range(2)]

    assert embedder.asked == ["lamp"]
    assert (first.context.cache_hit, second.context.cache_hit) == (False, True)
    assert first.context.results == second.context.results
    assert first.embedding_time_ms > 0 == second.embedding_time_ms
    for top_k, filters in ((4, EVERYWHERE), (3, Filters(module="Signals"))):
        again = await retriever.retrieve(edition, "lamp", top_k=top_k, filters=filters)
        assert not again.context.cache_hit


async def test_only_so_many_questions_are_remembered(edition: Edition) -> None:
    retriever = Retriever(WordEmbedder())
    for number in range(257):
        await retriever.retrieve(edition, f"lamp {number}", top_k=1, filters=EVERYWHERE)

    hits = [
        (await retriever.retrieve(edition, f"lamp {number}", top_k=1, filters=EVERYWHERE)).context.cache_hit
        for number in (256, 1, 0)
    ]
    assert hits == [True, True, False]


async def test_the_order_is_the_same_every_time(edition: Edition) -> None:
    assert len({(await find(edition, "the lamp and the horn")).results for _ in range(5)}) == 1


async def test_evidence_puts_the_sentence_that_answers_before_the_one_that_asks(edition: Edition) -> None:
    embedder = WordEmbedder()
    found = await Retriever(embedder).retrieve(edition, "red flag danger", top_k=5, filters=EVERYWHERE)
    evidence = await weigh(edition, embedder, found)

    assert evidence.units[0].text == "A red flag is danger."
    features = evidence.features
    assert features.passage_share == features.unit_share == pytest.approx(1.0)
    assert features.passage_cosine == max(result.score for result in found.context.results)
    assert all(0.0 <= getattr(features, name) <= 1.0 for name in type(features).__slots__)
    assert [unit.score for unit in evidence.units] == sorted((unit.score for unit in evidence.units), reverse=True)


async def test_what_is_covered_has_more_confidence_than_what_is_not(edition: Edition) -> None:
    embedder = WordEmbedder()
    sure = []
    for question in ("a red flag is danger", "mortgage rate fixed bank"):
        found = await Retriever(embedder).retrieve(edition, question, top_k=5, filters=EVERYWHERE)
        sure.append((await weigh(edition, embedder, found)).confidence)
    assert 0.0 <= sure[1] < sure[0] <= 1.0


async def test_without_passages_there_is_no_evidence(edition: Edition) -> None:
    embedder = WordEmbedder()
    found = await Retriever(embedder).retrieve(edition, "lamp", top_k=5, filters=Filters(module="Nowhere"))
    evidence = await weigh(edition, embedder, found)
    assert evidence.units == ()
    assert evidence.confidence < 0.01
