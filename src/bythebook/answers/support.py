"""Decides whether one place of the retrieved passages supports a claim.

A place is a sentence, up to three neighbours of one paragraph or list, or a table row with its header, under its
headings. Places are preselected by their terms, which is cheap. The best few are read together with the claim by the
entailment model, rules compare what rules compare better, and a logistic rule decides. What two places say together
proves a claim only if it falls into two halves that are each proven.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from bythebook.answers.claim_details import ClaimDetails, extract_details
from bythebook.chunking.spans import Span, SpanKind, find_table_header, split_spans
from bythebook.index.terms import Bm25Terms

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from bythebook.models.cross_encoder import CrossEncoder, Pair
    from bythebook.retrieval import RetrievalResult

TOKENS_FOR_CLAIM = 240
TOKENS_FOR_ANSWER = 2_400
"""How much the entailment model reads, claims and quotes together. Counted in tokens, so that an answer is judged the
same on a busy machine."""
_MOST_PLACES = 2
"""Places that are read for one claim."""
_MOST_COMPARED = 8
"""Places whose details are compared for one claim."""
_MOST_OVERLAPPING = 2
_LONGEST_PLACE = 600
_LONGEST_CLAIM = 600
"""In characters. One place cannot prove more."""
_MOST_NEIGHBOURS = 3
_LONGEST_LABEL = 80
_NEIGHBOUR_MUST_ADD = 0.04
_OVERLAPPING = 0.5
_LONGEST_SUBJECT = 4
_STEM = 5
_NAMED = 0.05
"""Bonus for a passage that the model cited itself."""
_SAME_WORDS = 0.6
"""From this coverage on, claim and quote have the same subject."""
_NEAR = 0.4
"""The least coverage of a quote that is shown in place of a claim."""
_SHORTER_BY = 0.12
"""What each further sentence of such a quote must add."""
_UNQUOTABLE = re.compile(r"[\n?]")
"""Of such a quote: a question, or more than one paragraph."""


_OBJECTION = 3.0
"""What an objection takes from the log-odds."""
_MARKUP = re.compile(r"[`*]")


class TermWeights(Protocol):
    """The term weights of a book. `IndexSnapshot` implements it."""

    @property
    def bm25(self) -> Bm25Terms: ...

    def idf_weights(self, terms: Iterable[int]) -> dict[int, float]: ...


@dataclass(frozen=True, slots=True)
class CandidateQuote:
    """A place in a passage: `result.text[start:end]`."""

    result: RetrievalResult
    start: int
    end: int
    terms: frozenset[int]
    """Terms of the quote and of what is read before it."""
    parts: int = 1
    lead: str = ""
    """The introduction of its list, or the header of its table."""
    kind: SpanKind = SpanKind.SENTENCE

    @property
    def text(self) -> str:
        return self.result.text[self.start : self.end]

    @property
    def as_read(self) -> str:
        """The quote as the entailment model reads it: after its heading path."""
        return f"{' > '.join(_headings(self.result)[-2:])}: {' '.join(f'{self.lead} {self.text}'.split())}"

    @property
    def details(self) -> ClaimDetails:
        return extract_details(
            "\n".join([*(f"{heading}." for heading in _headings(self.result)), self.lead, self.text])
        )

    def overlaps(self, other: CandidateQuote) -> bool:
        if self.result is not other.result:
            return False
        shared = min(self.end, other.end) - max(self.start, other.start)
        return shared >= _OVERLAPPING * min(self.end - self.start, other.end - other.start)


@dataclass(frozen=True, slots=True)
class SupportFeatures:
    """Input of the logistic rule. All but the first are from 0 to 1."""

    entailment: float
    """The log-odds of the entailment model, from -5 to 5; 0 without a model."""
    coverage: float
    """The share of the claim's terms, weighted by idf, that stand in the quote or its headings."""
    missing: float
    """The share of its numbers, names and identifiers that do not."""
    denied: float
    """1 if claim and quote disagree by a negation."""


@dataclass(frozen=True, slots=True)
class SupportRule:
    """A logistic rule: a claim is proven from `cutoff` on."""

    bias: float
    weights: SupportFeatures
    cutoff: float

    def confidence(self, features: SupportFeatures) -> float:
        """The probability that the quote supports the claim."""
        total = self.bias + sum(
            getattr(self.weights, name) * getattr(features, name) for name in SupportFeatures.__slots__
        )
        return 1 / (1 + math.exp(-total))


