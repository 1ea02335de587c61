"""The evidence check: whether the passages answer the question, and which of their spans do so best.

It runs on the retrieved passages, before a language model is called.

Questions for a definition, such as "What is a winch?", need a special rule: a book defines a term once and
mentions it a hundred times, and by terms and cosine the mentions score as high as the definition.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from bythebook.chunking import with_headings
from bythebook.chunking.spans import Span, SpanKind, split_spans
from bythebook.index.terms import SATURATION, weighted_overlap

if TYPE_CHECKING:
    from collections.abc import Sequence
    from re import Pattern

    from bythebook.embeddings import Embedder
    from bythebook.index.provider import IndexSnapshot
    from bythebook.retrieval import RetrievalResult
    from bythebook.retrieval.retriever import Retrieval


MAX_SCORED_SPANS = 4
"""Spans that are embedded and compared with the question: those with the best lexical score."""
_MAX_PASSAGES = 5
# Code and table rows contain a question's terms without explaining them.
_KIND_WEIGHTS = {SpanKind.SENTENCE: 1.0, SpanKind.ITEM: 1.0, SpanKind.CODE: 0.8, SpanKind.ROW: 0.8}
_DEFINITION_BONUS = 0.2
"""Added to the score of a sentence that defines the term that the question asks for."""

MAX_TERM_WORDS = 4
"""The longest term of a definition. A longer phrase is about a property, such as the default size of a chunk."""

_DEFINITION_QUESTION = re.compile(
    r"\W*(?:(?:so|and|but|ok|okay|please|(?:can|could) you|tell me|explain|describe)\W+)*"
    r"(?:(?:what|who)(?:\s+exactly)?(?:['’]s|\s+(?:is|are|was|were))|what\s+(?:do|does)(?=.*\bmean\W*$)|define)\s+"
    r"(?:(?:an?|the)\s+)?(?P<term>\S.*?)(?:\s+mean)?\W*",
    re.IGNORECASE,
)
_PROPERTY = re.compile(r"\b(?:of|for|in|on|at|to|from|with|by|between|when|if|that|which|and|or)\b", re.IGNORECASE)
_PRONOUNS = frozenset("it they this that these those he she".split())
"""A resolved follow-up has the referent after the pronoun: "What is it? Isaac Sim"."""
_DEFINING_VERB = r"(?:is|are|was|were|means?|refers?\s+to|stands?\s+for|describes?|denotes?|represents?|serves?\s+as)\b"


@dataclass(frozen=True, slots=True)
class EvidenceFeatures:
    """The inputs of the logistic model, each from 0 to 1."""

    passage_cosine: float
    """The cosine of the question and the nearest passage."""
    span_cosine: float
    """The cosine of the question and the nearest span."""
    passage_overlap: float
    """The share of the question's terms, weighted by idf, that occur in the first three passages."""
    span_overlap: float
    """The same for the best single span."""


class ScoredSpan(NamedTuple):
    """A span of a passage with its score for the question."""

    result: RetrievalResult
    span: Span
    score: float

    @property
    def text(self) -> str:
        return self.result.text[self.span.start : self.span.end]


class Evidence(NamedTuple):
    """The features of a question's passages, and their best spans."""

    features: EvidenceFeatures
    spans: tuple[ScoredSpan, ...]
    """Best first."""

    @property
    def confidence(self) -> float:
        """The probability that the book covers the question."""
        return confidence(self.features)


# Fitted to three collections together, then adjusted by hand: see docs/quality.md. `python -m bench.fitting refusal`
# fits them again and evaluates them on a collection that was held out.
BIAS = -9.8
WEIGHTS = EvidenceFeatures(passage_cosine=9.31, span_cosine=6.06, passage_overlap=1.95, span_overlap=2.91)
_FEATURES = EvidenceFeatures.__slots__
RULE = f"{BIAS:g}, {', '.join(f'{getattr(WEIGHTS, name):g}' for name in _FEATURES)}; {MAX_SCORED_SPANS} units"
"""The serialised model parameters. A cutoff that was calibrated for other parameters is invalid."""


def confidence(features: EvidenceFeatures) -> float:
    """The logistic model."""
    total = BIAS + sum(getattr(WEIGHTS, name) * getattr(features, name) for name in _FEATURES)
    return 1 / (1 + math.exp(-total))


