"""The budget: what of passages and history fits beside the question, counted in true tokens, never over."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from bythebook.errors import ContextOverflow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bythebook.conversations.followups import Exchange
    from bythebook.retrieval import RetrievalResult

    Numbered = tuple[int, RetrievalResult]

MESSAGE = 4
"""Tokens a chat format adds around each message."""
HEADING = 24
"""At most this much stands above a passage: its number, title and address are counted with it."""
_REMEMBERED = 512
"""How many texts are remembered with their tokens: passages and exchanges come again, instructions always."""


@dataclass(frozen=True, slots=True)
class Budget:
    """How the model's window is shared out."""

    window: int = 8192
    system: int = 500
    context: int = 4000
    history: int = 2500
    answer: int = 1000


@dataclass(frozen=True, slots=True)
class Fitted:
    """What goes into the prompt, and what had to stay out."""

    passages: tuple[Numbered, ...]
    history: tuple[Exchange, ...]
    passages_left_out: int
    exchanges_left_out: int
    tokens: int
    """Of the whole prompt."""


@cache
def _encoding() -> object:
    from rs_bpe.bpe import openai  # type: ignore[import-not-found]

    return openai.o200k_base()


@lru_cache(_REMEMBERED)
def count(text: str) -> int:
    """How many tokens `text` is."""
    counted: int = _encoding().count(text)  # type: ignore[attr-defined]
    return counted


def passage_tokens(number: int, result: RetrievalResult) -> int:
    return count(written(number, result))


def written(number: int, result: RetrievalResult) -> str:
    """A passage as it stands in a prompt."""
    title = " > ".join(result.heading_hierarchy) or result.title
    return f"[{number}] Source: {title} ({result.url})\n{result.text}\n\n"


def fit(
    budget: Budget,
    *,
    system: str,
    question: str,
    passages: Sequence[Numbered],
    history: Sequence[Exchange],
) -> Fitted:
    """The best passages and the latest exchanges that fit. The system message and the question are always kept.

    Raises ContextOverflow when not even those fit beside the answer.
    """
    fixed = count(system) + count(question) + 2 * MESSAGE + HEADING
    room = budget.window - budget.answer - fixed
    if room < 0:
        raise ContextOverflow(
            f"the question needs {fixed} tokens and the answer {budget.answer}, but the model reads {budget.window}. "
            "Ask a shorter question, or raise context_window."
        )
    kept_passages, used = _best(passages, min(budget.context, room))
    kept_history, remembered = _latest(history, min(budget.history, room - used))
    return Fitted(
        passages=kept_passages,
        history=kept_history,
        passages_left_out=len(passages) - len(kept_passages),
        exchanges_left_out=len(history) - len(kept_history),
        tokens=fixed + used + remembered,
    )


def _best(passages: Sequence[Numbered], room: int) -> tuple[tuple[Numbered, ...], int]:
    kept: list[Numbered] = []
    used = 0
    for number, result in passages:
        tokens = passage_tokens(number, result)
        if used + tokens > room:
            break
        kept.append((number, result))
        used += tokens
    return tuple(kept), used


def _latest(history: Sequence[Exchange], room: int) -> tuple[tuple[Exchange, ...], int]:
    kept: list[Exchange] = []
    used = 0
    for exchange in reversed(history):
        tokens = count(exchange.question) + count(exchange.answer) + 2 * MESSAGE
        if used + tokens > room:
            break
        kept.insert(0, exchange)
        used += tokens
    return tuple(kept), used
