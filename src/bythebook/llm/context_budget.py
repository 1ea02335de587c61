"""The context budget: which passages and exchanges fit into the model's window, counted in exact tokens."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from bythebook.conversations.followups import Exchange
from bythebook.embeddings.tokens import token_counter
from bythebook.errors import ContextOverflow
from bythebook.retrieval import RetrievalResult

Numbered = tuple[int, RetrievalResult]


MESSAGE = 4
"""Tokens a chat format adds around each message."""
HEADING = 24
"""The tokens of the text around the passages. The heading of each passage is counted with the passage."""
_CACHE_SIZE = 512
"""The size of the cache of token counts: passages and exchanges recur, instructions are in every request."""


@dataclass(frozen=True, slots=True)
class ContextBudget:
    """The shares of the model's window, in tokens."""

    window: int = 8192
    system: int = 500
    context: int = 4000
    history: int = 2500
    answer: int = 1000


@dataclass(frozen=True, slots=True)
class FittedContext:
    """The passages and exchanges that fit into the prompt."""

    passages: tuple[Numbered, ...]
    history: tuple[Exchange, ...]
    passages_left_out: int
    exchanges_left_out: int
    tokens: int
    """The size of the whole prompt."""


@lru_cache(_CACHE_SIZE)
def count_tokens(text: str) -> int:
    """The number of tokens in `text`."""
    return token_counter("o200k_base")(text)


def count_passage_tokens(number: int, result: RetrievalResult) -> int:
    return count_tokens(format_passage(number, result))


def format_passage(number: int, result: RetrievalResult) -> str:
    """The text of a passage in a prompt."""
    title = " > ".join(result.heading_hierarchy) or result.title
    return f"[{number}] Source: {title} ({result.url})\n{result.text}\n\n"


def fit_context(
    budget: ContextBudget,
    *,
    system: str,
    question: str,
    passages: Sequence[Numbered],
    history: Sequence[Exchange],
) -> FittedContext:
    """The best passages and the latest exchanges that fit. The system message and the question are always included.

    Raises ContextOverflow when those two and the answer do not fit.
    """
    fixed = count_tokens(system) + count_tokens(question) + 2 * MESSAGE + HEADING
    room = budget.window - budget.answer - fixed
    if room < 0:
        raise ContextOverflow(
            f"the question needs {fixed} tokens and the answer {budget.answer}, but the model reads {budget.window}. "
            "Ask a shorter question, or raise context_window."
        )
    fitting_passages, used = fit_passages(passages, min(budget.context, room))
    fitting_history, history_tokens = _latest(history, min(budget.history, room - used))
    return FittedContext(
        passages=fitting_passages,
        history=fitting_history,
        passages_left_out=len(passages) - len(fitting_passages),
        exchanges_left_out=len(history) - len(fitting_history),
        tokens=fixed + used + history_tokens,
    )


def fit_passages(passages: Sequence[Numbered], room: int) -> tuple[tuple[Numbered, ...], int]:
    """The best passages that fit, and their tokens. A passage that is larger than the whole room is cut."""
    kept: list[Numbered] = []
    used = 0
    for number, passage in passages:
        result = passage
        while (tokens := count_passage_tokens(number, result)) > room and not kept:
            text = result.text[: min(len(result.text) - 1, len(result.text) * room // tokens)].rstrip()
            if not text:
                return (), 0
            result = replace(result, text=text)
        if used + tokens > room:
            break
        kept.append((number, result))
        used += tokens
    return tuple(kept), used


def _latest(history: Sequence[Exchange], room: int) -> tuple[tuple[Exchange, ...], int]:
    kept: list[Exchange] = []
    used = 0
    for exchange in reversed(history):
        tokens = count_tokens(exchange.question) + count_tokens(exchange.answer) + 2 * MESSAGE
        if used + tokens > room:
            break
        kept.insert(0, exchange)
        used += tokens
    return tuple(kept), used
