"""Language models: what a model generates for a question, before its answer is verified."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from bythebook.retrieval import RetrievalResult


@dataclass(frozen=True, slots=True)
class GenerationStarted:
    """The answer starts, or starts again: text that came before is void."""


class NumberedPassages:
    """The passages of a turn, each with one number: a passage that is found again keeps its number."""

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


@dataclass(slots=True)
class GenerationResult:
    """The answer of a model before verification, and how it was generated."""

    passages: NumberedPassages = field(default_factory=NumberedPassages)
    """Every passage that the model got."""
    text: str = ""
    searches: int = 0
    tokens_used: int = 0
    tokens_estimated: bool = False
    """Whether the tokens were counted here, because the provider sent no figures."""
    tool_calls: list[tuple[str, str, str]] = field(default_factory=list)
    """The id, the arguments and the response of each tool call."""
    finish_reason: str = ""
    passages_left_out: int = 0
    exchanges_left_out: int = 0
