"""The sanitized preview of an answer while the model is still generating it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bythebook.answers.citation_markers import CitationResolver, render_numbers
from bythebook.answers.prompt_leak import PromptLeakFilter
from bythebook.answers.sanitizer import StreamSanitizer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bythebook.retrieval import RetrievalResult


class AnswerPreview:
    """The answer as it is generated: sanitized, not yet verified.

    Citation numbers are the positions of the retrieved passages. The verified answer that replaces the preview numbers
    its quotes from 1.
    """

    def __init__(self, results: Sequence[RetrievalResult], *, instructions: str = "") -> None:
        """`instructions` is the system prompt, which must not reach the reader."""
        self._secret = PromptLeakFilter(instructions, [result.text for result in results])
        self._cleaner = StreamSanitizer(CitationResolver(results))

    def feed(self, delta: str) -> str:
        """The text that is safe to show now. Empty while a marker, link or tag is incomplete."""
        return render_numbers(self._cleaner.feed(self._secret.feed(delta)))

    def end(self) -> str:
        """The rest of the text, after the model has finished."""
        return render_numbers(self._cleaner.feed(self._secret.end()) + self._cleaner.end())