def lexical_evidence(snapshot: IndexSnapshot, retrieval: Retrieval) -> Evidence:
    """The evidence without span embeddings, which is a lower bound of the confidence."""
    results = retrieval.context.results[:_MAX_PASSAGES]
    if not results:
        return Evidence(EvidenceFeatures(0.0, 0.0, 0.0, 0.0), ())
    query = retrieval.context.query
    wanted = snapshot.idf_weights(snapshot.bm25.terms(query))
    spans = _rank_lexically(snapshot, results, wanted, definition_pattern(query))[:MAX_SCORED_SPANS]
    terms = snapshot.bm25.terms
    features = EvidenceFeatures(
        passage_cosine=retrieval.top_cosine,
        span_cosine=0.0,
        passage_overlap=weighted_overlap(
            wanted,
            {term for result in results[:3] for term in terms(with_headings(result.heading_hierarchy, result.text))},
        ),
        span_overlap=max((weighted_overlap(wanted, terms(entry.text)) for entry in spans), default=0.0),
    )
    return Evidence(features, tuple(spans))


async def score_evidence(snapshot: IndexSnapshot, embedder: Embedder, retrieval: Retrieval) -> Evidence:
    """Embed the best spans and compare them with the question."""
    lexical = lexical_evidence(snapshot, retrieval)
    texts = [entry.text for entry in lexical.spans]
    cosines = [float(vector @ retrieval.evidence_vector) async for vector in embedder.embed_documents(texts)]
    scored = [
        ScoredSpan(entry.result, entry.span, score=entry.score + 0.5 * cosine)
        for entry, cosine in zip(lexical.spans, cosines, strict=True)
    ]
    features = replace(lexical.features, span_cosine=min(max([0.0, *cosines]), 1.0))
    return Evidence(features, tuple(sorted(scored, key=lambda entry: -entry.score)))


async def score_until_confident(
    snapshot: IndexSnapshot, embedder: Embedder, retrieval: Retrieval, *, sure: float
) -> Evidence:
    """Embed spans one by one until the confidence reaches `sure`: each further span can only raise it.

    For callers that need to know whether the book covers the question, but not which spans answer it.
    """
    evidence = lexical_evidence(snapshot, retrieval)
    for entry in evidence.spans:
        if evidence.confidence >= sure:
            break
        async for vector in embedder.embed_documents([entry.text]):
            cosine = min(max(float(vector @ retrieval.evidence_vector), evidence.features.span_cosine), 1.0)
            evidence = Evidence(replace(evidence.features, span_cosine=cosine), evidence.spans)
    return evidence


def _rank_lexically(
    snapshot: IndexSnapshot,
    results: Sequence[RetrievalResult],
    wanted: dict[int, float],
    definition: Pattern[str] | None,
) -> list[ScoredSpan]:
    """Every span of the passages, scored by its terms and the rank of its passage, best first."""
    ideal = (SATURATION + 1) * sum(wanted.values()) or 1.0
    top = max(result.rerank_score for result in results) or 1.0
    scored: list[ScoredSpan] = []
    for result in results:
        for unit in split_spans(result.text, fence=result.fence):
            text = result.text[unit.start : unit.end]
            weights = snapshot.bm25.term_weights(text)
            lexical = sum(wanted[term] * weight for term, weight in weights.items() if term in wanted) / ideal
            score = _KIND_WEIGHTS[unit.kind] * 0.5 * lexical + 0.5 * result.rerank_score / top
            score += _DEFINITION_BONUS if definition and definition.match(text) else 0.0
            scored.append(ScoredSpan(result, unit, score=score * (0.5 if text.endswith("?") else 1.0)))
    return sorted(scored, key=lambda entry: (-entry.score, entry.result.position, entry.span.start))


@lru_cache(maxsize=256)
def definition_pattern(question: str) -> re.Pattern[str] | None:
    """A pattern for the beginning of a sentence that defines the term in the question; None for other questions."""
    match = _DEFINITION_QUESTION.fullmatch(question)
    term = match["term"] if match else ""
    words = [word for word in re.findall(r"\w+", term) if word.lower() not in _PRONOUNS]
    if not 0 < len(words) <= MAX_TERM_WORDS or _PROPERTY.search(term):
        return None
    # "A winch", "winches", "The Dunmore winch (1931)", "the drum with its rope (winch)".
    singular = re.sub(r"(?<=\w{3})(?:(?<=[sxz])es|(?<=[cs]h)es|s)$", "", words[-1])
    name = r"\W+".join(map(re.escape, [*words[:-1], singular])) + "(?:e?s){0,2}"
    named = rf"(?:\w+[ -]){{0,2}}{name}(?:\s*\([^()]*\))?|[^.:;]{{2,80}}\({name}\)"
    return re.compile(rf"\W*(?:(?:an?|the)\s+)?(?:{named})[\"”’'*_`]*,?\s+(?:\w+ly\s+)?{_DEFINING_VERB}", re.IGNORECASE)
