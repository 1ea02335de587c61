"""Finds the quotes that support a sentence and scores how well they do.

Quotes are found by their terms, which is cheap. Embeddings are compared only where the terms do not decide.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

from bythebook.answers.claim_details import ClaimDetails, extract_details, merge_details
from bythebook.chunking.spans import SpanKind, split_spans
from bythebook.index.terms import Bm25Terms, weighted_overlap

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from bythebook.embeddings import Embedder, Vector
    from bythebook.retrieval import RetrievalResult

CUTOFF = 0.55
"""Minimum probability at which a sentence counts as supported. Above .5, because a false proof is worse than a lost
sentence.
"""
READ_CLOSELY = 24
"""Maximum number of texts that are embedded for one answer, sentences and quotes together."""
_LONGEST_PAIR = 600
_PAIR_MUST_ADD = 0.08
_SECOND_MUST_ADD = 0.12
"""How much more of the sentence a longer quote, or a second quote, must cover."""
_SAME_WORDS = 0.7
"""From this term overlap on, sentence and quote have the same subject, so a "not" in only one is a contradiction."""
_COSINES = (0.3, 0.95)
"""The cosine of nearly every sentence and its quotes lies in this range."""
_NAMED = 0.05
"""Bonus for a passage that the model cited itself."""


class TermWeights(Protocol):
    """The term weights of a book. `IndexSnapshot` implements it."""

    @property
    def bm25(self) -> Bm25Terms: ...

    def idf_weights(self, terms: Iterable[int]) -> dict[int, float]: ...


@dataclass(frozen=True, slots=True)
class CandidateQuote:
    """A span of a passage: `result.text[start:end]`."""

    result: RetrievalResult
    start: int
    end: int
    terms: frozenset[int]
    """Terms of the quote and of the headings above it."""
    paired: bool
    """True if the quote is two adjacent spans."""

    @property
    def text(self) -> str:
        return self.result.text[self.start : self.end]


@dataclass(frozen=True, slots=True)
class SupportFeatures:
    """Input of the support classifier, each from 0 to 1."""

    quoted: float
    """The share of the sentence's terms, weighted by idf, that the quotes contain."""
    cosine: float
    """Cosine of the sentence and its quotes."""
    numbers_missing: float
    """The share of its numbers that no passage contains."""
    names_missing: float
    turned: float
    """1 if sentence and quotes disagree by a negation or an antonym."""


@dataclass(frozen=True, slots=True)
class Support:
    """The evidence found for one sentence."""

    sentence: str
    quotes: tuple[CandidateQuote, ...]
    features: SupportFeatures
    objection: str
    """Why the sentence is rejected at any similarity; empty if there is no objection."""
    checked: tuple[str, ...] = ()
    """The details of the sentence, each with whether the passages contain it."""

    @property
    def confidence(self) -> float:
        """Probability that the quotes support the sentence. An objection halves it, which is always below the
        cutoff.
        """
        return confidence(self.features) * (0.5 if self.objection else 1.0)

    @property
    def holds(self) -> bool:
        return bool(self.quotes) and self.confidence >= CUTOFF

    @property
    def open(self) -> bool:
        """True if the cosine can still decide: the terms neither prove the sentence nor rule it out."""
        if self.objection or not self.quotes:
            return False
        least, most = (confidence(replace(self.features, cosine=cosine)) for cosine in _COSINES)
        return least < CUTOFF <= most

    @property
    def quoted(self) -> str:
        """The text of all quotes."""
        return " ".join(quote.text for quote in self.quotes)


# Fitted with `python -m bench.fitting proof` on wice, fool_me_twice and scifact; all sets and both labels have equal
# weight. Fitted on two of the sets, the rule reaches an AUROC of .81, .64 and .75 on the third.
BIAS = -1.66
WEIGHTS = SupportFeatures(quoted=2.4, cosine=1.18, numbers_missing=-1.24, names_missing=-0.52, turned=-0.71)


def confidence(features: SupportFeatures) -> float:
    """The logistic rule."""
    total = BIAS + sum(getattr(WEIGHTS, name) * getattr(features, name) for name in SupportFeatures.__slots__)
    return 1 / (1 + math.exp(-total))