# Fitted with `python -m bench.fitting proof` on as many true as false claims. Three in four sentences of a model that
# gets the passages are true, so a claim is more likely true than not from .25 on.
RULE = SupportRule(0.52, SupportFeatures(1.01, 0.0, 0.0, 0.0), 0.25)
RULE_WITHOUT_MODEL = SupportRule(-1.6, SupportFeatures(0.0, 3.0, -1.5, -0.7), 0.6)
"""Where the entailment model is missing. Coverage weighs more than in the fit, whose pairs all have much of it."""
_VERBATIM = SupportRule(9.0, SupportFeatures(*(0.0,) * 4), 0.5)
"""For a claim that is the book's own sentence."""


@dataclass(frozen=True, slots=True)
class Support:
    """What the passages say about one claim."""

    sentence: str
    quotes: tuple[CandidateQuote, ...]
    """The place that is most likely to support it; two for a claim of two halves."""
    features: SupportFeatures
    objection: str
    """Why the claim is rejected at any score; empty if there is no objection."""
    rule: SupportRule
    checked: tuple[str, ...] = ()
    """The details of the claim, each with whether the quote or its headings have it."""
    near: CandidateQuote | None = None
    """The book's own words that come nearest to the claim, if any come near."""
    doubt: str = ""
    """What they object to."""
    read: bool = True
    """False if the entailment model has not read the quote: then it proves nothing."""

    @classmethod
    def of_nothing(cls, sentence: str) -> Support:
        """For a sentence of which no passage speaks."""
        features = SupportFeatures(*(0.0,) * 4)
        checked = tuple(extract_details(sentence).compared_with(extract_details("")))
        return cls(sentence, (), features, "", RULE_WITHOUT_MODEL, checked)

    @property
    def confidence(self) -> float:
        """Probability that the quotes support the claim. An objection lowers it, below the cutoff."""
        if not self.quotes:
            return 0.0
        if self.objection:
            return min(
                replace(self.rule, bias=self.rule.bias - _OBJECTION).confidence(self.features), self.rule.cutoff / 2
            )
        return self.rule.confidence(self.features)

    @property
    def holds(self) -> bool:
        return bool(self.quotes) and self.read and not self.objection and self.confidence >= self.rule.cutoff

    @property
    def pair(self) -> Pair:
        """The claim and the quote as the entailment model reads them."""
        return _MARKUP.sub("", self.sentence), self.quotes[0].as_read

    @property
    def reason(self) -> str:
        """The verdict in plain words."""
        if not self.quotes:
            return "no passage speaks of it"
        if self.objection:
            return self.objection
        sure = f"{self.confidence:.0%} likely to be what its quote says"
        if self.holds:
            return sure
        names = [detail for detail in self.checked if detail.startswith("name ") and detail.endswith("missing")]
        unnamed = f", which does not name {names[0].removeprefix('name ').removesuffix(': missing')}" if names else ""
        return f"only {sure}{unnamed}"


