"""The words of a question: tokens, content words, and the English word lists that identify a follow-up.

`lexicon.json` has the lists with their meanings. Few of the words occur in other languages, whose questions stay
unchanged.
"""

import json
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

_LISTS = Path(__file__).with_suffix(".json")
_NO_SUBJECT = ("function", "courtesy", "pointing", "continuing", "relational")
"""The lists of words that could occur in a question about any subject."""
_WORD = re.compile(r"[^\W_]+(?:[-.'_+#&/][^\W_]+)*[+#]*|[.;:?!,]")


@cache
def word_list(name: str) -> frozenset[str]:
    """The list of words with this name."""
    return frozenset(" ".join(_lists()[name]["words"]).split())


@cache
def phrase_list(name: str) -> tuple[tuple[str, ...], ...]:
    """The list of phrases with this name, each as its words."""
    return tuple(tuple(phrase.split()) for phrase in _lists()[name]["phrases"])


@cache
def _lists() -> dict[str, Any]:
    lists: dict[str, Any] = json.loads(_LISTS.read_bytes())
    return lists


@cache
def _stop_words() -> frozenset[str]:
    return frozenset().union(*map(word_list, _NO_SUBJECT))


def split_words(text: str) -> list[str]:
    """Words and punctuation marks of a text."""
    return _WORD.findall(text.replace("’", "'"))


def is_word(word: str) -> bool:
    """True for a word, false for a punctuation mark."""
    return word[0].isalnum()


def content_words(words: Sequence[str]) -> tuple[str, ...]:
    """Words that name the subject, as written, without duplicates."""
    found: dict[str, str] = {}
    for word in words:
        term = word.removesuffix("'s")
        if is_word(term) and not is_stop_word(term):
            found.setdefault(stem(term), term)
    return tuple(found.values())


def is_stop_word(word: str) -> bool:
    """True if the word could occur in a question about any subject."""
    return word.lower() in _stop_words()


def stem(term: str) -> str:
    """Strip a plural ending: "clusters" becomes "cluster"."""
    low = term.lower()
    ending = next((end for end in ("ing", "ed", "es", "s") if low.endswith(end) and len(low) > len(end) + 3), "")
    return low.removesuffix(ending)
