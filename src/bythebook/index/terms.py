"""BM25 terms and their weights, used by the index, the evidence check and the answer, and vocabulary statistics."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from qdrant_edge import Bm25, Bm25Config, SparseVector

SATURATION = 1.2
LENGTH_WEIGHT = 0.75

_STEPS_PER_DOUBLING = 4
_CACHED_TEXTS = 1024
"""Texts whose terms are cached: different questions are often answered by the same passages."""

_COMPOUND = re.compile(r"[^\W_]+(?:[._-]+[^\W_]+)+")
_CAMEL_CASE = re.compile(r"[^\W_]*[a-z][A-Z][^\W_]*|[A-Z]{2,}[a-z][^\W_]*")
_CAMEL_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_SEPARATORS = re.compile(r"[\W_]+")
_MIN_NAME_LENGTH, _MAX_NAME_LENGTH = 4, 64
_MAX_PATH_LENGTH = 256
"""A longer text without whitespace is data, and the regular expressions could take very long on it."""

_SHORT_IN_BRACKETS = re.compile(r"(?<![\w'’])((?:[\w'’]+[ -]){1,8})\(([A-Z][A-Za-z]{1,7})s?\)")
_LONG_IN_BRACKETS = re.compile(r"\b([A-Z][A-Za-z]{1,7}) \(((?:[\w'’]+[ -]){1,7}[\w'’]+)\)")
_FUNCTION_WORDS = frozenset("a an and by for from in of on or the to with".split())

WORD = re.compile(r"[^\W\d_]+")
MIN_CORRECTED_LENGTH = 4
"""Shorter words are not corrected: too many words are one edit away."""


class Bm25Terms:
    """The search engine's BM25 terms: stemmed, without stop words, as integer ids.

    A compound name, such as `spin_once` or `HTTPException`, is indexed as a whole and by its parts.
    """

    def __init__(self, average_length: float) -> None:
        config = Bm25Config(k=SATURATION, b=LENGTH_WEIGHT, avg_len=average_length, language="english")
        self._bm25 = Bm25(config)
        # Without length normalisation, the term frequency can be computed back from the weight.
        self._unnormalised = Bm25(Bm25Config(k=SATURATION, b=0.0, language="english"))
        self.average_length = average_length
        self._terms = lru_cache(_CACHED_TEXTS)(self._compute_terms)
        self._weights = lru_cache(_CACHED_TEXTS)(self._compute_weights)

    def document_vector(self, text: str) -> SparseVector:
        return self._bm25.embed_document(add_spellings(text))

    def query_vector(self, text: str) -> SparseVector:
        return self._bm25.embed_query(add_spellings(text))

    def terms(self, text: str) -> frozenset[int]:
        """The distinct terms of `text`."""
        return self._terms(text)

    def _compute_terms(self, text: str) -> frozenset[int]:
        return frozenset(self.query_vector(text).indices)

    def term_frequencies(self, text: str) -> dict[int, int]:
        """The number of occurrences of each term of `text`."""
        sparse = self._unnormalised.embed_document(add_spellings(text))
        counts = (round(value * SATURATION / (SATURATION + 1 - value)) for value in sparse.values)
        return dict(zip(sparse.indices, counts, strict=True))

    def count_terms(self, text: str) -> int:
        """The length of `text` in terms, repeated ones included."""
        return sum(self.term_frequencies(text).values())

    def term_weights(self, text: str) -> Mapping[int, float]:
        """The BM25 weight of each term of `text`, without idf: from 0 to `SATURATION + 1`."""
        return self._weights(text)

    def _compute_weights(self, text: str) -> Mapping[int, float]:
        sparse = self.document_vector(text)
        return dict(zip(sparse.indices, sparse.values, strict=True))


def add_spellings(text: str) -> str:
    """Append the alternative spellings of the compound names in the text."""
    # Most words are plain, which is cheap to check.
    compounds = [word for word in text.split() if not (word.isalpha() and word[1:].islower())]
    found = dict.fromkeys(part for word in compounds if len(word) <= _MAX_PATH_LENGTH for part in _spellings(word))
    return f"{text} {' '.join(found)}" if found else text


def _spellings(word: str) -> Iterator[str]:
    for name in _COMPOUND.findall(word):
        for part in (*name.split("."), name):
            whole = _SEPARATORS.sub("", part)
            if whole != part and _MIN_NAME_LENGTH <= len(whole) <= _MAX_NAME_LENGTH and not whole.isdigit():
                yield whole
    for compound in _CAMEL_CASE.findall(word):
        parts = _CAMEL_PART.findall(compound)
        if len(parts) > 1:
            yield from parts


def idf(count: int, *, total: int) -> float:
    """The inverse document frequency of a term that occurs in `count` of `total` chunks, as in BM25."""
    return math.log(1 + (total - count + 0.5) / (count + 0.5))


def weighted_overlap(wanted: Mapping[int, float], found: Iterable[int]) -> float:
    """The share of the total weight of `wanted` whose terms are in `found`, from 0 to 1."""
    total = sum(wanted.values())
    return sum(wanted.get(term, 0.0) for term in set(found)) / total if total else 0.0


def quantize_length(length: float) -> float:
    """Round an average chunk length to one of a few steps.

    The average length is a factor of the weight of every term in every chunk. Without rounding, an edit of one page
    would change the vectors of all others.
    """
    steps = round(math.log2(max(length, 8.0)) * _STEPS_PER_DOUBLING)
    return round(2 ** (steps / _STEPS_PER_DOUBLING), 3)


class VocabularyDelta:
    """The change in document frequencies of terms, words and abbreviations when chunks are added and removed."""

    def __init__(self) -> None:
        self.terms: Counter[int] = Counter()
        self.words: Counter[str] = Counter()
        self.abbreviations: Counter[tuple[str, str]] = Counter()
        self._bm25 = Bm25Terms(1.0)

    def add(self, text: str) -> int:
        """Count an added chunk. Returns its length in terms."""
        frequencies = self._bm25.term_frequencies(text)
        self.terms.update(frequencies.keys())
        self.words.update(extract_words(text))
        self.abbreviations.update(find_abbreviations(text))
        return sum(frequencies.values())

    def remove(self, text: str) -> None:
        """Count a removed chunk."""
        self.terms.subtract(self._bm25.terms(text))
        self.words.subtract(extract_words(text))
        self.abbreviations.subtract(find_abbreviations(text))


def extract_words(text: str) -> set[str]:
    """The words of a text that a misspelt word may be corrected to."""
    return {word for word in WORD.findall(text.lower()) if len(word) >= MIN_CORRECTED_LENGTH}


def find_abbreviations(text: str) -> set[tuple[str, str]]:
    """The abbreviations that a text defines, as in "inverse kinematics (IK)": pairs of short and long form."""
    short_last = {
        (short, long)
        for before, short in _SHORT_IN_BRACKETS.findall(text)
        if (long := _match_initials(short, before.split(" ")))
    }
    long_last = {
        (short, long)
        for short, long in _LONG_IN_BRACKETS.findall(text)
        if _match_initials(short, long.split(" ")) == long
    }
    return short_last | long_last


def _match_initials(short: str, words: Sequence[str]) -> str:
    """The last words whose initials are the letters of the short form; empty if they do not match."""
    words = [word for word in words if word]
    return " ".join(words[len(words) - _count_initials(short.lower(), words) :])


def _count_initials(letters: str, words: Sequence[str]) -> int:
    """The number of last words whose initials are these letters; 0 if none match. Function words may be skipped."""
    if not letters or not words:
        return 0
    initials = "".join(part[0] for part in words[-1].lower().split("-") if part)
    if initials == letters:
        return 1
    rest = _count_initials(letters.removesuffix(initials), words[:-1]) if initials and letters.endswith(initials) else 0
    if not rest and words[-1].lower() in _FUNCTION_WORDS:
        rest = _count_initials(letters, words[:-1])
    return rest + 1 if rest else 0