class PassageMatcher:
    """All places of the passages of one answer, with their terms."""

    def __init__(
        self, results: Sequence[RetrievalResult], lexicon: TermWeights, *, entailment: CrossEncoder | None = None
    ) -> None:
        self._lexicon = lexicon
        self._entailment = entailment
        self._places = [place for result in results for place in _find_places(result, lexicon.bm25)]
        self._tokens = TOKENS_FOR_ANSWER
        self._rule = RULE if entailment else RULE_WITHOUT_MODEL

    @property
    def prose(self) -> list[str]:
        """The sentences, items and rows of the passages."""
        return [place.text for place in self._places if place.kind is not SpanKind.CODE and place.parts == 1]

    @property
    def codes(self) -> list[CandidateQuote]:
        """The code blocks of the passages."""
        return [place for place in self._places if place.kind is SpanKind.CODE and place.parts == 1]

    def find_text(self, text: str) -> tuple[CandidateQuote, ...]:
        """The place whose terms cover the text best."""
        wanted = self._lexicon.idf_weights(self._lexicon.bm25.terms(text))
        return tuple(self._preselect(wanted, ())[:1])

    async def prove(self, claims: Sequence[tuple[str, Collection[int]]]) -> list[Support]:
        """What the passages say about each claim. `claims` are given with the passages that the model cited."""
        supports = await self._judge(claims)
        halves = {at: _split_claim(one.sentence) for at, one in enumerate(supports) if not one.holds}
        split = [(at, half) for at, both in halves.items() for half in both]
        judged = await self._judge([(half, claims[at][1]) for at, half in split])
        for at in dict.fromkeys(at for at, _ in split):
            first, second = (one for (place, _), one in zip(split, judged, strict=True) if place == at)
            if first.holds and second.holds:
                weaker = min(first, second, key=lambda one: one.confidence)
                quotes = tuple(dict.fromkeys([*first.quotes, *second.quotes]))
                supports[at] = replace(weaker, sentence=supports[at].sentence, quotes=quotes)
        return supports

    async def _judge(self, claims: Sequence[tuple[str, Collection[int]]]) -> list[Support]:
        """The best place for each claim. The first places are read before the others: most claims need no more."""
        found = [self.look_up(claim, named=named) for claim, named in claims]
        if self._entailment is None:
            return [_best(places) for places in found]
        best = [_best(places) for places in found]
        for turn in range(_MOST_PLACES):
            reading = [
                (at, places[turn])
                for at, places in enumerate(found)
                if turn < len(places) and not best[at].holds and places[turn].quotes and not places[turn].objection
            ]
            read = await self._read([one for _, one in reading])
            for (at, _), one in zip(reading, read, strict=True):
                found[at][turn] = one
                best[at] = _best(found[at])
        return best

    async def _read(self, supports: Sequence[Support]) -> list[Support]:
        """The supports with the log-odds of the entailment model, as far as the budget of tokens reaches."""
        if self._entailment is None:
            return list(supports)
        pairs: dict[int, Pair] = {}
        for at, one in enumerate(supports):
            pair = one.pair
            tokens = sum(map(self._entailment.count_tokens, pair))
            if tokens <= min(self._tokens, TOKENS_FOR_CLAIM):
                self._tokens -= tokens
                pairs[at] = pair
        scores = dict(zip(pairs, await self._entailment.score(list(pairs.values())), strict=True))
        return [
            replace(one, features=replace(one.features, entailment=clip(scores[at])), read=True)
            if at in scores
            else one
            for at, one in enumerate(supports)
        ]

    def look_up(self, sentence: str, *, named: Collection[int]) -> list[Support]:
        """The places whose terms cover the claim best, best first, as they are before anything is read."""
        said = extract_details(sentence)
        wanted = self._lexicon.idf_weights(self._lexicon.bm25.terms(sentence))
        places = self._preselect(wanted, named) if len(sentence) <= _LONGEST_CLAIM else []
        found = [
            _compare(sentence, said, place, coverage=_coverage(wanted, place.terms), by_rule=self._entailment is None)
            for place in places
        ]
        near = self._find_nearest(wanted)
        found = [replace(one, near=near) for one in _with_doubt(found)]
        found = sorted(found, key=lambda one: bool(one.objection))[:_MOST_PLACES]
        return [
            replace(one, rule=_VERBATIM, objection="")
            if _is_verbatim(one)
            else replace(one, rule=_VERBATIM)
            if _is_excerpt(one)
            else replace(one, rule=self._rule, read=self._entailment is None)
            for one in found or [Support.of_nothing(sentence)]
        ]

    def _find_nearest(self, wanted: Mapping[int, float]) -> CandidateQuote | None:
        """The words that come nearest to a claim: a sentence, or neighbours of which each adds much."""
        plain = [place for place in self._places if not _UNQUOTABLE.search(place.text)]
        near = {at: found for at, place in enumerate(plain) if (found := _coverage(wanted, place.terms)) >= _NEAR}
        best = max(near, key=lambda at: near[at] - _SHORTER_BY * (plain[at].parts - 1), default=None)
        return None if best is None else plain[best]

    def _preselect(self, wanted: Mapping[int, float], named: Collection[int]) -> list[CandidateQuote]:
        ranked = []
        for order, place in enumerate(self._places):
            found = _coverage(wanted, place.terms)
            worth = found - _NEIGHBOUR_MUST_ADD * (place.parts - 1) + _NAMED * (place.result.position in named)
            if found > 0:
                ranked.append((-worth, order, place))
        chosen: list[CandidateQuote] = []
        for _, _, place in sorted(ranked, key=lambda one: one[:2]):
            if sum(map(place.overlaps, chosen)) < _MOST_OVERLAPPING:
                chosen.append(place)
            if len(chosen) == _MOST_COMPARED:
                break
        return chosen


