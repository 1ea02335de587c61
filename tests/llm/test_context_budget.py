"""HARDENING R14: a prompt never exceeds the window, and always contains the instructions and the question."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bythebook.conversations.followups import Exchange
from bythebook.errors import ContextOverflow
from bythebook.llm import prompts
from bythebook.llm.context_budget import MESSAGE, ContextBudget, count_tokens, fit_context, format_passage
from bythebook.retrieval import RetrievalResult


def passage(number: int, words: int) -> tuple[int, RetrievalResult]:
    text = " ".join(f"word{number}x{index}" for index in range(words)) or "word"
    return number, RetrievalResult(
        chunk_id=f"c{number}", document_id="d", text=text, score=0.5, position=number, chunk_index=number,
        url=f"https://book.example/{number}", title=f"Page {number}", token_count=max(words, 1),
    )  # fmt: skip


@settings(max_examples=1000, deadline=None)
@given(
    window=st.integers(1100, 9000),
    sizes=st.lists(st.integers(0, 900), max_size=20),
    history=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 900)), max_size=30),
    question=st.integers(1, 250),
)
def test_no_prompt_exceeds_the_window(
    window: int, sizes: list[int], history: list[tuple[int, int]], question: int
) -> None:
    budget = ContextBudget(window=window, answer=1000)
    asked = "why " * question
    exchanges = [Exchange("ask " * asks, "say " * says) for asks, says in history]
    passages = [passage(number, size) for number, size in enumerate(sizes, start=1)]
    try:
        fitted = fit_context(budget, system=prompts.SYSTEM, question=asked, passages=passages, history=exchanges)
    except ContextOverflow:
        assert count_tokens(prompts.SYSTEM) + count_tokens(asked) + budget.answer + 60 > window
        return
    messages = prompts.with_passages(prompts.SYSTEM, fitted.passages, fitted.history, asked)
    assert sum(count_tokens(message["content"]) + MESSAGE for message in messages) + budget.answer <= window
    assert messages[0]["content"] == prompts.SYSTEM
    assert messages[-1]["content"].endswith(f"Question: {asked}")
    # Only a passage that is larger than all the room is cut.
    assert [number for number, _ in fitted.passages] == [number for number, _ in passages[: len(fitted.passages)]]
    assert all(
        whole[1].text.startswith(shown.text) for whole, (_, shown) in zip(passages, fitted.passages, strict=False)
    )
    assert list(fitted.passages[1:]) == passages[1 : len(fitted.passages)]
    assert list(fitted.history) == exchanges[len(exchanges) - len(fitted.history) :]
    assert fitted.passages_left_out == len(passages) - len(fitted.passages)
    assert fitted.exchanges_left_out == len(exchanges) - len(fitted.history)


def test_keeps_the_latest_exchanges_of_200_turns() -> None:
    exchanges = [Exchange(f"Question {number}? " * 5, f"Answer {number}. " * 40) for number in range(200)]
    fitted = fit_context(
        ContextBudget(), system=prompts.SYSTEM, question="And now?", passages=[passage(1, 200)], history=exchanges
    )
    assert fitted.history[-1] == exchanges[-1]
    assert 0 < len(fitted.history) < 200
    assert fitted.tokens <= 8192 - 1000


def test_001_limits_passages_and_history_to_their_shares() -> None:
    passages = [passage(number, 300) for number in range(1, 21)]
    exchanges = [Exchange("ask " * 50, "say " * 200) for _ in range(40)]
    fitted = fit_context(ContextBudget(), system="Answer.", question="Why?", passages=passages, history=exchanges)
    assert sum(count_tokens(format_passage(number, result)) for number, result in fitted.passages) <= 4000
    assert sum(count_tokens(e.question) + count_tokens(e.answer) for e in fitted.history) <= 2500


def test_rejects_a_question_that_does_not_fit() -> None:
    with pytest.raises(ContextOverflow, match="Ask a shorter question"):
        fit_context(ContextBudget(window=1100), system="Answer.", question="why " * 400, passages=[], history=[])


def test_a_passage_larger_than_the_context_is_cut() -> None:
    """001: the best passage reaches the model, however small the window is."""
    fitted = fit_context(
        ContextBudget(window=1800, context=300),
        system=prompts.SYSTEM,
        question="And now?",
        passages=[passage(1, 2000), passage(2, 20)],
        history=[],
    )
    ((number, cut),) = fitted.passages
    assert number == 1
    assert passage(1, 2000)[1].text.startswith(cut.text)
    assert 200 < count_tokens(format_passage(number, cut)) <= 300
    assert fitted.passages_left_out == 1
