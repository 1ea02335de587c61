"""Words: how text is cut into terms and weighed, the same for the index, the evidence and the answer.

The tally of chunks that come and go: in how many more of them than before each thing stands.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING

from qdrant_edge import Bm25, Bm25Config

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from qdrant_edge import SparseVector


SATURATION = 1.2
LENGTH_WEIGHT = 0.75

_STEPS_PER_DOUBLING = 4
_REMEMBERED = 1024
"""How many texts are remembered with their terms: the passages that answer one question answer others too."""


_JOINED = re.compile(r"[^\W_]+(?:[._-]+[^\W_]+)+")
_HUMPED = re.compile(r"[^\W_]*[a-z][A-Z][^\W_]*|[A-Z]{2,}[a-z][^\W_]*")
_HUMP = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_SIGNS = re.compile(r"[\W_]+")
_SHORTEST_NAME, _LONGEST_NAME = 4, 64
_LONGEST_PATH = 256
"""What is longer and has no space in it is data, and could take for ever to look through."""

WORD = re.compile(r"[^\W\d_]+")
SHORTEST_MISSPELT = 5
"""A shorter word has too many neighbours."""


class Words:
    """The engine's own BM25 terms: stemmed, without stop words, as numbers. A name counts in all its spellings."""

    def __init__(self, average_length: float) -> None:
        config = Bm25Config(k=SATURATION, b=LENGTH_WEIGHT, avg_len=average_length, language="english")
        self._bm25 = Bm25(config)
        # Without length normalisation a weight depends on the frequency alone, and gives it back.
        self._frequencies = Bm25(Bm25Config(k=SATURATION, b=0.0, language="english"))
        self.average_length = average_length
        self._terms = lru_cache(_REMEMBERED)(self._cut)
        self._weights = lru_cache(_REMEMBERED)(self._weighed)

    def document(self, text: str) -> SparseVector:
        return self._bm25.embed_document(with_spellings(text))

    def query(self, text: str) -> SparseVector:
        return self._bm25.embed_query(with_spellings(text))

    def terms(self, text: str) -> frozenset[int]:
        """The distinct terms of `text`."""
        return self._terms(text)

    def _cut(self, text: str) -> frozenset[int]:
        return frozenset(self.query(text).indices)

    def frequencies(self, text: str) -> dict[int, int]:
        """Each term of `text` with how often it stands there."""
        sparse = self._frequencies.embed_document(with_spellings(text))
        counts = (round(value * SATURATION / (SATURATION + 1 - value)) for value in sparse.values)
        return dict(zip(sparse.indices, counts, strict=True))

    def length(self, text: str) -> int:
        """How many terms `text` has, each counted as often as it stands there."""
        return sum(self.frequencies(text).values())

    def weights(self, text: str) -> Mapping[int, float]:
        """Each term of `text` with how much its frequency counts, from 0 to `SATURATION + 1`."""
        return self._weights(text)

    def _weighed(self, text: str) -> Mapping[int, float]:
        sparse = self.document(text)
        return dict(zip(sparse.indices, sparse.values, strict=True))


def with_spellings(text: str) -> str:
    """The text, and after it the other spellings of the names in it."""
    # Most words are plain, which is seen at a glance.
    others = [word for word in text.split() if not (word.isalpha() and word[1:].islower())]
    found = dict.fromkeys(spelling for word in others if len(word) <= _LONGEST_PATH for spelling in _spellings(word))
    return f"{text} {' '.join(found)}" if found else text


def _spellings(word: str) -> Iterator[str]:
    for name in _JOINED.findall(word):
        for part in (*name.split("."), name):
            whole = _SIGNS.sub("", part)
            if whole != part and _SHORTEST_NAME <= len(whole) <= _LONGEST_NAME and not whole.isdigit():
                yield whole
    for humped in _HUMPED.findall(word):
        humps = _HUMP.findall(humped)
        if len(humps) > 1:
            yield from humps


def rarity(count: int, *, total: int) -> float:
    """How much a term says that stands in `count` of `total` chunks (BM25's idf)."""
    return math.log(1 + (total - count + 0.5) / (count + 0.5))


def share(wanted: Mapping[int, float], found: Iterable[int]) -> float:
    """The part of the wanted weight that is found, from 0 to 1."""
    total = sum(wanted.values())
    return sum(wanted.get(term, 0.0) for term in set(found)) / total if total else 0.0


def stepped(length: float) -> float:
    """`length` rounded to one of a few steps.

    The average length of a book's chunks goes into the weight of every word of every chunk. Rounding it keeps an
    edit of one page from changing the others.
    """
    steps = round(math.log2(max(length, 8.0)) * _STEPS_PER_DOUBLING)
    return round(2 ** (steps / _STEPS_PER_DOUBLING), 3)


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
