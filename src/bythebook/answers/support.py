"""Support: which words of the passages bear out a sentence, and how well.

Read by words first, which costs next to nothing; by meaning only where the words leave it open.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

from bythebook.answers.claim_details import combined, details
from bythebook.chunking.spans import UnitKind, units
from bythebook.index.terms import share

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from bythebook.answers.claim_details import Details
    from bythebook.embeddings import Embedder, Vector
    from bythebook.index.terms import Words
    from bythebook.retrieval import RetrievalResult

CUTOFF = 0.55
"""The least confidence at which a sentence counts as supported. A little above even: a false proof is worse than a
sentence lost."""
READ_CLOSELY = 24
"""How many texts are compared by meaning in one answer, sentences and quotes together."""
_LONGEST_PAIR = 600
_PAIR_MUST_ADD = 0.08
_SECOND_MUST_ADD = 0.12
"""What a longer quote, and a quote from elsewhere, must add to the part of the sentence that is found."""
_SAME_WORDS = 0.7
"""From here on sentence and quote are about the same thing, so that a "not" in only one of them is a contradiction."""
_COSINES = (0.3, 0.95)
"""Between these lies the cosine of nearly every sentence and its quotes."""
_NAMED = 0.05
"""The head start of a passage the model named itself."""


class Lexicon(Protocol):
    """How a book weighs its words. An edition is one."""

    @property
    def words(self) -> Words: ...

    def rarities(self, terms: Iterable[int]) -> dict[int, float]: ...


@dataclass(frozen=True, slots=True)
class Quote:
    """A stretch of a passage: `result.text[start:end]`."""

    result: RetrievalResult
    start: int
    end: int
    terms: frozenset[int]
    """Of the quote and of the headings it stands under."""
    paired: bool
    """Whether it is two units, which is more to read than one."""

    @property
    def text(self) -> str:
        return self.result.text[self.start : self.end]


@dataclass(frozen=True, slots=True)
class Features:
    """What the decision rests on, each from 0 to 1."""

    quoted: float
    """How much of the sentence, by the rarity of its words, stands in its quotes."""
    cosine: float
    """Of the sentence and its quotes."""
    numbers_missing: float
    """The part of its numbers that no passage has."""
    names_missing: float
    turned: float
    """1 when one of sentence and quotes denies what the other says, or says the opposite of one of its words."""


@dataclass(frozen=True, slots=True)
class Support:
    """What was found for one sentence."""

    sentence: str
    quotes: tuple[Quote, ...]
    features: Features
    objection: str
    """Why no likeness could make up for it; empty when nothing stands against the sentence."""
    checked: tuple[str, ...] = ()
    """The sentence's details, each with whether the passages have it."""

    @property
    def confidence(self) -> float:
        """How sure it is that the quotes bear the sentence out. An objection halves it, which is always too little."""
        return confidence(self.features) * (0.5 if self.objection else 1.0)

    @property
    def holds(self) -> bool:
        return bool(self.quotes) and self.confidence >= CUTOFF

    @property
    def open(self) -> bool:
        """Whether the meaning can still decide it: the words have neither proven it nor ruled it out."""
        if self.objection or not self.quotes:
            return False
        least, most = (confidence(replace(self.features, cosine=cosine)) for cosine in _COSINES)
        return least < CUTOFF <= most

    @property
    def quoted(self) -> str:
        """The quotes as one text."""
        return " ".join(quote.text for quote in self.quotes)


# Fitted with `python -m bench.fitting proof` on wice, fool_me_twice and scifact, every set and both answers
# weighing the same. Fitted on two of them, the rule ranks the third with an AUROC of .81, .64 and .75.
BIAS = -1.66
WEIGHTS = Features(quoted=2.4, cosine=1.18, numbers_missing=-1.24, names_missing=-0.52, turned=-0.71)


def confidence(features: Features) -> float:
    """The logistic rule."""
    total = BIAS + sum(getattr(WEIGHTS, name) * getattr(features, name) for name in Features.__slots__)
    return 1 / (1 + math.exp(-total))


