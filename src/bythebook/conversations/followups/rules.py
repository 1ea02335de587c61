"""Follow-ups by rule: references to a source, pointers, fragments, corrections, and requests for an example."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto

from bythebook.conversations.followups import Exchange, StandaloneQuestion
from bythebook.conversations.followups.lexicon import (
    content_words,
    is_stop_word,
    is_word,
    phrase_list,
    split_words,
    stem,
    word_list,
)

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
    places = [place for place, word in enumerate(words) if word.lower() in word_list("alternatives")]
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


LONGEST_WHOLE = 16
"""The maximum number of words of the earlier question that a fragment completes."""

_OPENING = re.compile(
    r"^(?:(?:and|or|but|also|so|then|ok|okay|thanks|thank you|great|good|nice|cool|well|please|yes|oh|hm+|ah)\b"
    r"[\s,.!]+)*",
    re.IGNORECASE,
)
_CORRECTION = re.compile(
    r"^(?:(?:(?:no|nope|nah|sorry|wait|actually|excuse me|not that|rather)\b[\s,.!:;–-]*)*(?:what\s+)?"
    r"i(?:\s+actually|\s+really)?\s+(?P<meant>meant|mean|was asking|was talking|am asking|asked|am talking)\b"
    r"(?:\s+(?:about|for|was|is))?"
    r"|(?:no|nope|nah|sorry|wait|rather|not that)(?:\s*[,.!:;–-]+|\s+(?=(?:the|in|on|for|with)\b))"
    r"|not\s+(?:the|for|in|on|with|about)\b[^,;]+[,;]\s*(?:but\b)?)[\s,:]*",
    re.IGNORECASE,
)
_OF_AN_EXAMPLE = frozenset("in with using without".split())
_ABOUT_AN_EXAMPLE = frozenset("mean means does did why when where which explain work works error wrong run".split())
"""Words of questions about an example that was shown."""
_ADDING = frozenset("and or but".split())
_CHANGING = re.compile(
    r"\b(?:by the way|btw|(?:chang\w+|switch\w+|different|another|new) (?:\w+ ){0,4}?(?:subject|topic|question))\b"
)
"""Words that announce another subject."""
_COMPARED = re.compile(r"(?P<before>.*)\b(?:differences?|differ|different|compared?) (?:with|from|to)\b(?P<after>.*)")
_ATTACHED = frozenset("for in on with without only just not".split())
"""Words that begin a fragment even without a question mark. "Using proxies" may be a heading."""
_AUXILIARIES = frozenset("do does did is are was were can could will would should must may might has have".split())
_BEFORE_SUBJECT = _AUXILIARIES - frozenset("is are was were has have".split())
_CHOOSING = frozenset("which this that the other another".split())
_BEFORE_GERUND = frozenset("without before after by when while".split())
_OWN_PARTS = frozenset("its their itself themselves".split())


class Dependence(Enum):
    """How much a question depends on the conversation."""

    FIRMLY = auto()
    """It has a pronoun, omits its subject or continues the previous question."""
    EITHER = auto()
    """It names no subject and may be about the book as a whole: "How do I get started?"."""
    SOFTLY = auto()
    """It names a subject, but is no whole question, or continues with "and": "the client?", "And what is a proxy?"."""
    NOT = auto()
    """It stands alone."""


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
        dependence = classify_dependence(words, self.terms)
        if self.named and dependence is Dependence.FIRMLY:
            return _Subject(self.named, own or self.latest)
        if dependence is Dependence.EITHER:
            own = tuple(word for word in words if word.lower() in word_list("about_the_book"))
        return _Subject(own) if own else self


def make_standalone(question: str, history: Sequence[Exchange]) -> StandaloneQuestion:
    """Rewrite `question` with the context of these exchanges, oldest first. Those without an answer do not count."""
    words = split_words(question)
    if all(word.lower() in word_list("courtesy") for word in words if is_word(word)):
        return StandaloneQuestion(question, unclear=True, searches=(question,))
    if pointed := find_source_reference(question, history):
        return pointed
    answered = [exchange for exchange in history[-REMEMBERED:] if exchange.answered]
    if answered and (found := _example(words, answered) or _fragment(question, answered)):
        return found
    return _lean(question, answered)


def _lean(question: str, history: Sequence[Exchange]) -> StandaloneQuestion:
    """The question with the terms of the subject that it lacks."""
    words = split_words(question)
    alone = StandaloneQuestion(question, searches=(question,))
    subject = _subject(history)
    leaning = classify_dependence(words, subject)
    if leaning is Dependence.NOT:
        return alone
    carried = _carry_over(words, find_alternative_reference(question, history) or subject)
    together = f"{question} {' '.join(carried)}".strip()
    own = content_words(words)
    searches = tuple(dict.fromkeys((question, together) if own else (together,)))
    if leaning is Dependence.SOFTLY:
        return StandaloneQuestion(question, searches=searches)
    if leaning is Dependence.EITHER:
        other = StandaloneQuestion(together, depends=True, searches=searches)
        return replace(alone, alternative=other if carried else None)
    unclear = not own and not carried
    return StandaloneQuestion(together, depends=bool(carried) or unclear, unclear=unclear, searches=searches)


def classify_dependence(words: Sequence[str], subject: Iterable[str]) -> Dependence:
    """Classify how a question with these words depends on a conversation about this subject."""
    low = [word.lower() for word in words if is_word(word)]
    own = content_words(words)
    if _has_pointer(words):
        return Dependence.FIRMLY
    if word_list("elsewhere").intersection(low):
        return Dependence.NOT
    if low and _continues(words, own):
        return Dependence.FIRMLY
    if not own:
        return Dependence.EITHER if word_list("about_the_book").intersection(low) else Dependence.FIRMLY
    if _CHANGING.search(" ".join(low)) or not _is_loose(words, own):
        return Dependence.NOT
    # The question repeats the subject and so names it itself.
    again = {stem(term) for term in subject}.intersection(stem(term) for term in own)
    return Dependence.NOT if again else Dependence.SOFTLY


def _is_loose(words: Sequence[str], own: Sequence[str]) -> bool:
    """True if the question is no whole question of its own. A bare name without a question mark is a keyword search."""
    low = [word.lower() for word in words if is_word(word)]
    attached = low[0] in _ADDING or low[-1] == "here" if _is_whole(low) else words[-1] == "?"
    return attached and len(own) <= FEW


def _continues(words: Sequence[str], own: Sequence[str]) -> bool:
    """True if the question is attached to the previous one: by its opening, as a correction, or as a fragment."""
    low = [word.lower() for word in words if is_word(word)]
    complete = _is_whole(low)
    corrects = _CORRECTION.match(" ".join(words))
    if (corrects and (not complete or corrects["meant"])) or _compares_with_it(low):
        return True
    joined = next((place for place, word in enumerate(low) if word not in word_list("joining")), 0)
    for opening in phrase_list("continued"):
        # "What else did Gauss do in 1801?" names its subject.
        if tuple(low[joined : joined + len(opening)]) == opening:
            return len(own) <= (FEW if "about" in opening else 1)
    attached = joined > 0 or _is_attached(words) or not word_list("continuing").isdisjoint(low)
    # "So how do I install it?" is attached by nothing but its pronoun.
    return attached and not complete and len(own) <= FEW


def _is_whole(low: Sequence[str]) -> bool:
    """True for a question or a request with a verb, false for a fragment or a name."""
    first = next((word for word in low if word not in word_list("joining") | word_list("courtesy")), "")
    return first in word_list("requests") or not word_list("finite").isdisjoint(low)


def _compares_with_it(low: Sequence[str]) -> bool:
    """True for "What is the difference to a list?", which names only one of the two things."""
    found = _COMPARED.match(" ".join(low))
    return found is not None and not content_words(split_words(found["before"])) and bool(found["after"])


def _is_attached(words: Sequence[str]) -> bool:
    """True if the first word attaches the others to an earlier question: "for a single field?"."""
    first = words[0].lower()
    return first in _ATTACHED or (first in word_list("fragment") and words[-1] == "?")


def _fragment(question: str, history: Sequence[Exchange]) -> StandaloneQuestion | None:
    """The latest whole question, completed by this fragment or correction: "for one field?", "I meant the client"."""
    said = _read_fragment(question)
    whole = next((number for number, each in _latest(history) if not _read_fragment(each.question)), None)
    if not said or whole is None:
        return None
    before = make_standalone(history[whole].question, history[:whole]).text.rstrip("?.! ")
    if len(before.split()) > LONGEST_WHOLE:
        return None
    text = f"{before} {said}?"
    return StandaloneQuestion(text, depends=True, searches=(text,))


def _latest(history: Sequence[Exchange]) -> Iterable[tuple[int, Exchange]]:
    """The exchanges with their positions, latest first."""
    return reversed(list(enumerate(history)))


def _read_fragment(question: str) -> str:
    """What a fragment or a correction adds to the question before it. Empty for a question that is complete."""
    opened = _OPENING.sub("", question, count=1)
    text = _CORRECTION.sub("", opened, count=1)
    words = split_words(text)
    own = content_words(words)
    if not own or len(own) > FEW or _has_pointer(words) or any(word.lower() in word_list("finite") for word in words):
        return ""
    return text.strip(" .?!,") if text != opened or _is_attached(words) else ""


def _example(words: Sequence[str], history: Sequence[Exchange]) -> StandaloneQuestion | None:
    """A request for an example of what was answered before: "show me an example", "code please"."""
    low = [word.lower() for word in words if is_word(word)]
    place = next((place for place, word in enumerate(low) if word in word_list("examples")), None)
    if place is None or not _ABOUT_AN_EXAMPLE.isdisjoint(low):
        return None
    named = [word for word in content_words(low) if word not in word_list("of_examples") | word_list("examples")]
    after = low[place + 1 :]
    if after[:1] == ["of"] and len(after) > 2:
        return None
    added = " ".join(after) if named and after[:1] and after[0] in _OF_AN_EXAMPLE else ""
    if named and not added:
        return None
    subject = _phrase(history) or " ".join(_subject(history))
    if not subject:
        return None
    kind = "code example" if word_list("examples").intersection(low) - {"example", "examples"} else "example"
    text = f"{kind} of {subject} {added}".strip()
    return StandaloneQuestion(text, depends=True, searches=(text,), wants_code=True)


def _phrase(history: Sequence[Exchange]) -> str:
    """The subject of the latest question in its own words, if it names it: "exclude fields from the output"."""
    number, latest = next(iter(_latest(history)))
    words = split_words(make_standalone(latest.question, history[:number]).text)
    named = [place for place, word in enumerate(words) if is_word(word) and not is_stop_word(word.removesuffix("'s"))]
    found = words[named[0] : named[-1] + 1] if named else []
    return " ".join(filter(is_word, found)) if len(found) <= LONGEST_WHOLE else ""


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
    own = {stem(term) for term in words if is_word(term)}
    return tuple({stem(term): term for term in subject if stem(term) not in own}.values())


def _has_pointer(words: Sequence[str]) -> bool:
    """True if a pronoun of the question refers outside of it."""
    low = [word.lower() for word in words]
    if any(_occurs(phrase, low) for phrase in phrase_list("answered_before")):
        return True
    named = inside = False
    for place, word in enumerate(low):
        if word in word_list("clause") or not is_word(word) or _begins_gerund(low, place):
            # The referent of "it" after this word may be named earlier in the question.
            inside = inside or named
        elif word in word_list("pointing"):
            within = word in word_list("pointing_inside") and (
                inside or (word in _OWN_PARTS and _has_noun_subject(low))
            )
            if _is_pronoun_use(low, place) and not within:
                return True
        else:
            named = named or not is_stop_word(word)
    return False


def _occurs(phrase: Sequence[str], low: Sequence[str]) -> bool:
    size = len(phrase)
    return any(tuple(low[place : place + size]) == tuple(phrase) for place in range(len(low) - size + 1))


def _begins_gerund(low: Sequence[str], place: int) -> bool:
    """True for "before" in "cache a response before returning it"."""
    return low[place] in _BEFORE_GERUND and any(word.endswith("ing") for word in low[place + 1 : place + 2])


def _has_noun_subject(low: Sequence[str]) -> bool:
    """True if a noun follows the auxiliary: "does a blueprint register its routes"."""
    verb = next((place for place, word in enumerate(low) if word in _BEFORE_SUBJECT), None)
    after = [word for word in low[verb + 1 :] if word not in {"a", "an", "the"}][:1] if verb is not None else []
    return any(is_word(word) and not is_stop_word(word) for word in after)


def _is_pronoun_use(low: Sequence[str], place: int) -> bool:
    """True if the word is a referring pronoun here: "that" and "one" often are not, and "it" may be a dummy subject."""
    before = low[place - 1] if place else "."
    rest = low[place + 1 :]
    ends = not rest or not is_word(rest[0])
    match low[place]:
        case "that":
            defined = not {"which", "that", "who"}.isdisjoint(rest)
            return not defined and _points_with_that(low[:place], ends=ends)
        case "it" | "it's":
            return not (
                word_list("after_empty_it").intersection(rest[:3]) and {"to", "that", "if", "when"}.intersection(rest)
            )
        case "one":
            follows = not ends and (rest[0] == "of" or not is_stop_word(rest[0]))
            return before in _CHOOSING or (
                not follows and before not in _AUXILIARIES and rest[:1] not in (["more"], ["time"])
            )
        case "this" | "these":
            quoted = ":" in rest[:3] and not ends
            return not quoted and not (rest and rest[0] in word_list("the_book"))
        case "both":
            return "and" not in rest
    return True


def _points_with_that(before: Sequence[str], *, ends: bool) -> bool:
    """True if "that" after these words is a pronoun or a determiner, not a conjunction."""
    last = before[-1] if before else "."
    if last in {"know", "mean", "so", "but"}:
        return ends
    if last in word_list("acts"):
        # "How do I use that option?", but not "a call that returns".
        return ends or len(before) < 2 or before[-2] in word_list("willing")
    return last in word_list("before_that") or last in {"if", "when"} or not is_word(last) or ends