def _best(supports: Sequence[Support]) -> Support:
    """The place that proves the claim, or comes closest to it. What the place with the most of its words objects to,
    no other place makes good."""
    best = max(supports, key=lambda one: (one.holds, not one.objection, one.confidence))
    return best if best.holds else replace(best, objection=best.objection or best.doubt)


def _with_doubt(supports: Sequence[Support]) -> list[Support]:
    """The supports, each with the objection to the place that comes nearest to the claim."""
    plain = [one for one in supports if one.quotes and "\n" not in one.quotes[0].text]
    near = max(plain, key=lambda one: one.features.coverage, default=None)
    if near is None or near.features.coverage < _NEAR:
        return list(supports)
    return [replace(one, doubt=near.objection) for one in supports]


def _coverage(wanted: Mapping[int, float], terms: frozenset[int]) -> float:
    total = sum(wanted.values())
    return sum(weight for term, weight in wanted.items() if term in terms) / total if total else 0.0


def clip(log_odds: float) -> float:
    return min(max(log_odds, -5.0), 5.0)


def _is_verbatim(support: Support) -> bool:
    quotes = support.quotes
    return bool(quotes) and _words_only(support.sentence) == _words_only(quotes[0].text)


_SILENT = frozenset(
    "a an the is are was were be been being that which this these it its you your we our you're".split()
)
"""Words without which a sentence says the same."""
_LIMITING = frozenset(
    "not no never nor neither only unless except without if when while until whether may might can could should cannot "
    "sometimes usually often most some before after or and but instead than".split()
)
"""Words that may not be left out of a sentence."""
_MOST_LEFT_OUT, _FEWEST_EXCERPT_WORDS = 2, 4
_EXCERPT_WORD = re.compile(r"[\w.'’/+#-]*\w")


def _is_excerpt(support: Support) -> bool:
    """Whether the claim is one sentence of the book with a few words left out, none of which limits what it says."""
    if not support.quotes or support.quotes[0].parts > 1:
        return False
    quote = support.quotes[0]
    said = [word for word in _excerpt_words(support.sentence) if word not in _SILENT]
    own = _excerpt_words(quote.text)
    above = {_stem(word) for word in _excerpt_words(f"{' '.join(_headings(quote.result))} {quote.lead}")}
    # What the headings and the introduction of a list name need not stand in the sentence.
    wanted = [stem for stem in map(_stem, said) if stem not in above or stem in {_stem(word) for word in own}]
    found, left_out = 0, 0
    for word in own:
        if found < len(wanted) and _stem(word) == wanted[found]:
            found += 1
        elif word in _LIMITING or word.endswith("n't"):
            return False
        elif word not in _SILENT and 0 < found < len(wanted):
            left_out += 1
    return len(wanted) >= _FEWEST_EXCERPT_WORDS and found == len(wanted) and left_out <= _MOST_LEFT_OUT


def _excerpt_words(text: str) -> list[str]:
    return _EXCERPT_WORD.findall(_MARKUP.sub("", text).lower().replace("’", "'"))


def _stem(word: str) -> str:
    return re.sub(r"(?<=\w{4})(?:ing|ed|es|s)$", "", word)


def _words_only(text: str) -> str:
    return "".join(letter for letter in text.lower() if letter.isalnum())


def _compare(sentence: str, said: ClaimDetails, place: CandidateQuote, *, coverage: float, by_rule: bool) -> Support:
    """Compare a claim with a quote by rules."""
    there = place.details
    every = len(said.numbers) + len(said.names) + len(said.identifiers)
    gone = (said.numbers_not_in(there), said.names_not_in(there), said.identifiers_not_in(there))
    features = SupportFeatures(
        entailment=0.0,
        coverage=coverage,
        missing=sum(map(len, gone)) / every if every else 0.0,
        denied=float(said.denies(there)),
    )
    checked = tuple(said.compared_with(there))
    objection = _objection(said, there) or _other_row(said, place)
    if by_rule and not objection and coverage >= _SAME_WORDS and features.denied:
        objection = "one of sentence and quote says no, and the other does not"
    return Support(sentence, (place,), features, objection, RULE, checked)


def _objection(said: ClaimDetails, there: ClaimDetails) -> str:
    """Why the claim is wrong or unproven at any score; empty if there is no reason."""
    # A small count in words may come from the model ("in two steps"). A number in digits must stand in the quote.
    if numbers := said.numbers_not_in(there) & said.digits:
        return f"its quote does not have the number {min(numbers)}"
    if identifiers := said.identifiers_not_in(there):
        return f"its quote does not have {min(identifiers)}"
    if said.measured_otherwise_in(there):
        return "its quote gives the number in another measure"
    return ""


