"""What is asked of a model, what it has been shown, and how its answer came about."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bythebook.answers.budget import Budget, Fitted
    from bythebook.conversations.followups import Exchange
    from bythebook.passages import RetrievalResult


@dataclass(frozen=True, slots=True)
class Began:
    """The answer begins, or begins again: what was said before no longer counts."""


class Shown:
    """The passages of a turn, numbered once: a passage that is found again keeps its number."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self.results: list[RetrievalResult] = []

    def number(self, results: Sequence[RetrievalResult]) -> list[tuple[int, RetrievalResult]]:
        numbered: list[tuple[int, RetrievalResult]] = []
        for result in results:
            if result.chunk_id not in self._numbers:
                self._numbers[result.chunk_id] = len(self.results) + 1
                self.results.append(result)
            numbered.append((self._numbers[result.chunk_id], result))
        return numbered


@dataclass(frozen=True, slots=True)
class Question:
    """What the model is to answer, and within which bounds."""

    text: str
    system: str
    history: tuple[Exchange, ...]
    budget: Budget


@dataclass(slots=True)
class Spoken:
    """How the answer came about."""

    shown: Shown = field(default_factory=Shown)
    """Every passage the model has seen, numbered."""
    text: str = ""
    searches: int = 0
    tokens_used: int = 0
    finish_reason: str = ""
    passages_left_out: int = 0
    exchanges_left_out: int = 0

    def note(self, fitted: Fitted) -> None:
        self.passages_left_out = fitted.passages_left_out
        self.exchanges_left_out = fitted.exchanges_left_out