class PassageMatcher:
    """All candidate quotes of the passages of one answer, with their terms."""

    def __init__(self, results: Sequence[RetrievalResult], lexicon: TermWeights) -> None:
        self._lexicon = lexicon
        self._stretches = [stretch for result in results for stretch in _candidate_quotes(result, lexicon.bm25)]
        self._details = merge_details(
            extract_details(part) for result in results for part in (*_headings(result), result.text)
        )

    def look_up(self, sentence: str, *, named: Collection[int]) -> Support:
        """Find the quotes that cover the sentence best. `named` are the passages the model cited."""
        wanted = self._lexicon.idf_weights(self._lexicon.bm25.terms(sentence))
        quotes = self._quotes(wanted, named)
        quoted = weighted_overlap(wanted, frozenset[int]().union(*(quote.terms for quote in quotes)))
        said = extract_details(sentence)
        there = merge_details(
            extract_details(part) for quote in quotes for part in (*_headings(quote.result), quote.text)
        )
        features = SupportFeatures(
            quoted=quoted,
            cosine=_usual_cosine(quoted),
            numbers_missing=_fraction(said.numbers_not_in(self._details), said.numbers),
            names_missing=_fraction(said.names_not_in(self._details), said.names),
            turned=float(said.denies(there) or said.opposes(there)),
        )
        return Support(
            sentence,
            quotes,
            features,
            _objection(said, there, everywhere=self._details, quoted=quoted),
            (*said.compared_with(self._details), *_polarity_notes(said, there)),
        )

    def _quotes(self, wanted: Mapping[int, float], named: Collection[int]) -> tuple[CandidateQuote, ...]:
        """The best quote and, if it covers enough of the remaining terms, a second one."""
        total = sum(wanted.values())
        first = self._best(wanted, least=0.0, of=total, named=named)
        if first is None:
            return ()
        rest = {term: weight for term, weight in wanted.items() if term not in first.terms}
        second = self._best(rest, least=_SECOND_MUST_ADD, of=total, named=named)
        return (first,) if second is None else (first, second)

    def _best(
        self, wanted: Mapping[int, float], *, least: float, of: float, named: Collection[int]
    ) -> CandidateQuote | None:
        best, highest = None, least
        for stretch in self._stretches:
            found = sum(weight for term, weight in wanted.items() if term in stretch.terms) / (of or 1.0)
            worth = found - _PAIR_MUST_ADD * stretch.paired
            if found > least and worth + _NAMED * (stretch.result.position in named) > highest:
                best, highest = stretch, worth + _NAMED * (stretch.result.position in named)
        return best


async def compare_by_meaning(supports: Sequence[Support], embedder: Embedder) -> list[Support]:
    """Add the cosine to the undecided sentences, up to the limit on embedded texts."""
    texts = [text for support in supports if support.open for text in (support.sentence, support.quoted)]
    texts = list(dict.fromkeys(texts))[:READ_CLOSELY]
    vectors = dict(zip(texts, [vector async for vector in embedder.embed_documents(texts)], strict=True))
    return [add_cosine(support, vectors) for support in supports]


def add_cosine(support: Support, vectors: Mapping[str, Vector]) -> Support:
    """Add the cosine of the sentence and its quotes, if both were embedded."""
    if support.sentence not in vectors or support.quoted not in vectors:
        return support
    cosine = float(vectors[support.sentence] @ vectors[support.quoted])
    return replace(support, features=replace(support.features, cosine=min(max(cosine, 0.0), 1.0)))


def _candidate_quotes(result: RetrievalResult, words: Bm25Terms) -> Iterator[CandidateQuote]:
    """Every span of a passage, and every two adjacent spans that are not code."""
    above = words.terms("\n".join(_headings(result)))
    there = split_spans(result.text, fence=result.fence)
    terms = [words.terms(result.text[unit.start : unit.end]) for unit in there]
    for unit, own in zip(there, terms, strict=True):
        yield CandidateQuote(result, unit.start, unit.end, own | above, paired=False)
    for (first, second), (left, right) in zip(pairwise(there), pairwise(terms), strict=True):
        prose = SpanKind.CODE not in (first.kind, second.kind)
        if prose and second.end - first.start <= _LONGEST_PAIR:
            yield CandidateQuote(result, first.start, second.end, left | right | above, paired=True)


def _headings(result: RetrievalResult) -> tuple[str, ...]:
    return result.heading_hierarchy or (result.title,)


def _fraction(some: Collection[str], every: Collection[str]) -> float:
    return len(some) / len(every) if every else 0.0


def _usual_cosine(quoted: float) -> float:
    """The usual cosine at this term coverage: a linear fit over the training sets."""
    return 0.4 + 0.45 * quoted


def _polarity_notes(said: ClaimDetails, there: ClaimDetails) -> Iterator[str]:
    """Describe whether sentence and quote agree on negations and antonyms."""
    if said.denied or there.denied:
        yield f"denial: {'in one of sentence and quote only' if said.denies(there) else 'agrees'}"
    if said.leanings:
        yield f"opposites: {'the quote has the other side' if said.opposes(there) else 'none'}"


def _objection(said: ClaimDetails, there: ClaimDetails, *, everywhere: ClaimDetails, quoted: float) -> str:
    """Why the sentence is wrong or unproven at any similarity; empty if there is no reason."""
    # A small count in words may come from the model ("in two steps"). A number in digits must be in a passage.
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
