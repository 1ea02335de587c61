"""The tally of chunks that come and go: in how many more of them than before each thing stands."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from bythebook.passages.spelling import SHORTEST_MISSPELT, WORD
from bythebook.passages.words import Words

if TYPE_CHECKING:
    from collections.abc import Sequence

_IN_BRACKETS = re.compile(r"(?<![\w'’])((?:[\w'’]+[ -]){1,8})\(([A-Z][A-Za-z]{1,7})s?\)")
_SPELLED_OUT = re.compile(r"\b([A-Z][A-Za-z]{1,7}) \(((?:[\w'’]+[ -]){1,7}[\w'’]+)\)")
_SMALL = frozenset("a an and by for from in of on or the to with".split())


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


def vocabulary(text: str) -> set[str]:
    """The words of a text that a misspelt one may stand for."""
    return {word for word in WORD.findall(text.lower()) if len(word) >= SHORTEST_MISSPELT - 1}


def abbreviations(text: str) -> set[tuple[str, str]]:
    """What the text abbreviates where it says so, as in "inverse kinematics (IK)": the short form and the long one."""
    behind = [(short, before) for before, short in _IN_BRACKETS.findall(text)]
    found = {(short, long) for short, before in behind if (long := _initialled(short, before.split(" ")))}
    ahead = {(short, long) for short, long in _SPELLED_OUT.findall(text) if _initialled(short, long.split(" ")) == long}
    return found | ahead


def _initialled(short: str, words: Sequence[str]) -> str:
    """The last of the words, if they begin with the letters of the short form; empty if they do not."""
    every = [word for word in words if word]
    taken = _taken(short.lower(), every)
    return " ".join(every[len(every) - taken :])


def _taken(letters: str, words: list[str]) -> int:
    """How many of the last words it takes to begin with these letters, 0 where they do not. Small ones need not
    count."""
    if not letters or not words:
        return 0
    initials = "".join(part[0] for part in words[-1].lower().split("-") if part)
    if initials == letters:
        return 1
    rest = _taken(letters.removesuffix(initials), words[:-1]) if initials and letters.endswith(initials) else 0
    if not rest and words[-1].lower() in _SMALL:
        rest = _taken(letters, words[:-1])
    return rest + 1 if rest else 0
