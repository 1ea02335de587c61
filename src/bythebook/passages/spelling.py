"""Spelling: what a reader may write for a name of the book, and what the book writes for what a reader has misspelt.

An engine cuts `rclpy.spin_once` at its signs and drops "once", and takes `HTTPException` for one word. Names that are
made of words are therefore counted as a whole and by their parts, in the book and in the question alike.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from bythebook.passages.catalogue import Catalogue

_JOINED = re.compile(r"[^\W_]+(?:[._-]+[^\W_]+)+")
_HUMPED = re.compile(r"[^\W_]*[a-z][A-Z][^\W_]*|[A-Z]{2,}[a-z][^\W_]*")
_HUMP = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_SIGNS = re.compile(r"[\W_]+")
_SHORTEST_NAME, _LONGEST_NAME = 4, 64

_WORD = re.compile(r"[^\W\d_]+")
_ALONE = re.compile(r"(?<!\w)[^\W\d_]+(?!\w)")
_SHORTEST_MISSPELT = 5
"""A shorter word has too many neighbours."""
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_ENDINGS = ("s", "es", "d", "ed", "ing", "ly", "er")

_IN_BRACKETS = re.compile(r"((?:[\w'’]+[ -]){1,8})\(([A-Z][A-Za-z]{1,7})s?\)")
_SPELLED_OUT = re.compile(r"\b([A-Z][A-Za-z]{1,7}) \(((?:[\w'’]+[ -]){1,7}[\w'’]+)\)")
_FEW_WORDS = 7
_SMALL = frozenset("a an and by for from in of on or the to with".split())


def with_spellings(text: str) -> str:
    """The text, and after it the other spellings of the names in it."""
    # Most words are plain, which is seen at a glance.
    others = [word for word in text.split() if not (word.isalpha() and word[1:].islower())]
    found = dict.fromkeys(spelling for word in others for spelling in _spellings(word))
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


def vocabulary(text: str) -> set[str]:
    """The words of a text that a misspelt one may stand for."""
    return {word for word in _WORD.findall(text.lower()) if len(word) >= _SHORTEST_MISSPELT - 1}


def corrected(question: str, catalogue: Catalogue, *, known: Callable[[str], bool]) -> str:
    """The question with each word put right that is not `known` and differs by one slip from a word of the book."""

    def right(match: re.Match[str]) -> str:
        word = match[0].lower()
        if len(word) < _SHORTEST_MISSPELT or not word.isascii() or any(map(known, _forms(word))):
            return match[0]
        return catalogue.most_frequent(_one_slip_from(word)) or match[0]

    return _ALONE.sub(right, question)


def _forms(word: str) -> Iterator[str]:
    """The word, and what it may be a form of."""
    yield word
    yield from (word.removesuffix(ending) for ending in _ENDINGS if word.endswith(ending))


def _one_slip_from(word: str) -> list[str]:
    """Every word that becomes this one by one slip of the finger. Few slip at the first letter, and another last one
    is mostly another form of the word."""
    places = range(1, len(word) - 1)
    swapped = [word[:at] + word[at + 1] + word[at] + word[at + 2 :] for at in range(len(word) - 1)]
    left_out = [word[:at] + letter + word[at:] for at in (*places, len(word) - 1) for letter in _LETTERS]
    other = [word[:at] + letter + word[at + 1 :] for at in places for letter in _LETTERS]
    doubled = [word[:at] + word[at + 1 :] for at in places]
    return [*swapped, *left_out, *other, *doubled]


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


def spelled_out(question: str, known: Mapping[str, str]) -> str:
    """A short question with the long form beside a short one, or the other way round; empty where it has neither. One
    of many words says enough by itself."""
    words = set(_WORD.findall(question))
    if len(words) > _FEW_WORDS:
        return ""
    lower = question.lower()
    added = [long for short, long in known.items() if short in words and long.lower() not in lower]
    added += [short for short, long in known.items() if long.lower() in lower and short not in words]
    return f"{question} {' '.join(added)}" if added else ""
