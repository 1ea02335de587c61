"""References to one of several things: "the second source", "source 2", "the latter"."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bythebook.conversations.followups import StandaloneQuestion, lexicon
from bythebook.conversations.followups.lexicon import content_words, split_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bythebook.conversations.followups import Exchange

_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_CARDINALS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
# A book may be about references, or about the second source of an error.
_KINDS = r"source|citation|footnote|passage|excerpt|(?:reference|quote)(?=\s*(?:[^\w\s]|$))"
_NTH = re.compile(
    rf"\b(?:the\s+)?(?P<number>{'|'.join(_ORDINALS)}|last|\d{{1,2}}(?:st|nd|rd|th))\s+"
    rf"(?P<kind>{_KINDS}|one)\b(?!\s+(?:of|code|file)\b)",
    re.IGNORECASE,
)
_NUMBERED = re.compile(
    r"(?<!open )(?<!open-)\b(?:the\s+)?(?P<kind>source|citation|footnote|passage|excerpt|reference(?=\s*[#\[n]))"
    rf"\s*(?:number|no\.?|#)?\s*\[?(?P<number>\d{{1,2}}|{'|'.join(_CARDINALS)})\b\]?",
    re.IGNORECASE,
)
_MARK = re.compile(r"(?<!\w)\[(?P<number>\d{1,2})\](?P<kind>)")


@dataclass(frozen=True, slots=True)
class _Pointer:
    words: str
    number: int
    """Counts from 1; -1 is the last."""
    loose: bool
    """True if it may refer to something other than a source: "the second one"."""


def find_source_reference(question: str, history: Sequence[Exchange]) -> StandaloneQuestion | None:
    """The question about the source it refers to, if any. A source that was never shown makes it unclear."""
    sources = next((exchange.sources for exchange in reversed(history) if exchange.sources), ())
    pointer = _pointer(question)
    if not sources or not pointer or (pointer.loose and _alternatives(history)):
        return None
    number = len(sources) if pointer.number == -1 else pointer.number
    if number <= len(sources):
        text = question.replace(pointer.words, sources[number - 1], 1)
        whole = not content_words(split_words(question.replace(pointer.words, "", 1)))
        return StandaloneQuestion(text, depends=True, source=number, whole=whole, searches=(text,))
    return None if pointer.loose else StandaloneQuestion(question, depends=True, unclear=True, searches=(question,))


def find_alternative_reference(question: str, history: Sequence[Exchange]) -> tuple[str, ...]:
    """Terms of the former or the latter of the two things asked about last, if the question refers to one."""
    low = {word.lower() for word in split_words(question)}
    pointer = _pointer(question)
    number = pointer.number if pointer and pointer.loose else 1 if "former" in low else 2 if "latter" in low else None
    found = _alternatives(history)
    return found[0 if number == 1 else 1] if found and number in {-1, 1, 2} else ()


def _pointer(question: str) -> _Pointer | None:
    found = _NTH.search(question) or _NUMBERED.search(question) or _MARK.search(question)
    number = _number(found["number"].lower()) if found else 0
    # Only code counts from 0, and its [0] is not a source.
    return _Pointer(found.group(), number, loose=found["kind"].lower() == "one") if found and number else None


def _number(word: str) -> int:
    if word == "last":
        return -1
    for names in (_ORDINALS, _CARDINALS):
        if word in names:
            return names.index(word) + 1
    return int(word.rstrip("stndrh"))


def _alternatives(history: Sequence[Exchange]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Terms on both sides of the last "or", "and" or "than" of the latest question."""
    words = split_words(history[-1].question) if history else []
    places = [place for place, word in enumerate(words) if word.lower() in lexicon.ALTERNATIVES]
    if not places:
        return None
    former, latter = content_words(words[: places[-1]]), content_words(words[places[-1] :])
    return (former, latter) if former and latter else None
