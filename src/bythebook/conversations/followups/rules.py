"""References to one of several things: "the second source", "source 2", "the latter"."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from bythebook.conversations.followups import Exchange, StandaloneQuestion, lexicon
from bythebook.conversations.followups.lexicon import content_words, is_stop_word, is_word, split_words, stem

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


REMEMBERED = 10
"""How many exchanges back a question may refer."""
SUBJECT, LATEST = 4, 2
"""How many terms are added from the question that named the subject, and from the latest question.

More terms retrieve passages that answered the earlier questions instead of this one.
"""
FEW = 3
"""A question with more content words than this is understood without context."""


class Dependence(Enum):
    """How much a question depends on the conversation."""

    FIRMLY = auto()
    """It has a pronoun, omits its subject or continues the previous question."""
    SOFTLY = auto()
    """It can be understood alone, but may have the same subject."""
    NOT = auto()
    """It names its subject, or a subject new to the conversation."""


@dataclass(frozen=True, slots=True)
class _Subject:
    """The subject of a conversation: the terms that named it, and the terms of the latest question about it."""

    named: tuple[str, ...] = ()
    latest: tuple[str, ...] = ()

    @property
    def terms(self) -> tuple[str, ...]:
        return self.named[:SUBJECT] + self.latest[:LATEST]

    def after(self, question: str) -> _Subject:
        """The subject after this question."""
        words = split_words(question)
        own = content_words(words)
        if self.named and classify_dependence(words, self.terms) is Dependence.FIRMLY:
            return _Subject(self.named, own or self.latest)
        return _Subject(own) if own else self


def make_standalone(question: str, history: Sequence[Exchange]) -> StandaloneQuestion:
    """Rewrite `question` with the context of these exchanges, oldest first."""
    words = split_words(question)
    if all(word.lower() in lexicon.COURTESY for word in words if is_word(word)):
        return StandaloneQuestion(question, unclear=True, searches=(question,))
    if pointed := find_source_reference(question, history):
        return pointed
    subject = _subject(history)
    leaning = classify_dependence(words, subject)
    if leaning is Dependence.NOT:
        return StandaloneQuestion(question, searches=(question,))
    carried = _carry_over(words, find_alternative_reference(question, history) or subject)
    together = f"{question} {' '.join(carried)}".strip()
    own = content_words(words)
    searches = tuple(dict.fromkeys((question, together) if own else (together,)))
    if leaning is Dependence.SOFTLY:
        return StandaloneQuestion(question, searches=searches)
    unclear = not own and not carried
    return StandaloneQuestion(together, depends=bool(carried) or unclear, unclear=unclear, searches=searches)


def classify_dependence(words: Sequence[str], subject: Iterable[str]) -> Dependence:
    """Classify how a question with these words depends on a conversation about this subject."""
    low = [word.lower() for word in words if is_word(word)]
    own = content_words(words)
    if _has_pointer(words):
        return Dependence.FIRMLY
    if lexicon.ELSEWHERE.intersection(low):
        return Dependence.NOT
    opens = any(tuple(low[: len(opening)]) == opening for opening in lexicon.OPENINGS)
    if not own or (opens and len(own) <= FEW):
        return Dependence.FIRMLY
    # The question repeats the subject and so names it itself.
    again = {stem(term) for term in subject}.intersection(stem(term) for term in own)
    return Dependence.NOT if again else Dependence.SOFTLY


def classify_fragment(question: str) -> bool:
    """Classify a question without any conversation."""
    words = split_words(question)
    return _has_pointer(words) or not content_words(words)


def _subject(history: Sequence[Exchange]) -> tuple[str, ...]:
    """The subject of the conversation; if no question names one, the subject of the latest answer's first source."""
    subject = _Subject()
    for exchange in history[-REMEMBERED:]:
        subject = subject.after(exchange.question)
    titles = next((exchange.sources for exchange in reversed(history) if exchange.sources), ("",))
    return subject.terms or content_words(split_words(titles[0]))[:SUBJECT]


def _carry_over(words: Sequence[str], subject: Iterable[str]) -> tuple[str, ...]:
    """Terms of the subject that the question lacks, without duplicates."""
    own = {stem(term) for term in content_words(words)}
    return tuple(term for term in content_words([*subject]) if stem(term) not in own)


def _has_pointer(words: Sequence[str]) -> bool:
    """True if a pronoun of the question refers outside of it."""
    low = [word.lower() for word in words]
    named = inside = False
    for place, word in enumerate(low):
        if word in lexicon.CLAUSE or not is_word(word):
            # The referent of "it" after this word may be named earlier in the question.
            inside = inside or named
        elif word in lexicon.POINTING:
            if _is_pronoun_use(low, place) and not (inside and word in lexicon.POINTING_INSIDE):
                return True
        else:
            named = named or not is_stop_word(word)
    return False


def _is_pronoun_use(low: Sequence[str], place: int) -> bool:
    """True if the word is a referring pronoun here: "that" and "one" often are not, and "it" may be a dummy subject."""
    before = low[place - 1] if place else "."
    rest = low[place + 1 :]
    match low[place]:
        case "that":
            return before in lexicon.BEFORE_THAT or not is_word(before) or not rest or not is_word(rest[0])
        case "it" | "it's":
            return not (lexicon.AFTER_EMPTY_IT.intersection(rest[:3]) and {"to", "that", "if"}.intersection(rest))
        case "one":
            return not rest or rest[0] not in {"of", "more", "day", "time", "month", "year"}
    return True
