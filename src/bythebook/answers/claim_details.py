"""The details of a sentence that one wrong word makes false: numbers, units, names, identifiers, negations, conditions.

Two sentences can share nearly all their words and still contradict each other by a year, a name or a "not". Details
are found word by word, and a word has a bounded length, so the time is linear in the length of the text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

_TABLES = json.loads(Path(__file__).with_suffix(".json").read_bytes())
_SPELLED: dict[str, float] = _TABLES["numbers"]
_SCALES: dict[str, float] = _TABLES["scales"]
_UNITS = {spelling: unit for unit, spellings in _TABLES["units"].items() for spelling in spellings.split()}
_NEGATIONS = frozenset(_TABLES["negations"].split())
_DENIED = 5
"""How many words after a "not" it negates."""
_TELLING = 4
"""Shorter words are too common to be negated. Longer words are compared by this many leading letters."""
_LONGEST_WORD = 100
_CODE = re.compile(r"`([^`\n]{1,200})`")
_NUMBER = re.compile(r"[$€<>~=v+±-]{0,3}(\d[\d,]*(?:\.\d+)*)(?:x\b|st\b|nd\b|rd\b|th\b|s\b)?-?([a-z%°]*)")
_INNER_NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)*(?!\w)")
_AROUND = "\"'“”‘’()[]{},;:!?*_.`…|<>"
_CODE_WORD = re.compile(
    r"--?[A-Za-z][\w-]*|@\w[\w.]*|[\w.:/]+\(\)|\w+_\w+|_+\w+|\w+(?:(?:\.|::)[A-Za-z_]\w+)+|[a-z]+[A-Z]\w*"
    r"|[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)+|[A-Z]+[a-z]+\d\w*"
)
_NOT_WORDS = re.compile(r"[^\w.:/@-]")
_WORDS = re.compile(r"\w+")
_SENTENCE_END = ".!?:|"
_PLAIN = str.maketrans("’‐‑–—", "'----")


@dataclass(frozen=True, slots=True)
class ClaimDetails:
    """The checkable details of a text, normalised: 1,000 equals 1000, and forty equals 40."""

    numbers: frozenset[str]
    digits: frozenset[str]
    """Numbers written in digits."""
    quantities: frozenset[tuple[str, str]]
    """Numbers with their unit: 40 % equals 40 percent."""
    names: frozenset[str]
    """Capitalised words in lower case, except words that are capitalised only because they start a sentence."""
    identifiers: frozenset[str]
    words: tuple[str, ...]
    """Every word in lower case, in order."""
    text: str
    """The whole text in lower case with single spaces. Identifiers are looked up here."""
    denied: frozenset[str]
    """Leading letters of the words after a "not"."""

    def numbers_not_in(self, other: ClaimDetails) -> frozenset[str]:
        return self.numbers - other.numbers

    def measured_otherwise_in(self, other: ClaimDetails) -> bool:
        """True if a number has one unit here and only other units there."""
        there = {number for number, _ in other.quantities}
        return any(number in there for number, _ in self.quantities - other.quantities)

    def names_not_in(self, other: ClaimDetails) -> frozenset[str]:
        known = frozenset(other.words)
        stems = {word[:_TELLING] for word in known if len(word) >= _TELLING}
        return frozenset(name for name in self.names - known if len(name) < _TELLING or name[:_TELLING] not in stems)

    def identifiers_not_in(self, other: ClaimDetails) -> frozenset[str]:
        return frozenset(name for name in self.identifiers - other.identifiers if not _stands_in(name, other.text))

    def denies(self, other: ClaimDetails) -> bool:
        """True if a shared word is negated in exactly one of the two texts."""
        here = any(word[:_TELLING] in self.denied for word in other.words)
        there = any(word[:_TELLING] in other.denied for word in self.words)
        return here != there

    def compared_with(self, other: ClaimDetails) -> Iterator[str]:
        """Describe each detail and whether the other text contains it."""
        gone = {
            "number": (self.numbers, self.numbers_not_in(other)),
            "name": (self.names, self.names_not_in(other)),
            "identifier": (self.identifiers, self.identifiers_not_in(other)),
        }
        for kind, (every, missing) in gone.items():
            for one in sorted(every):
                yield f"{kind} {one}: {'missing' if one in missing else 'found'}"
        for number, unit in sorted(self.quantities):
            elsewhere = any(number == there for there, _ in other.quantities)
            found = "found" if (number, unit) in other.quantities else "another measure" if elsewhere else "missing"
            yield f"measure {number} {unit}: {found}"


@lru_cache(maxsize=2048)
def extract_details(text: str) -> ClaimDetails:
    """Extract the details of a sentence or a quote."""
    raw = [word for word in text.translate(_PLAIN).split() if word.strip(_AROUND) or word[0].isdigit()]
    cores = [word.strip(_AROUND) for word in raw]
    lower = [core.lower().removesuffix("'s") for core in cores]
    found = _NumberReader().read(lower)
    return ClaimDetails(
        numbers=frozenset(found.numbers),
        digits=frozenset(found.digits),
        quantities=frozenset(found.quantities),
        names=frozenset(_names(raw, cores)),
        identifiers=frozenset(_identifiers(text, cores)),
        words=tuple(part for word in lower for part in _parts(word)),
        text=" ".join(text.lower().split()),
        denied=frozenset(_negated_stems(lower)),
    )


def _parts(word: str) -> Iterator[str]:
    """The word and, if it is a compound, its parts."""
    yield word
    if len(word) <= _LONGEST_WORD and not word.isalnum():
        parts = re.split(r"[\W_]+", word)
        if len(parts) > 1:
            yield from filter(None, parts)


@dataclass(slots=True)
class _NumberReader:
    """Reads the numbers of a text word by word. "Two hundred" and "3 million" are one number each."""

    numbers: list[str] = field(default_factory=list)
    digits: list[str] = field(default_factory=list)
    quantities: list[tuple[str, str]] = field(default_factory=list)
    pending: float | None = None
    """A number that the next word may continue, or give a unit."""

    def read(self, words: list[str]) -> _NumberReader:
        for word in words:
            for part in word.split("-") if word.count("-") == 1 else [word]:
                self._read_word(part[:_LONGEST_WORD])
        self._end("")
        return self

    def _read_word(self, word: str) -> None:
        match = _NUMBER.fullmatch(word)
        if match is None and self._continues(word):
            return
        self._end(word)
        if match:
            self._read_digits(match[1].rstrip(",").replace(",", ""), unit=match[2])
        elif any(map(str.isdigit, word)):
            inner = [found[0].rstrip(",").replace(",", "") for found in _INNER_NUMBER.finditer(word)]
            self.digits += inner
            self.numbers += inner
        elif word in _SPELLED or word in _SCALES:
            self.pending = _SPELLED.get(word, _SCALES.get(word, 0.0))

    def _continues(self, word: str) -> bool:
        value = self.pending
        if value is None:
            return False
        if word in _SCALES:
            self.pending = value * _SCALES[word]
        elif value >= 20 and value % 10 == 0 and word in _SPELLED:
            self.pending = value + _SPELLED[word]
        else:
            return word == "and" and value >= 100
        return True

    def _read_digits(self, plain: str, *, unit: str) -> None:
        if plain.count(".") > 1 or (unit and unit not in _UNITS):
            self.numbers.append(plain + unit)
            self.digits.append(plain + unit)
            return
        self.pending = float(plain)
        # A version such as 3.10 is not 3.1.
        self.digits.append(plain if "." in plain else f"{self.pending:.15g}")
        self.numbers.append(self.digits[-1])
        if unit:
            self.quantities.append((f"{self.pending:.15g}", _UNITS[unit]))

    def _end(self, word: str) -> None:
        """The number is complete, and `word` follows it."""
        if self.pending is not None:
            value = f"{self.pending:.15g}"
            # "One" is rarely a count.
            self.numbers += [value] if self.pending != 1 else []
            self.quantities += [(value, _UNITS[word])] if word in _UNITS else []
            self.pending = None


def _negated_stems(words: list[str]) -> Iterator[str]:
    for index, word in enumerate(words):
        if word in _NEGATIONS or word.endswith("n't"):
            behind = (other[:_TELLING] for other in words[index + 1 : index + 1 + _DENIED])
            yield from (stem for stem in behind if len(stem) == _TELLING)


def _names(raw: list[str], cores: list[str]) -> Iterator[str]:
    opening = True
    for word, core in zip(raw, cores, strict=True):
        if not opening and core[:1].isupper() and core != "I" and len(core) <= _LONGEST_WORD:
            yield core.lower().removesuffix("'s")
        opening = word[-1] in _SENTENCE_END or word in ("-", "*", "+", "|")


def _identifiers(text: str, cores: list[str]) -> Iterator[str]:
    quoted = [match[1] for match in _CODE.finditer(text)]
    for one in (*quoted, *(core for core in cores if len(core) <= _LONGEST_WORD and _CODE_WORD.fullmatch(core))):
        if normal := " ".join(one.lower().split()).strip(".,;:").removesuffix("()"):
            yield normal


def _stands_in(name: str, text: str) -> bool:
    """True if the text has the name, and not only inside a longer word. In a piece of code only its words count, unless
    it has none."""
    if _NOT_WORDS.search(name):
        if not _WORDS.search(name):
            return name in text
        name, text = (f" {' '.join(_WORDS.findall(one))} " for one in (name, text))
    at = text.find(name)
    while at >= 0:
        before, after = text[at - 1 : at], text[at + len(name) : at + len(name) + 1]
        if not (before.isalnum() and name[0].isalnum()) and not (after.isalnum() and name[-1].isalnum()):
            return True
        at = text.find(name, at + len(name))
    return False
