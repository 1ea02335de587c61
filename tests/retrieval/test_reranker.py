"""The reranker reorders the passages it has read, within a budget that falls under load."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from bythebook import Book
from bythebook.index import NO_FILTERS
from bythebook.retrieval.reranker import BUDGETS, NO_READING, ReadingLevel, Reranker, installed_reranker
from bythebook.retrieval.retriever import Retriever

if TYPE_CHECKING:
    from bythebook.models.cross_encoder import CrossEncoder

Opened = Callable[..., AbstractAsyncContextManager[Book]]


def reranker_of(book: Book) -> Reranker:
    assert book.reranker is not None
    return book.reranker


async def test_passages_that_were_read_come_first_in_the_order_of_their_scores(opened: Opened) -> None:
    async with opened(None) as book, book.snapshot() as snapshot:
        found = await book.retriever.retrieve(
            snapshot, "How often does the fog horn sound?", top_k=5, filters=NO_FILTERS
        )
    results, reading = found.context.results, found.reading
    assert reading is not None
    assert [result.position for result in results] == list(range(1, len(results) + 1))
    scores = [result.rerank_score for result in results]
    assert scores == sorted(scores, reverse=True)
    read = [result.chunk_id in reading.logits for result in results]
    assert read == sorted(read, reverse=True)
    assert any(read)


async def test_a_passage_that_answers_moves_before_one_that_only_ranks_well(opened: Opened) -> None:
    async with opened(None) as book, book.snapshot() as snapshot:
        found = (await Retriever(book.embedder).retrieve(snapshot, "lamp", top_k=3, filters=NO_FILTERS)).context.results
    answering = found[2].text

    class ScriptedModel:
        async def score(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
            return [9.0 if answering in text else -9.0 for _, text in pairs]

    results, _ = await Reranker(cast("CrossEncoder", ScriptedModel())).rerank("lamp", found, BUDGETS[0][1])
    assert [result.chunk_id for result in results] == [found[place].chunk_id for place in (2, 0, 1)]


async def test_the_budget_falls_in_fixed_steps_and_recovers(opened: Opened) -> None:
    async with opened(None) as book:
        reranker = reranker_of(book)
        with ExitStack() as stack:
            levels = [stack.enter_context(reranker.budget()).level for _ in range(BUDGETS[-1][0] + 1)]
        with reranker.budget() as budget:
            assert budget.level is ReadingLevel.FULL
    full, reduced = BUDGETS[0][0], BUDGETS[1][0]
    assert levels == [ReadingLevel.FULL] * full + [ReadingLevel.REDUCED] * (reduced - full) + [ReadingLevel.NONE]


@pytest.mark.parametrize(("held", "level"), [(0, "full"), (BUDGETS[0][0], "reduced"), (BUDGETS[1][0], "none")])
async def test_a_response_names_the_level_it_was_answered_with(opened: Opened, held: int, level: str) -> None:
    async with opened(None) as book:
        with ExitStack() as stack:
            for _ in range(held):
                stack.enter_context(reranker_of(book).budget())
            response = await book.ask("How often does the fog horn sound?")
    assert response.metadata.reading == level
    assert response.outcome == "answered"


async def test_a_question_answered_under_load_is_read_again_later(opened: Opened) -> None:
    question = "How often does the fog horn sound?"
    async with opened(None) as book, book.snapshot() as snapshot:
        with ExitStack() as stack:
            for _ in range(BUDGETS[-1][0]):
                stack.enter_context(reranker_of(book).budget())
            unread = await book.retriever.retrieve(snapshot, question, top_k=5, filters=NO_FILTERS)
        read = await book.retriever.retrieve(snapshot, question, top_k=5, filters=NO_FILTERS)
        again = await book.retriever.retrieve(snapshot, question, top_k=5, filters=NO_FILTERS)
    assert unread.reading is None
    assert read.reading is not None
    assert again.context.cache_hit
    assert again.reading == read.reading


async def test_without_budget_the_order_stays(opened: Opened) -> None:
    async with opened(None) as book, book.snapshot() as snapshot:
        found = await book.retriever.retrieve(snapshot, "lamp", top_k=5, filters=NO_FILTERS)
        results, reading = await reranker_of(book).rerank("lamp", found.context.results, NO_READING)
    assert (results, reading) == (found.context.results, None)


async def test_a_missing_model_is_said_once_with_the_command_that_installs_it(tmp_path: Path) -> None:
    said: list[str] = []
    async with installed_reranker(tmp_path, fetch=False, say=said.append) as reranker:
        assert reranker is None
    assert len(said) == 1
    assert "bythebook model download" in said[0]
    assert "without it" in said[0]