class Desk:
    """The passages of one answer laid open: every stretch that may be quoted, with its words."""

    def __init__(self, results: Sequence[RetrievalResult], lexicon: Lexicon) -> None:
        self._lexicon = lexicon
        self._stretches = [stretch for result in results for stretch in _stretches(result, lexicon.words)]
        self._details = combined(details(part) for result in results for part in (*_above(result), result.text))

    def look_up(self, sentence: str, *, named: Collection[int]) -> Support:
        """The quotes that bear out the sentence best by its words; `named` are the positions the model gave for it."""
        wanted = self._lexicon.rarities(self._lexicon.words.terms(sentence))
        quotes = self._quotes(wanted, named)
        quoted = share(wanted, frozenset[int]().union(*(quote.terms for quote in quotes)))
        said = details(sentence)
        there = combined(details(part) for quote in quotes for part in (*_above(quote.result), quote.text))
        features = Features(
            quoted=quoted,
            cosine=_usual_cosine(quoted),
            numbers_missing=_part(said.numbers_not_in(self._details), said.numbers),
            names_missing=_part(said.names_not_in(self._details), said.names),
            turned=float(said.denies(there) or said.opposes(there)),
        )
        return Support(
            sentence,
            quotes,
            features,
            _objection(said, there, everywhere=self._details, quoted=quoted),
            (*said.compared_with(self._details), *_turns(said, there)),
        )

    def _quotes(self, wanted: Mapping[int, float], named: Collection[int]) -> tuple[Quote, ...]:
        """The best stretch and, where it adds enough of what is still missing, one from elsewhere."""
        total = sum(wanted.values())
        first = self._best(wanted, least=0.0, of=total, named=named)
        if first is None:
            return ()
        rest = {term: weight for term, weight in wanted.items() if term not in first.terms}
        second = self._best(rest, least=_SECOND_MUST_ADD, of=total, named=named)
        return (first,) if second is None else (first, second)

    def _best(self, wanted: Mapping[int, float], *, least: float, of: float, named: Collection[int]) -> Quote | None:
        best, highest = None, least
        for stretch in self._stretches:
            found = sum(weight for term, weight in wanted.items() if term in stretch.terms) / (of or 1.0)
            worth = found - _PAIR_MUST_ADD * stretch.paired
            if found > least and worth + _NAMED * (stretch.result.position in named) > highest:
                best, highest = stretch, worth + _NAMED * (stretch.result.position in named)
        return best


async def read(supports: Sequence[Support], embedder: Embedder) -> list[Support]:
    """The same, compared by meaning where that can still decide, the first ones first."""
    texts = [text for support in supports if support.open for text in (support.sentence, support.quoted)]
    texts = list(dict.fromkeys(texts))[:READ_CLOSELY]
    vectors = dict(zip(texts, [vector async for vector in embedder.documents(texts)], strict=True))
    return [compared(support, vectors) for support in supports]


def compared(support: Support, vectors: Mapping[str, Vector]) -> Support:
    """The support with the cosine of its sentence and its quotes, where both have a vector."""
    if support.sentence not in vectors or support.quoted not in vectors:
        return support
    cosine = float(vectors[support.sentence] @ vectors[support.quoted])
    return replace(support, features=replace(support.features, cosine=min(max(cosine, 0.0), 1.0)))


def _stretches(result: RetrievalResult, words: Words) -> Iterator[Quote]:
    """Every unit of a passage, and every two that stand beside each other and are no code."""
    above = words.terms("\n".join(_above(result)))
    there = units(result.text, fence=result.fence)
    terms = [words.terms(result.text[unit.start : unit.end]) for unit in there]
    for unit, own in zip(there, terms, strict=True):
        yield Quote(result, unit.start, unit.end, own | above, paired=False)
    for (first, second), (left, right) in zip(pairwise(there), pairwise(terms), strict=True):
        prose = UnitKind.CODE not in (first.kind, second.kind)
        if prose and second.end - first.start <= _LONGEST_PAIR:
            yield Quote(result, first.start, second.end, left | right | above, paired=True)


def _above(result: RetrievalResult) -> tuple[str, ...]:
    return result.heading_hierarchy or (result.title,)


def _part(some: Collection[str], every: Collection[str]) -> float:
    return len(some) / len(every) if every else 0.0


def _usual_cosine(quoted: float) -> float:
    """What the cosine usually is for a sentence of which this part is quoted: a line through the fitted sets."""
    return 0.4 + 0.45 * quoted


def _turns(said: Details, there: Details) -> Iterator[str]:
    """Whether sentence and quote say yes and no, and one thing or its opposite, alike."""
    if said.denied or there.denied:
        yield f"denial: {'in one of sentence and quote only' if said.denies(there) else 'agrees'}"
    if said.leanings:
        yield f"opposites: {'the quote has the other side' if said.opposes(there) else 'none'}"


def _objection(said: Details, there: Details, *, everywhere: Details, quoted: float) -> str:
    """What makes the sentence wrong or unproven however alike it is; empty when there is nothing."""
    # A count in words may be the model's own: "in two steps". One in digits is not.
    if numbers := said.numbers_not_in(everywhere) & said.digits:
        return f"no passage has the number {min(numbers)}"
    if identifiers := said.identifiers_not_in(everywhere):
        return f"no passage has {min(identifiers)}"
    if said.measured_otherwise_in(everywhere):
        return "the passages give the number in another measure"
    if quoted >= _SAME_WORDS and said.denies(there):
        return "one of sentence and quote says no, and the other does not"
    if quoted >= _SAME_WORDS and said.opposes(there):
        return "the quote says the opposite"
    return ""
