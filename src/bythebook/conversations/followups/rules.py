"""Making a question stand alone without a model: by the words it leans on, and by what was asked before it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

from bythebook.conversations.followups import Standalone, lexicon
from bythebook.conversations.followups.references import pointed_alternative, pointed_source
from bythebook.conversations.followups.terms import is_word, says_nothing, specific, split, stem

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bythebook.conversations.followups import Exchange

REMEMBERED = 10
"""How many exchanges back a question can lean."""
SUBJECT, LATEST = 4, 2
"""How many terms are carried of the question that named the subject, and of the one asked last.

More of them draw passages that answered the earlier questions instead of this one.
"""
FEW = 3
"""A question with more terms of its own is understood, however it opens."""


class Lean(Enum):
    """How a question leans on the conversation before it."""

    FIRMLY = auto()
    """It has a word that stands for something said before, leaves out what it is about, or takes up what was asked."""
    SOFTLY = auto()
    """It can be understood alone, and may still be about the same subject."""
    NOT = auto()
    """It names its subject, or one that is not of this conversation."""


@dataclass(frozen=True, slots=True)
class _Subject:
    """What a conversation is about: the terms that named it, and those of the latest question about it."""

    named: tuple[str, ...] = ()
    latest: tuple[str, ...] = ()

    @property
    def terms(self) -> tuple[str, ...]:
        return self.named[:SUBJECT] + self.latest[:LATEST]

    def after(self, question: str) -> _Subject:
        """What it is about once this was asked."""
        words = split(question)
        own = specific(words)
        if self.named and lean(words, self.terms) is Lean.FIRMLY:
            return _Subject(self.named, own or self.latest)
        return _Subject(own) if own else self


def standalone(question: str, history: Sequence[Exchange]) -> Standalone:
    """What `question` asks after these exchanges, oldest first."""
    words = split(question)
    if all(word.lower() in lexicon.COURTESY for word in words if is_word(word)):
        return Standalone(question, unclear=True, searches=(question,))
    if pointed := pointed_source(question, history):
        return pointed
    subject = _subject(history)
    leaning = lean(words, subject)
    if leaning is Lean.NOT:
        return Standalone(question, searches=(question,))
    carried = _carried(words, pointed_alternative(question, history) or subject)
    together = f"{question} {' '.join(carried)}".strip()
    own = specific(words)
    searches = tuple(dict.fromkeys((question, together) if own else (together,)))
    if leaning is Lean.SOFTLY:
        return Standalone(question, searches=searches)
    unclear = not own and not carried
    return Standalone(together, depends=bool(carried) or unclear, unclear=unclear, searches=searches)


def lean(words: Sequence[str], subject: Iterable[str]) -> Lean:
    """How a question with these words leans on a conversation about this subject."""
    low = [word.lower() for word in words if is_word(word)]
    own = specific(words)
    if _points(words):
        return Lean.FIRMLY
    if lexicon.ELSEWHERE.intersection(low):
        return Lean.NOT
    opens = any(tuple(low[: len(opening)]) == opening for opening in lexicon.OPENINGS)
    if not own or (opens and len(own) <= FEW):
        return Lean.FIRMLY
    # A question that names its subject again has said what it is about.
    again = {stem(term) for term in subject}.intersection(stem(term) for term in own)
    return Lean.NOT if again else Lean.SOFTLY


def lean_by_itself(question: str) -> bool:
    """Whether a question cannot be understood alone, whatever was asked before it."""
    words = split(question)
    return _points(words) or not specific(words)


def _subject(history: Sequence[Exchange]) -> tuple[str, ...]:
    """What was talked about; if no question says, what the first source of the latest answer is about."""
    subject = _Subject()
    for exchange in history[-REMEMBERED:]:
        subject = subject.after(exchange.question)
    titles = next((exchange.sources for exchange in reversed(history) if exchange.sources), ("",))
    return subject.terms or specific(split(titles[0]))[:SUBJECT]


def _carried(words: Sequence[str], subject: Iterable[str]) -> tuple[str, ...]:
    """The terms of the subject that the question does not have, each once."""
    own = {stem(term) for term in specific(words)}
    return tuple(term for term in specific([*subject]) if stem(term) not in own)


def _points(words: Sequence[str]) -> bool:
    """Whether a word of the question stands for something outside of it."""
    low = [word.lower() for word in words]
    named = inside = False
    for place, word in enumerate(low):
        if word in lexicon.CLAUSE or not is_word(word):
            # What "it" stands for after this may be named before it.
            inside = inside or named
        elif word in lexicon.POINTING:
            if _stands_for_something(low, place) and not (inside and word in lexicon.POINTING_INSIDE):
                return True
        else:
            named = named or not says_nothing(word)
    return False


def _stands_for_something(low: Sequence[str], place: int) -> bool:
    """Whether the word is a pronoun here: "that" and "one" often are not, and "it" may stand for nothing."""
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
