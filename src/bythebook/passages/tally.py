"""The tally of chunks that come and go: in how many more of them than before each thing stands."""

from __future__ import annotations

from collections import Counter

from bythebook.passages.spelling import abbreviations, vocabulary
from bythebook.passages.words import Words


class Tally:
    """Counts what the catalogue knows of a book's language."""

    def __init__(self) -> None:
        self.terms: Counter[int] = Counter()
        self.words: Counter[str] = Counter()
        self.abbreviations: Counter[tuple[str, str]] = Counter()
        self._cut = Words(1.0)

    def add(self, text: str) -> int:
        """Count a chunk that comes. Returns its length in terms."""
        frequencies = self._cut.frequencies(text)
        self.terms.update(frequencies.keys())
        self.words.update(vocabulary(text))
        self.abbreviations.update(abbreviations(text))
        return sum(frequencies.values())

    def remove(self, text: str) -> None:
        """Count a chunk that goes."""
        self.terms.subtract(self._cut.terms(text))
        self.words.subtract(vocabulary(text))
        self.abbreviations.subtract(abbreviations(text))
