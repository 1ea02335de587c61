"""Spelling: what a reader may write for a name of the book, and what the book writes for what a reader has misspelt.

An engine cuts `rclpy.spin_once` at its signs and drops "once", and takes `HTTPException` for one word. Names that are
made of words are therefore counted as a whole and by their parts, in the book and in the question alike.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bythebook.index.terms import SHORTEST_MISSPELT, WORD

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bythebook.index.catalog import Catalogue

_LONGEST_MISSPELT = 24
"""Nobody writes a longer word by hand."""
_MISSPELT = re.compile(rf"(?<!\w)[A-Za-z]{{{SHORTEST_MISSPELT},{_LONGEST_MISSPELT}}}(?!\w)")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_ENDINGS = ("s", "es", "d", "ed", "ing", "ly", "er")

_FEW_WORDS = 7


def corrected(question: str, catalogue: Catalogue, *, known: Callable[[str], bool]) -> str:
    """The question with each word put right that is not `known` and differs by one slip from a word of the book."""
    unknown = {word for word in _MISSPELT.findall(question) if not _known_in_a_form(word.lower(), known)}
    if not unknown:
        return question
    right = {word: catalogue.most_frequent(_one_slip_from(word.lower())) or word for word in unknown}
    return _MISSPELT.sub(lambda match: right.get(match[0], match[0]), question)


def _known_in_a_form(word: str, known: Callable[[str], bool]) -> bool:
    """Whether the word is known, or what it may be a form of."""
    return known(word) or any(known(word.removesuffix(ending)) for ending in _ENDINGS if word.endswith(ending))


def _one_slip_from(word: str) -> list[str]:
    """Every word that becomes this one by one slip of the finger. Few slip at the first letter, and another last one
    is mostly another form of the word."""
    places = range(1, len(word) - 1)
    swapped = [word[:at] + word[at + 1] + word[at] + word[at + 2 :] for at in range(len(word) - 1)]
    left_out = [word[:at] + letter + word[at:] for at in (*places, len(word) - 1) for letter in _LETTERS]
    other = [word[:at] + letter + word[at + 1 :] for at in places for letter in _LETTERS]
    doubled = [word[:at] + word[at + 1 :] for at in places]
    return [*swapped, *left_out, *other, *doubled]


def spelled_out(question: str, known: Mapping[str, str]) -> str:
    """A short question with the long form beside a short one, or the other way round; empty where it has neither. One
    of many words says enough by itself."""
    words = set(WORD.findall(question))
    if len(words) > _FEW_WORDS:
        return ""
    lower = question.lower()
    added = [long for short, long in known.items() if short in words and long.lower() not in lower]
    added += [short for short, long in known.items() if long.lower() in lower and short not in words]
    return f"{question} {' '.join(added)}" if added else ""
