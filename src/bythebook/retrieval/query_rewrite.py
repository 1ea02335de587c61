"""Query rewriting: corrects spelling with the vocabulary of the book and adds the other form of its abbreviations."""

import re
from collections.abc import Callable, Mapping

from bythebook.index.catalog import Catalog
from bythebook.index.terms import MIN_CORRECTED_LENGTH, WORD

_MAX_CORRECTED_LENGTH = 24
"""Longer words are not typed by hand."""
_CANDIDATE_WORD = re.compile(rf"(?<!\w)[A-Za-z]{{{MIN_CORRECTED_LENGTH},{_MAX_CORRECTED_LENGTH}}}(?!\w)")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_ENDINGS = ("s", "es", "d", "ed", "ing", "ly", "er")
_MAX_EXPANDED_WORDS = 7


def correct_spelling(question: str, catalog: Catalog, *, known: Callable[[str], bool]) -> str:
    """Replace each word that is not `known` and is one typing error away from a word of the book."""
    unknown = {word for word in _CANDIDATE_WORD.findall(question) if not _is_inflection_known(word.lower(), known)}
    if not unknown:
        return question
    corrections = {word: catalog.most_frequent(_edits(word.lower())) or word for word in unknown}
    return _CANDIDATE_WORD.sub(lambda match: corrections.get(match[0], match[0]), question)


def _is_inflection_known(word: str, known: Callable[[str], bool]) -> bool:
    """True if the word is known, or a stem that it may be an inflection of."""
    return known(word) or any(known(word.removesuffix(ending)) for ending in _ENDINGS if word.endswith(ending))


def _edits(word: str) -> list[str]:
    """Every word that is one typing error away: two letters swapped, or one omitted, replaced or doubled.

    The first letter is rarely wrong, and a different last letter is usually an inflection. In the shortest words, only
    swapped letters are errors for sure.
    """
    positions = range(1, len(word) - 1)
    swapped = [word[:at] + word[at + 1] + word[at] + word[at + 2 :] for at in range(len(word) - 1)]
    omitted = [word[:at] + letter + word[at:] for at in (*positions, len(word) - 1) for letter in _LETTERS]
    replaced = [word[:at] + letter + word[at + 1 :] for at in positions for letter in _LETTERS]
    doubled = [word[:at] + word[at + 1 :] for at in positions]
    return swapped if len(word) == MIN_CORRECTED_LENGTH else [*swapped, *omitted, *replaced, *doubled]


def expand_abbreviations(question: str, abbreviations: Mapping[str, str]) -> str:
    """A short question with the long form of its abbreviations appended, and vice versa; empty if it has neither.

    Longer questions have enough other words.
    """
    words = set(WORD.findall(question))
    if len(words) > _MAX_EXPANDED_WORDS:
        return ""
    lower = question.lower()
    added = [long for short, long in abbreviations.items() if short in words and long.lower() not in lower]
    added += [short for short, long in abbreviations.items() if long.lower() in lower and short not in words]
    return f"{question} {' '.join(added)}" if added else ""
