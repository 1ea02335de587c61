"""Streaming: what a reader may see of an answer while the model is still writing it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bythebook.answers.citation_markers import Passages, numbered
from bythebook.answers.prompt_leak import Secret
from bythebook.answers.sanitizer import Cleaner

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bythebook.retrieval import RetrievalResult


class Preview:
    """The answer as it comes, not yet proven but already clean.

    Citations are the numbers of the passages that were found. The proven answer that takes its place at the end has
    numbers of its own, one for each quote.
    """

    def __init__(self, results: Sequence[RetrievalResult], *, instructions: str = "") -> None:
        """The `instructions` are what the model was told, and no reader is."""
        self._secret = Secret(instructions, [result.text for result in results])
        self._cleaner = Cleaner(Passages(results))

    def feed(self, delta: str) -> str:
        """What may be shown now. Empty while a marker, a link or a tag is still unfinished."""
        return numbered(self._cleaner.feed(self._secret.feed(delta)))

    def end(self) -> str:
        """What was held back, now that the model is done."""
        return numbered(self._cleaner.feed(self._secret.end()) + self._cleaner.end())