def _other_row(said: ClaimDetails, place: CandidateQuote) -> str:
    """Whether the quote is a row about something that the claim does not name: its first cell says what it is about."""
    if place.kind is not SpanKind.ROW:
        return ""
    cell = place.text.strip("| ").split("|")[0]
    words = extract_details(cell).words[:_LONGEST_SUBJECT]
    stems = {word[:_STEM] for word in said.words}
    return "" if all(word[:_STEM] in stems for word in words) else f"the row is about {' '.join(cell.split())[:60]!r}"


_JOINT = re.compile(r";\s+|, (?:and|while|whereas|but) ")
_STATES = re.compile(r"\b(?:is|are|was|were|has|have|had|can|may|must|will|does|do|should|[a-z]{3,}(?:s|ed|es))\b")
_DEPENDS = re.compile(r"\b(?:if|unless|because|so that|when|whenever|since|although|therefore|so)\b", re.IGNORECASE)


def _split_claim(sentence: str) -> tuple[str, ...]:
    """The two halves of a sentence that makes two statements; nothing if one of them depends on the other."""
    joint = _JOINT.search(sentence)
    if joint is None or len(sentence) > _LONGEST_CLAIM or _DEPENDS.search(sentence):
        return ()
    halves = (sentence[: joint.start()], sentence[joint.end() :])
    both = all(len(half.split()) > 3 and _STATES.search(half) for half in halves)
    return halves if both else ()


def _find_places(result: RetrievalResult, words: Bm25Terms) -> Iterator[CandidateQuote]:
    """Every place of a passage that can prove a claim."""
    above = words.terms("\n".join(_headings(result)))

    def place(start: int, end: int, *, lead: str, parts: int, kind: SpanKind) -> CandidateQuote:
        terms = above | words.terms(result.text[start:end]) | words.terms(lead)
        return CandidateQuote(result, start, end, terms, parts, lead, kind)

    label, before = "", Span(SpanKind.SENTENCE, 0, 0)
    for block in _blocks(result):
        kind = block[0].kind
        lead = _lead(result, block, before=before, label=label)
        for size in range(1, (1 if kind in (SpanKind.ROW, SpanKind.CODE) else _MOST_NEIGHBOURS) + 1):
            for first in range(len(block) - size + 1):
                start, end = block[first].start, block[first + size - 1].end
                if size == 1 or end - start <= _LONGEST_PLACE:
                    yield place(start, end, lead=lead, parts=size, kind=kind)
        if SpanKind.CODE in (kind, before.kind) and block[0].end - before.start <= _LONGEST_PLACE and before.end:
            # Code and the sentence beside it explain each other.
            yield place(before.start, block[0].end, lead=label, parts=2, kind=kind)
        if _is_label(result.text[block[0].start : block[-1].end]) and kind is SpanKind.SENTENCE:
            label = result.text[block[0].start : block[-1].end]
        before = block[-1]


def _lead(result: RetrievalResult, block: Sequence[Span], *, before: Span, label: str) -> str:
    """What has to be read before a block: the term it explains, the introduction of a list, the header of a table."""
    if block[0].kind is SpanKind.ROW:
        return find_table_header(result.text, block[-1].start, before=result.table_header).split("\n")[0]
    sentence = result.text[before.start : before.end] if before.kind is SpanKind.SENTENCE else ""
    introduces = block[0].kind is not SpanKind.SENTENCE or sentence.endswith(":")
    return sentence if introduces and sentence and len(sentence) <= _LONGEST_PLACE else label


def _is_label(text: str) -> bool:
    """True for a term on a line of its own, which the paragraphs below it explain."""
    return len(text) <= _LONGEST_LABEL and text[-1:] not in ".!?:;,"


def _blocks(result: RetrievalResult) -> Iterator[list[Span]]:
    """The spans of a passage by paragraph, list, table and code block."""
    block: list[Span] = []
    for span in split_spans(result.text, fence=result.fence):
        if block:
            between = result.text[block[-1].end : span.start]
            prose = span.kind is SpanKind.SENTENCE
            if span.kind is not block[-1].kind or span.kind is SpanKind.CODE or (prose and "\n" in between):
                yield block
                block = []
        block.append(span)
    if block:
        yield block


def _headings(result: RetrievalResult) -> tuple[str, ...]:
    return result.heading_hierarchy or (result.title,)
