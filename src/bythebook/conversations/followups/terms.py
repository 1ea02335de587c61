"""The words of a question, and those of them that say what it is about."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bythebook.conversations.followups import lexicon

if TYPE_CHECKING:
    from collections.abc import Sequence

_WORD = re.compile(r"[^\W_]+(?:[-.'_+#&/][^\W_]+)*[+#]*|[.;:?!,]")


def split(text: str) -> list[str]:
    """The words of a text and the marks between them."""
    return _WORD.findall(text.replace("’", "'"))


def is_word(word: str) -> bool:
    """Whether it is a word, and not a mark."""
    return word[0].isalnum()


def specific(words: Sequence[str]) -> tuple[str, ...]:
    """The words that say what is asked about, as they are written, each once."""
    found: dict[str, str] = {}
    for word in words:
        term = word.removesuffix("'s")
        if is_word(term) and not says_nothing(term):
            found.setdefault(stem(term), term)
    return tuple(found.values())


def says_nothing(word: str) -> bool:
    """Whether the word could stand in a question about anything."""
    lists = (lexicon.FUNCTION, lexicon.COURTESY, lexicon.POINTING, lexicon.CONTINUING, lexicon.RELATIONAL)
    return any(word.lower() in each for each in lists)


def stem(term: str) -> str:
    """The term without its ending, so that "clusters" is "cluster" again."""
    low = term.lower()
    ending = next((end for end in ("ing", "ed", "es", "s") if low.endswith(end) and len(low) > len(end) + 3), "")
    return low.removesuffix(ending)
